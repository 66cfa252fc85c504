// The configuration of an installation as a YAML file, for `switchyard export` and GET /api/configuration: sources, destinations and OAuth
// applications by name, in a stable order. Secrets, and values that may be secrets (header values and query values of URLs), are replaced by
// references to environment variables. The schema of the file defines its fields and their defaults.

import type { JsonObject } from '@switchyard/protocol'
import { HIDDEN, hiddenPath, withPathTokens } from '../secrets/hidden-url.ts'
import { hiddenSettings, isTemplateOnly, replacedTexts } from '../secrets/hidden-values.ts'
import { escapeReferences, VariableNames } from './environment-references.ts'
import { isMaskedWriteKey } from './write-key-mask.ts'

export const KINDS = ['sources', 'destinations', 'oauthApps', 'plans'] as const
export type Kind = (typeof KINDS)[number]
export const NOUNS: Record<Kind, string> = {
  sources: 'source',
  destinations: 'destination',
  oauthApps: 'OAuth application',
  plans: 'tracking plan',
}

/** The parts of a JSON Schema that are used here. */
export interface FieldSchema {
  properties?: Record<string, FieldSchema>
  items?: FieldSchema
  /** The alternatives of an object, each with a different `type`. */
  oneOf?: FieldSchema[]
  enum?: unknown[]
  default?: unknown
}

export interface Installed {
  /** The fields that an entry of the file may have, for each kind. */
  schema: Record<Kind, Record<string, FieldSchema>>
  kinds: DestinationKinds
  /** The resources as the API returns them. */
  entries: Record<Kind, JsonObject[]>
}

export type Entry = Record<string, unknown> & { name: string }
export type ConfigurationFile = { version: 1 } & Record<Kind, Entry[]>

/** The names of resources by id. A file refers to sources and to the destination for dead letters by name. */
export type Names = Readonly<Record<'sources' | 'destinations', ReadonlyMap<string, string>>>

export function namesIn({ entries }: Installed): Names {
  const byId = (resources: readonly JsonObject[]): Map<string, string> =>
    new Map(resources.map(({ id, name }) => [String(id), String(name)]))
  return { sources: byId(entries.sources), destinations: byId(entries.destinations) }
}

/** Settings that contain secrets: for each secret, the field of the response that says whether it is stored. */
export const NESTED_SECRETS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  auth: { password: 'hasPassword', token: 'hasToken', clientSecret: 'hasClientSecret' },
  tls: { privateKey: 'hasPrivateKey' },
}

export interface ExportedConfiguration {
  file: ConfigurationFile
  /** The environment variables that must be set to apply the file elsewhere. */
  variables: string[]
}

/** Every installation has the built-in source, so a file does not contain it. */
export function isManaged(stored: JsonObject): boolean {
  return stored['builtIn'] !== true
}

/** Sorted by name, without fields that have their default value, and with references instead of secrets. */
export function configurationOf(installed: Installed, { withKeys }: { withKeys: boolean }): ExportedConfiguration {
  const names = namesIn(installed)
  const variables = new VariableNames()
  const given: string[] = []
  const reference = (thing: string, use: string): string => {
    const name = variables.name(thing, use)
    given.push(name)
    return `\${${name}}`
  }
  const file: ConfigurationFile = { version: 1, sources: [], destinations: [], oauthApps: [], plans: [] }
  for (const kind of KINDS) {
    const sorted = installed.entries[kind].filter(isManaged).sort((left, right) => (String(left['name']) < String(right['name']) ? -1 : 1))
    for (const stored of sorted) {
      const entry: Entry = { name: String(stored['name']) }
      for (const [field, schema] of Object.entries(installed.schema[kind])) {
        if (field === 'name' || (field === 'writeKeys' && (!withKeys || hasMaskedKeys(stored)))) continue
        if (isOfOtherKind(field, stored, installed)) continue
        const value = fieldOf(kind, stored, field, names, reference)
        if (value === undefined || (field !== 'enabled' && same(value, defaultOf(field, schema, stored, installed)))) continue
        entry[field] = value
      }
      file[kind].push(entry)
    }
  }
  return { file, variables: given }
}

