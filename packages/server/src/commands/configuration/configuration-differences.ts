// Works out what a configuration file would change: each entry is compared, field by field, with the installed one of the same name. All
// problems are collected, not only the first. Secrets are never part of what is shown.

import type { JsonObject } from '@switchyard/protocol'
import {
  type ConfigurationFile,
  defaultOf,
  type Entry,
  type FieldSchema,
  type Installed,
  isManaged,
  isObject,
  isOfOtherKind,
  KINDS,
  type Kind,
  keysOf,
  type Names,
  NOUNS,
  namedField,
  namesIn,
  same,
  urlText,
  withoutSecrets,
} from '../../api/configuration-export.ts'
import { type Environment, resolve } from '../../api/environment-references.ts'
import { originOf } from '../../destinations/webhook/url-problem.ts'
import { hiddenPath } from '../../secrets/hidden-url.ts'
import { hiddenMapping, hiddenSettings, isTemplateOnly } from '../../secrets/hidden-values.ts'
import { SECRETS, withDefaults } from './configuration-file.ts'
import { hiddenSubscriptions, integrationSettings, resolvedSubscriptions, resolvedTexts, withoutIds } from './integration-entries.ts'
import { hasSecret, publicSettings, resolvedSecrets, secretOf, withNestedSecrets, withPlaceSecrets } from './secret-references.ts'

export interface Change {
  action: 'create' | 'update' | 'delete'
  kind: Kind
  name: string
  /** The id of the installed entry; null for a new one. */
  id: string | null
  /** What is sent: all fields for a new entry, else the changed ones. Sources are given by name, in `sources`. */
  settings: Record<string, unknown>
  /** The differences as shown to the user. */
  fields: { field: string; before: string | null; after: string | null }[]
}

export interface Differences {
  changes: Change[]
  /** Installed, but not in the file. */
  unmanaged: { kind: Kind; name: string; id: string }[]
  problems: string[]
  /** Secrets that stay unchanged because their environment variable is not set. */
  remarks: string[]
  /** What the service validates, in the order of the file. */
  wanted: Record<Kind, { id: string | null; settings: Record<string, unknown> }[]>
}

const HIDDEN = '•••'

export function differencesOf(file: ConfigurationFile, installed: Installed, env: Environment, prune: boolean): Differences {
  const differences: Differences = {
    changes: [],
    unmanaged: [],
    problems: [],
    remarks: [],
    wanted: { sources: [], destinations: [], oauthApps: [], plans: [] },
  }
  const names = namesIn(installed)
  const known = (kind: keyof Names): Set<string> => {
    const kept = installed.entries[kind].filter((stored) => !prune || !isManaged(stored))
    return new Set([...file[kind].map(({ name }) => name), ...kept.map(({ name }) => String(name))])
  }
  const about = { installed, names, known: { sources: known('sources'), destinations: known('destinations') }, env, differences }
  for (const kind of KINDS) {
    const inFile = new Set(file[kind].map(({ name }) => name))
    for (const entry of file[kind]) {
      const found = installed.entries[kind].filter(({ name }) => name === entry.name)
      if (found.length > 1) {
        differences.problems.push(
          `${NOUNS[kind]} ${entry.name}: the installation has several with this name. Rename them first, so that each name is unique.`,
        )
        continue
      }
      const change = changeOf({ ...about, kind, entry, stored: found[0] })
      if (change !== null) differences.changes.push(change)
    }
    for (const { id, name } of installed.entries[kind].filter(isManaged)) {
      if (inFile.has(String(name))) continue
      if (prune) differences.changes.push({ action: 'delete', kind, name: String(name), id: String(id), settings: {}, fields: [] })
      else differences.unmanaged.push({ kind, name: String(name), id: String(id) })
    }
  }
  differences.problems.push(...writeKeyConflicts(file, installed, prune), ...deadLetterCycles(file))
  return differences
}

interface About {
  kind: Kind
  entry: Entry
  stored: JsonObject | undefined
  installed: Installed
  names: Names
  /** The names that the file may refer to. */
  known: Readonly<Record<keyof Names, ReadonlySet<string>>>
  env: Environment
  differences: Differences
}

/** An entry while it is compared. */
interface Comparison extends About {
  /** What the service validates. */
  wanted: Record<string, unknown>
  settings: Change['settings']
  fields: Change['fields']
  isMoved: boolean
  problem: (sentence: string) => void
  remark: (sentence: string) => void
}

