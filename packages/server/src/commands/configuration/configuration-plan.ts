// What a configuration file would change, worked out before anything is: each entry beside the one of its name that is there,
// field by field. All that is wrong is found at once. No secret is part of what is shown.

import type { JsonObject } from '@switchyard/protocol'
import {
  type ConfigurationFile,
  type Entry,
  type Installed,
  isObject,
  KINDS,
  type Kind,
  keysOf,
  NOUNS,
  namesOf,
  same,
  sourceNames,
  urlText,
} from '../../api/configuration-export.ts'
import { type Environment, onlyReference, resolve, valueOf } from '../../api/environment-references.ts'
import { SECRETS, withDefaults } from './configuration-file.ts'

export interface Change {
  action: 'create' | 'update' | 'delete'
  kind: Kind
  name: string
  /** Of the one that is there. */
  id: string | null
  /** What is sent: everything when it is created, else what changes. Sources by name, under `sources`. */
  settings: Record<string, unknown>
  /** As shown. */
  fields: { field: string; before: string | null; after: string | null }[]
}

export interface Plan {
  changes: Change[]
  /** There, but not in the file. */
  unmanaged: { kind: Kind; name: string; id: string }[]
  problems: string[]
  /** Secrets that are left alone because their variable is not set. */
  remarks: string[]
  /** What to have checked by the service, in the order of the file. */
  wanted: Record<Kind, { id: string | null; settings: Record<string, unknown> }[]>
}

const HIDDEN = '•••'

export function planChanges(file: ConfigurationFile, installed: Installed, env: Environment, prune: boolean): Plan {
  const plan: Plan = { changes: [], unmanaged: [], problems: [], remarks: [], wanted: { sources: [], destinations: [], oauthApps: [] } }
  const names = sourceNames(installed)
  const known = new Set([...file.sources.map(({ name }) => name), ...(prune ? [] : names.values())])
  for (const kind of KINDS) {
    const inFile = new Set(file[kind].map(({ name }) => name))
    for (const entry of file[kind]) {
      const found = installed.entries[kind].filter(({ name }) => name === entry.name)
      if (found.length > 1) {
        plan.problems.push(`${NOUNS[kind]} ${entry.name}: several have this name. Give them different ones first.`)
        continue
      }
      const change = changeOf({ kind, entry, stored: found[0], installed, names, known, env, plan })
      if (change !== null) plan.changes.push(change)
    }
    for (const { id, name } of installed.entries[kind]) {
      if (inFile.has(String(name))) continue
      if (prune) plan.changes.push({ action: 'delete', kind, name: String(name), id: String(id), settings: {}, fields: [] })
      else plan.unmanaged.push({ kind, name: String(name), id: String(id) })
    }
  }
  plan.problems.push(...takenKeys(file, installed, prune))
  return plan
}

interface About {
  kind: Kind
  entry: Entry
  stored: JsonObject | undefined
  installed: Installed
  names: ReadonlyMap<string, string>
  known: ReadonlySet<string>
  env: Environment
  plan: Plan
}

function changeOf(about: About): Change | null {
  const { kind, entry, stored, installed, names, known, env, plan } = about
  const where = `${NOUNS[kind]} ${entry.name}`
  const problem = (sentence: string): void => void plan.problems.push(`${where}: ${sentence}`)
  const wanted: Record<string, unknown> = {}
  const fields: Change['fields'] = []
  const settings: Record<string, unknown> = {}
  const schema = installed.schema[kind]
  for (const field of Object.keys(entry)) if (!Object.hasOwn(schema, field)) problem(`${field} is not a field that is known here.`)

  for (const [field, fieldSchema] of Object.entries(schema)) {
    const given = Object.hasOwn(entry, field) ? entry[field] : undefined
    if ((SECRETS as readonly string[]).includes(field)) {
      const secret = secretOf(field, given, env)
      if ('problem' in secret) problem(secret.problem)
      else if ('unset' in secret) {
        const names = secret.unset.join(', ')
        if (stored === undefined || !hasSecret(stored, field))
          problem(`${field}: ${names} is not set, and there is no secret that could stay.`)
        else plan.remarks.push(`${where}: ${field} stays as it is, because ${names} is not set.`)
      } else if (secret.value !== undefined) wanted[field] = secret.value
      continue
    }
    // Keys that the file does not name stay, and a new source makes its own.
    if (field === 'writeKeys' && given === undefined) continue
    const value = resolved(field, withDefaults(given, fieldSchema), stored, env, problem)
    if (value === undefined) continue
    if (field === 'sources') {
      if (!Array.isArray(value)) problem('sources must be a list of names.')
      else
        for (const name of value)
          if (!known.has(String(name))) problem(`there is no source ${String(name)}, neither in the file nor installed.`)
    } else wanted[field] = value
    const before = stored === undefined ? undefined : storedValue(field, stored, names)
    const after = field === 'keys' ? withIds(value, before) : field === 'sources' && Array.isArray(value) ? value.map(String).sort() : value
    if (field === 'keys') wanted[field] = after
    if (stored !== undefined && same(before, after)) continue
    settings[field] = after
    if (stored !== undefined || (field !== 'name' && !same(after, fieldSchema.default))) fields.push(shownChange(field, before, after))
  }
  plan.wanted[kind].push({ id: stored === undefined ? null : String(stored['id']), settings: wanted })
  if (stored === undefined) {
    for (const field of SECRETS) {
      if (wanted[field] === undefined) continue
      settings[field] = wanted[field]
      fields.push({ field, before: null, after: HIDDEN })
    }
    return { action: 'create', kind, name: entry.name, id: null, settings, fields }
  }
  return fields.length === 0 ? null : { action: 'update', kind, name: entry.name, id: String(stored['id']), settings, fields }
}