/** A viewer gets only the ends of write keys, which must not be applied as keys. */
export function hasMaskedKeys(stored: JsonObject): boolean {
  const keys = stored['writeKeys']
  return Array.isArray(keys) && keys.some((key) => isMaskedWriteKey(String(key)))
}

/** What differs between the kinds of destination, by type. */
export type DestinationKinds = Readonly<Record<string, { settings: readonly string[]; timeoutMs: number }>>

/** `entry` is a destination in a file or a response. In a file, it is a webhook if it has no type. */
export function isOfOtherKind(field: string, entry: Readonly<Record<string, unknown>>, { kinds }: Pick<Installed, 'kinds'>): boolean {
  const own = entry['type'] ?? 'webhook'
  return Object.entries(kinds).some(([type, { settings }]) => type !== own && settings.includes(field))
}

/** The schema has the defaults of the kind that a destination is of by default. */
export function defaultOf(
  field: string,
  schema: FieldSchema,
  entry: Readonly<Record<string, unknown>>,
  { kinds }: Pick<Installed, 'kinds'>,
): unknown {
  return field === 'timeoutMs' ? (kinds[String(entry['type'])]?.timeoutMs ?? schema.default) : schema.default
}

type Reference = (thing: string, use: string) => string

function fieldOf(kind: Kind, stored: JsonObject, field: string, names: Names, reference: Reference): unknown {
  const name = String(stored['name'])
  switch (field) {
    case 'sources':
    case 'deadLetter':
      return namedField(field, stored, names)
    case 'auth':
    case 'tls':
      return withReferences(field, stored[field], (use) => reference(name, use))
    case 'sharedSecret':
      return stored['hasSharedSecret'] === true ? reference(name, 'shared secret') : undefined
    case 'signingSecrets': {
      const count = Number(stored['signingSecretCount'] ?? 0)
      return count === 0
        ? undefined
        : Array.from({ length: count }, (_, index) => reference(name, index === 0 ? 'signing secret' : `signing secret ${index + 1}`))
    }
    case 'headers':
      return kind === 'destinations' ? headersOf(stored, (header) => reference(name, header)) : stored[field]
    case 'request': {
      const request = stored['request']
      return isObject(request)
        ? requestOf(request, (stored['urls'] ?? []) as string[], (use) => reference(name, `request ${use}`))
        : request
    }
    case 'secrets':
      return secretsOf(stored, (secret) => reference(name, secret))
    case 'urls':
      return ((stored['urls'] ?? []) as string[]).map((url) => urlText(url, (parameter) => reference(name, `URL ${parameter}`)))
    case 'settings':
      return settingsOf(stored, (use) => reference(name, use))
    case 'subscriptions':
      return subscriptionsOf(stored, (use) => reference(name, use))
    case 'warehouse':
      return warehouseOf(stored, (use) => reference(name, use))
    case 'keys':
      return keysOf(stored)
    // The other name of retry.windowMs.
    case 'retryWindowMs':
      return undefined
    default:
      return stored[field]
  }
}

function headersOf({ headers }: JsonObject, referenceTo: (header: string) => string): Record<string, string> {
  const entries = Object.entries((headers ?? {}) as Record<string, string>)
  // An empty environment variable counts as not set, so an empty value is written literally.
  return Object.fromEntries(entries.map(([header, value]) => [header, value === '' ? '' : referenceTo(header)]))
}