function changeOf(about: About): Change | null {
  const { kind, entry, stored, installed, differences } = about
  const where = `${NOUNS[kind]} ${entry.name}`
  const comparison: Comparison = {
    ...about,
    wanted: {},
    settings: {},
    fields: [],
    isMoved: leadsElsewhere(entry, stored),
    problem: (sentence) => void differences.problems.push(`${where}: ${sentence}`),
    remark: (sentence) => void differences.remarks.push(`${where}: ${sentence}`),
  }
  const { wanted, settings, fields, isMoved, problem } = comparison
  const schema = installed.schema[kind]
  for (const field of Object.keys(entry)) if (!Object.hasOwn(schema, field)) problem(`unknown field ${field}.`)
  for (const [field, fieldSchema] of Object.entries(schema)) compareField(comparison, field, fieldSchema)
  differences.wanted[kind].push({ id: stored === undefined ? null : String(stored['id']), settings: wanted })
  if (stored === undefined) {
    for (const field of SECRETS) {
      if (wanted[field] === undefined) continue
      settings[field] = wanted[field]
      fields.push({ field, before: null, after: HIDDEN })
    }
    return { action: 'create', kind, name: entry.name, id: null, settings, fields }
  }
  if (isMoved) for (const field of BOUND) if (wanted[field] != null) settings[field] = wanted[field]
  return fields.length === 0 ? null : { action: 'update', kind, name: entry.name, id: String(stored['id']), settings, fields }
}

function compareField(comparison: Comparison, field: string, schema: FieldSchema): void {
  const { entry } = comparison
  const given = Object.hasOwn(entry, field) ? entry[field] : undefined
  if ((SECRETS as readonly string[]).includes(field)) return readSecret(comparison, field, given)
  // Without writeKeys in the file, the installed keys stay, and a new source generates its own.
  if (field === 'writeKeys' && given === undefined) return
  // Without settings or secrets in the file, the stored ones stay.
  if (given === undefined && (field === 'settings' || field === 'secrets' || isOfOtherKind(field, entry, comparison.installed))) return
  if (field === 'settings' && isObject(given)) return compareSettings(comparison, given)
  if (field === 'secrets' && isObject(given)) return compareSecrets(comparison, given)
  compareValue(comparison, field, given, schema)
}

function readSecret({ stored, env, wanted, problem, remark }: Comparison, field: string, given: unknown): void {
  const secret = secretOf(field, given, env)
  if ('problem' in secret) problem(secret.problem)
  else if ('unset' in secret) {
    const names = secret.unset.join(', ')
    if (stored === undefined || !hasSecret(stored, field))
      problem(`${field}: the environment variable ${names} is not set, and there is no stored secret to keep. Set the variable.`)
    else remark(`${field} stays unchanged, because the environment variable ${names} is not set.`)
  } else if (secret.value !== undefined) wanted[field] = secret.value
}

/** The settings of an integration. */
function compareSettings(comparison: Comparison, given: Record<string, unknown>): void {
  const { stored, env, wanted, settings, fields } = comparison
  const { wanted: all, before, after } = integrationSettings(given, stored, env, comparison)
  wanted['settings'] = all
  if (stored !== undefined && same(before, after)) return
  settings['settings'] = all
  if (stored !== undefined || Object.keys(all).length > 0) fields.push(shownChange('settings', before, after))
}

/** The named secrets of a webhook. */
function compareSecrets(comparison: Comparison, given: Record<string, unknown>): void {
  const { stored, env, wanted, settings, fields } = comparison
  const secrets = resolvedSecrets(given, stored, env, comparison)
  wanted['secrets'] = secrets
  const before = isObject(stored?.['secrets']) ? stored['secrets'] : {}
  // Only the service can tell whether the values of the same names differ: see addChangedSecrets.
  if (same(Object.keys(given).sort(), Object.keys(before).sort())) return
  settings['secrets'] = secrets
  fields.push(shownChange('secrets', hiddenValues(before), hiddenValues(given)))
}

function compareValue(comparison: Comparison, field: string, given: unknown, schema: FieldSchema): void {
  const { entry, stored, names, known, env, wanted, settings, fields, isMoved, problem } = comparison
  const fallback = defaultOf(field, schema, entry, comparison.installed)
  // Values that are only known to the service, or were given for another server, are not sent to a new one.
  const kept = isMoved && field !== 'urls' ? undefined : stored
  const text = resolved(field, withDefaults(given, { ...schema, default: fallback }), kept, env, problem)
  if (text === undefined) return
  const value =
    field === 'warehouse' ? withPlaceSecrets(text, stored, env, comparison) : withNestedSecrets(field, text, stored, env, comparison)
  const missing = (noun: string, name: unknown): void =>
    problem(`there is no ${noun} ${String(name)}, neither in the file nor in the installation.`)
  if (field === 'sources') {
    if (!Array.isArray(value)) problem('sources must be a list of names.')
    else for (const name of value) if (!known.sources.has(String(name))) missing('source', name)
  } else if (field === 'deadLetter') {
    if (typeof value === 'string' ? !known.destinations.has(value) : value !== null) missing('destination', value)
  } else wanted[field] = value
  const before = stored === undefined ? undefined : storedValue(field, stored, names)
  const sent = field === 'keys' ? withIds(value, before) : field === 'sources' && Array.isArray(value) ? value.map(String).sort() : value
  if (field === 'keys') wanted[field] = sent
  const after = publicSettings(field, sent)
  if (stored !== undefined && same(before, after)) return
  settings[field] = sent
  if (stored !== undefined || (field !== 'name' && !same(after, fallback))) fields.push(shownChange(field, before, after))
}