/** The service alone can tell whether a secret differs; told by it, the plan takes it up. */
export function addChangedSecrets(
  plan: Plan,
  file: ConfigurationFile,
  changed: readonly { kind: Kind; index: number; fields: string[] }[],
): void {
  for (const { kind, index, fields } of changed) {
    const wanted = plan.wanted[kind][index]
    const name = file[kind][index]?.name
    if (wanted === undefined || name === undefined || wanted.id === null) continue
    let change = plan.changes.find((known) => known.kind === kind && known.id === wanted.id)
    if (change === undefined) {
      change = { action: 'update', kind, name, id: wanted.id, settings: {}, fields: [] }
      plan.changes.push(change)
    }
    for (const field of fields) {
      change.settings[field] = wanted.settings[field]
      change.fields.push({ field, before: HIDDEN, after: `${HIDDEN} (another)` })
    }
  }
}

type Secret = { value: unknown } | { unset: string[] } | { problem: string }

function secretOf(field: string, given: unknown, env: Environment): Secret {
  if (given === undefined) return { value: undefined }
  const problem = `${field} must be ${field === 'sharedSecret' ? 'a reference' : 'a list of references'} such as \${NAME}: the file must not hold secrets.`
  if (field === 'sharedSecret') {
    if (given === null) return { value: null }
    const name = onlyReference(given)
    if (name === undefined) return { problem }
    const value = valueOf(name, env)
    return value === undefined ? { unset: [name] } : { value }
  }
  if (!Array.isArray(given)) return { problem }
  const references = given.map(onlyReference)
  if (references.includes(undefined)) return { problem }
  const unset = (references as string[]).filter((name) => valueOf(name, env) === undefined)
  if (unset.length > 0 && unset.length < references.length)
    return { problem: `${field}: set all of the variables or none; ${unset.join(', ')} is not set.` }
  return unset.length > 0 ? { unset } : { value: (references as string[]).map((name) => valueOf(name, env)) }
}

function hasSecret(stored: JsonObject, field: string): boolean {
  return field === 'sharedSecret' ? stored['hasSharedSecret'] === true : Number(stored['signingSecretCount'] ?? 0) > 0
}

/** With what the environment says in the place of references. */
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
    problem(`${place}: ${result.missing.join(', ')} is not set, and nothing that is stored could stay.`)
    return given
  }
  if (field === 'urls' && Array.isArray(value)) {
    const kept = (stored?.['urls'] ?? []) as string[]
    // The one in the same place first: several may differ in nothing but what their variables say.
    return value.map((url, index) => text(url, `urls[${index}]`, [...kept.slice(index, index + 1), ...kept]))
  }
  if (field === 'headers' && isObject(value)) {
    const kept = (stored?.['headers'] ?? {}) as Record<string, string>
    return Object.fromEntries(
      Object.entries(value).map(([name, header]) => [
        name,
        text(header, `headers.${name}`, Object.hasOwn(kept, name) ? [kept[name] as string] : []),
      ]),
    )
  }
  return value
}

function storedValue(field: string, stored: JsonObject, names: ReadonlyMap<string, string>): unknown {
  if (field === 'sources') return namesOf(stored, names)
  return field === 'keys' ? keysOf(stored) : stored[field]
}

/** A key that the file gives without an id is the one that is there, if it is the same key. */
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

/** A key has one source: two that would have it are told before anything is changed. */
function takenKeys(file: ConfigurationFile, { entries }: Installed, prune: boolean): string[] {
  const owner = new Map<string, string>()
  const problems: string[] = []
  for (const { name, writeKeys } of file.sources) {
    for (const key of Array.isArray(writeKeys) ? (writeKeys as unknown[]) : []) {
      const other = owner.get(String(key))
      if (other !== undefined && other !== name) problems.push(`source ${name}: source ${other} has the same write key.`)
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
          `source ${other}: source ${String(stored['name'])} has this write key${prune ? ', until it is deleted: do that first' : ''}.`,
        )
    }
  }
  return problems
}

function shownChange(field: string, before: unknown, after: unknown): Change['fields'][number] {
  const [left, right] = [shown(field, before), shown(field, after)]
  return { field, before: left, after: left === right ? `${right} (another)` : right }
}

function shown(field: string, value: unknown): string | null {
  if (value === undefined) return null
  if (field === 'urls' && Array.isArray(value))
    return JSON.stringify(value.map((url) => (typeof url === 'string' ? urlText(url, () => HIDDEN) : url)))
  if (field === 'headers' && isObject(value)) return JSON.stringify(Object.fromEntries(Object.keys(value).map((name) => [name, HIDDEN])))
  return JSON.stringify(value)
}