/** Header values that consist of placeholders are no secrets. Constants of the mapping and parts of the path that may be credentials become references. */
function requestOf(request: JsonObject, urls: readonly string[], referenceTo: (use: string) => string): JsonObject {
  const entries = Object.entries((request['headers'] ?? {}) as Record<string, string>).map(([header, value]) => [
    header,
    value === '' || isTemplateOnly(value) ? escapeReferences(value) : referenceTo(header),
  ])
  const texts = { hidden: (field: string) => referenceTo(`body ${field}`), plain: escapeReferences }
  const given = request['body'] ?? null
  const body = isObject(given) ? replacedTexts(given, texts) : replacedTexts({ body: given }, texts)['body']
  const path = hiddenPath(urls, escapeReferences(String(request['path'] ?? '')), () => referenceTo('path'))
  return { ...request, path, headers: Object.fromEntries(entries) as JsonObject, ...(given === null ? {} : { body }) }
}

/** The names of the environment variables are in one word, such as ROUTING_KEY for routingKey. */
function secretsOf({ secrets }: JsonObject, referenceTo: (secret: string) => string): Record<string, string> {
  const names = Object.keys((secrets ?? {}) as JsonObject)
  return Object.fromEntries(names.map((name) => [name, referenceTo(name.replaceAll(/(?<=[a-z0-9])[A-Z]/g, ' $&'))]))
}

/** The place of a warehouse. Its secret becomes a reference; the password of PostgreSQL does so inside the URL. */
function warehouseOf({ warehouse, secretSettings }: JsonObject, referenceTo: (use: string) => string): Record<string, unknown> {
  const shown = Object.entries((warehouse ?? {}) as JsonObject).filter(([, value]) => value !== null && value !== false)
  const entries = shown.map(([name, value]) => {
    if (typeof value !== 'string') return [name, value]
    const parts = value.split(HIDDEN)
    return [name, parts.map(escapeReferences).join(parts.length > 1 ? referenceTo('warehouse password') : '')]
  })
  const secret = ((secretSettings ?? []) as string[])
    .filter((name) => name !== 'url')
    .map((name) => [name, referenceTo(`warehouse ${name}`)])
  return Object.fromEntries([...entries, ...secret]) as Record<string, unknown>
}

/** The settings of an integration. Secrets, and values that may be secrets, become references. */
function settingsOf({ settings, secretSettings }: JsonObject, referenceTo: (use: string) => string): Record<string, unknown> {
  const shown = Object.entries((settings ?? {}) as JsonObject).map(([name, value]) => {
    const hidden = hiddenSettings({ [name]: value })[name]
    return [name, hidden !== value ? referenceTo(name) : typeof value === 'string' ? escapeReferences(value) : value]
  })
  const secret = ((secretSettings ?? []) as string[]).map((name) => [
    name,
    name === 'oauth' ? Object.fromEntries(OAUTH_SECRETS.map((part) => [part, referenceTo(`oauth ${part}`)])) : referenceTo(name),
  ])
  return Object.fromEntries([...shown, ...secret]) as Record<string, unknown>
}

/** The secrets in `settings.oauth`, of which an integration may need only some. */
export const OAUTH_SECRETS = ['clientId', 'clientSecret', 'refreshToken', 'accessToken'] as const

interface ShownSubscription {
  name: string
  action: string
  subscribe: string
  mapping: JsonObject
  syncMode?: string | null
  enabled: boolean
}

/** Subscriptions without their ids. Constants that may be credentials become references. */
function subscriptionsOf({ subscriptions }: JsonObject, referenceTo: (use: string) => string): object[] {
  return ((subscriptions ?? []) as ShownSubscription[]).map(({ name, action, subscribe, mapping, syncMode, enabled }) => ({
    name,
    action,
    subscribe: escapeReferences(subscribe),
    mapping: replacedTexts(mapping, { hidden: (field) => referenceTo(`${name} ${field}`), plain: escapeReferences }),
    // Null is the default.
    syncMode: syncMode ?? undefined,
    enabled,
  }))
}

/** A field that refers to other resources, with their names instead of their ids. */
export function namedField(field: 'sources' | 'deadLetter', stored: JsonObject, names: Names): string[] | string | null {
  if (field === 'sources') return ((stored['sourceIds'] ?? []) as string[]).flatMap((id) => names.sources.get(id) ?? []).sort()
  return names.destinations.get(String(stored['deadLetter'])) ?? null
}