/** The settings with secrets that are sent to the receiver. If a destination gets another server, the service wants them again. */
const BOUND = ['headers', 'request', 'auth', 'secrets'] as const

/** Whether the URLs of the file lead to a server that the stored ones do not. */
function leadsElsewhere({ urls }: Entry, stored: JsonObject | undefined): boolean {
  if (!Array.isArray(urls) || !Array.isArray(stored?.['urls'])) return false
  const serverOf = (url: unknown): string => (URL.canParse(String(url)) ? originOf(String(url)) : String(url))
  const known = new Set(stored['urls'].map(serverOf))
  return urls.some((url) => !known.has(serverOf(url)))
}

/** Adds the secrets that differ from the stored ones, which only the service can tell. */
export function addChangedSecrets(
  differences: Differences,
  file: ConfigurationFile,
  changed: readonly { kind: Kind; index: number; fields: string[] }[],
): void {
  for (const { kind, index, fields } of changed) {
    const wanted = differences.wanted[kind][index]
    const name = file[kind][index]?.name
    if (wanted === undefined || name === undefined || wanted.id === null) continue
    let change = differences.changes.find((known) => known.kind === kind && known.id === wanted.id)
    if (change === undefined) {
      change = { action: 'update', kind, name, id: wanted.id, settings: {}, fields: [] }
      differences.changes.push(change)
    }
    for (const field of fields) {
      change.settings[field] = wanted.settings[field]
      if (change.fields.some((shown) => shown.field === field)) continue
      change.fields.push({ field, before: HIDDEN, after: `${HIDDEN} (changed)` })
    }
  }
}

/** Replaces references by the values of environment variables. */
function resolved(
  field: string,
  value: unknown,
  stored: JsonObject | undefined,
  env: Environment,
  problem: (sentence: string) => void,
): unknown {
  const text = (given: unknown, place: string, kept: readonly string[]): unknown => {
    if (typeof given !== 'string') return given
    const result = resolve(given, env, kept)
    if (result.ok) return result.text
    problem(
      `${place}: the environment variable ${result.missing.join(', ')} is not set, and there is no matching stored value to keep. Set the variable.`,
    )
    return given
  }
  if (field === 'urls' && Array.isArray(value)) {
    const kept = (stored?.['urls'] ?? []) as string[]
    // The stored URL at the same index comes first, because several may differ only in the values of their variables.
    return value.map((url, index) => text(url, `urls[${index}]`, [...kept.slice(index, index + 1), ...kept]))
  }
  const headers = (given: Record<string, unknown>, place: string, kept: Record<string, string>): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(given).map(([name, header]) => [
        name,
        text(header, `${place}.${name}`, Object.hasOwn(kept, name) ? [kept[name] as string] : []),
      ]),
    )
  if (field === 'headers' && isObject(value)) return headers(value, 'headers', (stored?.['headers'] ?? {}) as Record<string, string>)
  if (field === 'request' && isObject(value) && isObject(value['headers'])) {
    const kept = isObject(stored?.['request']) ? stored['request'] : {}
    const body = resolvedTexts(value['body'], kept['body'], 'request.body', text)
    const own = headers(value['headers'], 'request.headers', (kept['headers'] ?? {}) as Record<string, string>)
    const path = resolvedTexts(value['path'], kept['path'], 'request.path', text)
    return { ...value, ...(value['path'] === undefined ? {} : { path }), ...(value['body'] === undefined ? {} : { body }), headers: own }
  }
  if (field === 'warehouse' && isObject(value)) {
    const kept = isObject(stored?.['warehouse']) ? stored['warehouse'] : {}
    const given = Object.entries(value).map(([name, part]) => {
      const isSecret = name === 'secretAccessKey' || name === 'password'
      return [name, isSecret ? part : text(part, `warehouse.${name}`, typeof kept[name] === 'string' ? [kept[name]] : [])]
    })
    return Object.fromEntries(given) as unknown
  }
  if (field === 'subscriptions' && Array.isArray(value))
    return resolvedSubscriptions(value, stored, (given, place, kept) => text(given, place, kept))
  if (field === 'auth' && isObject(value)) {
    const kept = isObject(stored?.['auth']) ? stored['auth'] : {}
    const own = (name: string): object =>
      typeof value[name] === 'string'
        ? { [name]: text(value[name], `auth.${name}`, typeof kept[name] === 'string' ? [kept[name]] : []) }
        : {}
    return { ...value, ...own('username'), ...own('tokenUrl') }
  }
  return value
}