/** `auth` or `tls` as in a response, with the fields of a request: without secrets, and without what only describes them. */
export function withoutSecrets(field: string, value: unknown): unknown {
  if (!isObject(value)) return value ?? null
  const shownOnly = new Set(['subject', 'expiresAt', ...Object.values(NESTED_SECRETS[field] ?? {})])
  return Object.fromEntries(Object.entries(value).filter(([name]) => !shownOnly.has(name)))
}

/** Fields without a value are left out: null is their default. */
function withReferences(field: 'auth' | 'tls', stored: unknown, referenceTo: (use: string) => string): unknown {
  const settings = withoutSecrets(field, stored)
  if (!isObject(stored) || !isObject(settings)) return null
  const entry: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(settings)) {
    if (value === null || (name === 'credentials' && value === 'basic')) continue
    // A user name can be an API key.
    if (name === 'username') entry[name] = value === '' ? '' : referenceTo('username')
    else entry[name] = name === 'tokenUrl' ? urlText(value as string, (parameter) => referenceTo(`token URL ${parameter}`)) : value
  }
  for (const [name, stores] of Object.entries(NESTED_SECRETS[field] ?? {})) {
    if (stored[stores] === true) entry[name] = referenceTo(name.replaceAll(/[A-Z]/g, ' $&'))
  }
  return entry
}

/** The keys without their creation times. */
export function keysOf(stored: JsonObject): { id: string; publicKeyPem: string }[] {
  return ((stored['keys'] ?? []) as { id: string; publicKeyPem: string }[]).map(({ id, publicKeyPem }) => ({ id, publicKeyPem }))
}

/** Replaces each query value of a URL, and parts of its path that look like tokens. A part without a name counts as a value. */
export function urlText(url: string, instead: (parameter: string) => string): string {
  const [address = '', query] = url.split(/\?(.*)/s)
  const [, origin = '', host = '', path = ''] = /^(https?:\/\/([^/]+))(.*)$/is.exec(address) ?? []
  const start = escapeReferences(origin) + withPathTokens(host, escapeReferences(path), () => instead('path'))
  if (query === undefined) return start
  const parts = query.split('&').map((part) => {
    const [parameter = '', value] = part.split(/=(.*)/s)
    if (value === undefined) return part === '' ? '' : instead('query')
    return value === '' ? escapeReferences(part) : `${escapeReferences(parameter)}=${instead(parameter)}`
  })
  return `${start}?${parts.join('&')}`
}

const HEADER = ` The configuration of a Switchyard installation, written by \`switchyard export\`.
 \`switchyard apply FILE --dry-run\` shows what would change; \`switchyard apply FILE\` makes the changes.
 Entries are identified by their names. A field that is left out gets its default; secrets and write keys that are left out are kept.
 \${NAME} is replaced with the environment variable NAME when the file is applied. If NAME is not set, the stored value is kept.`

export async function configurationText(file: ConfigurationFile): Promise<string> {
  const { Document } = await import('yaml')
  const document = new Document(file)
  document.commentBefore = HEADER
  return document.toString({ lineWidth: 0, blockQuote: 'literal' })
}

/** Returns an error message if two entries of a kind have the same name, because a file identifies entries by name. */
export function sameNames(file: ConfigurationFile): string | null {
  for (const kind of KINDS) {
    const names = file[kind].map(({ name }) => name)
    const twice = names.find((name, index) => names.indexOf(name) < index)
    if (twice !== undefined)
      return `More than one ${NOUNS[kind]} has the name ${twice}, and a configuration file identifies each by its name. Rename all but one first.`
  }
  return null
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether two values are equal, regardless of the order of fields. */
export function same(left: unknown, right: unknown): boolean {
  return JSON.stringify(ordered(left)) === JSON.stringify(ordered(right))
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((name) => [name, ordered(value[name])]),
  )
}