function storedValue(field: string, stored: JsonObject, names: Names): unknown {
  if (field === 'sources' || field === 'deadLetter') return namedField(field, stored, names)
  if (field === 'auth' || field === 'tls') return withoutSecrets(field, stored[field])
  if (field === 'subscriptions') return withoutIds(stored[field])
  if (field === 'warehouse') return publicSettings(field, stored[field])
  return field === 'keys' ? keysOf(stored) : stored[field]
}

/** A key without an id in the file takes the id of the installed key, if it is the same key. */
function withIds(value: unknown, before: unknown): unknown {
  if (!Array.isArray(value)) return value
  const stored = (before ?? []) as { id: string; publicKeyPem: string }[]
  return value.map((key: unknown) => {
    if (!isObject(key) || typeof key['publicKeyPem'] !== 'string') return key
    const pem = key['publicKeyPem'].trim()
    const found = stored.find(({ id, publicKeyPem }) => publicKeyPem.trim() === pem && (key['id'] === undefined || key['id'] === id))
    return found ?? key
  })
}

/** Finds write keys that two sources would have, which is not allowed. */
function writeKeyConflicts(file: ConfigurationFile, { entries }: Installed, prune: boolean): string[] {
  const owner = new Map<string, string>()
  const problems: string[] = []
  for (const { name, writeKeys } of file.sources) {
    for (const key of Array.isArray(writeKeys) ? (writeKeys as unknown[]) : []) {
      const other = owner.get(String(key))
      if (other !== undefined && other !== name) problems.push(`source ${name}: source ${other} in the file has the same write key.`)
      owner.set(String(key), name)
    }
  }
  for (const stored of entries.sources) {
    const inFile = file.sources.find(({ name }) => name === stored['name'])
    const keeps = inFile === undefined || inFile['writeKeys'] === undefined
    for (const key of keeps ? ((stored['writeKeys'] ?? []) as string[]) : []) {
      const other = owner.get(key)
      if (other !== undefined && other !== stored['name'])
        problems.push(
          `source ${other}: the installed source ${String(stored['name'])} has this write key.${prune ? ' Delete that source first.' : ''}`,
        )
    }
  }
  return problems
}

/** Finds destinations whose `deadLetter` leads back to them, which is not allowed. */
function deadLetterCycles({ destinations }: ConfigurationFile): string[] {
  const next = new Map(destinations.map(({ name, deadLetter }) => [name, deadLetter]))
  return destinations.flatMap(({ name }) => {
    const seen = new Set<unknown>()
    let at: unknown = next.get(name)
    while (typeof at === 'string' && at !== name && !seen.has(at)) {
      seen.add(at)
      at = next.get(at)
    }
    return at === name
      ? [`destination ${name}: deadLetter must not lead back to the same destination (${[name, ...seen, name].join(' → ')}).`]
      : []
  })
}

function shownChange(field: string, before: unknown, after: unknown): Change['fields'][number] {
  const [left, right] = [shown(field, before), shown(field, after)]
  return { field, before: left, after: left === right ? `${right} (changed)` : right }
}

function shown(field: string, value: unknown): string | null {
  if (value === undefined) return null
  if (field === 'urls' && Array.isArray(value))
    return JSON.stringify(value.map((url) => (typeof url === 'string' ? urlText(url, () => HIDDEN) : url)))
  if (field === 'headers' && isObject(value)) return JSON.stringify(hiddenValues(value))
  if (field === 'settings' && isObject(value)) return JSON.stringify(hiddenSettings(value))
  if (field === 'subscriptions' && Array.isArray(value)) return JSON.stringify(hiddenSubscriptions(value))
  if (field === 'request' && isObject(value) && isObject(value['headers']))
    return JSON.stringify({
      ...value,
      ...(typeof value['path'] === 'string' ? { path: hiddenPath([], value['path'], () => HIDDEN) } : {}),
      ...hiddenMapping({ body: value['body'] ?? null }),
      headers: hiddenHeaders(value['headers']),
    })
  if (field === 'auth' && isObject(value)) {
    const { username, tokenUrl, ...rest } = value
    return JSON.stringify({
      ...rest,
      ...(username === undefined ? {} : { username: HIDDEN }),
      ...(typeof tokenUrl === 'string' ? { tokenUrl: urlText(tokenUrl, () => HIDDEN) } : {}),
    })
  }
  return JSON.stringify(value)
}

function hiddenHeaders(headers: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, isTemplateOnly(String(value)) ? value : HIDDEN]))
}

function hiddenValues(headers: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, HIDDEN]))
}
