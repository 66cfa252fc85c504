// The configuration of an installation as one file: sources, destinations and OAuth applications by name, so that the same
// file works on another installation. Which fields there are and what their defaults are is the service's to say, by the
// schema that it gives out; here is only what a file adds: names instead of ids, references instead of secrets.

import type { JsonObject } from '@switchyard/protocol'
import type { Api } from './api.ts'
import { CommandProblem, EXIT } from './problem.ts'
import { escapeReferences, soundsSecret, VariableNames } from './references-to-secrets.ts'

export const KINDS = ['sources', 'destinations', 'oauthApps'] as const
export type Kind = (typeof KINDS)[number]
export const PATHS: Record<Kind, string> = { sources: '/api/sources', destinations: '/api/destinations', oauthApps: '/api/oauth-apps' }
export const NOUNS: Record<Kind, string> = { sources: 'source', destinations: 'destination', oauthApps: 'OAuth application' }

/** As JSON Schema has it, as far as it is looked at. */
export interface FieldSchema {
  properties?: Record<string, FieldSchema>
  items?: FieldSchema
  default?: unknown
}

export interface Installed {
  /** Of each kind, what an entry of the file may say. */
  schema: Record<Kind, Record<string, FieldSchema>>
  /** As the API shows them. */
  entries: Record<Kind, JsonObject[]>
}

export type Entry = Record<string, unknown> & { name: string }
export type ConfigurationFile = { version: 1 } & Record<Kind, Entry[]>

/** The secrets of a destination: said by reference, left alone where nothing is said. */
export const SECRETS = ['sharedSecret', 'signingSecrets'] as const

export async function readInstalled(api: Api): Promise<Installed & { document: JsonObject }> {
  const document = await api.get('/api/configuration/schema')
  const lists = (document['properties'] ?? {}) as Record<string, FieldSchema>
  const schema = {} as Installed['schema']
  const entries = {} as Installed['entries']
  for (const kind of KINDS) {
    schema[kind] = lists[kind]?.items?.properties ?? {}
    entries[kind] = []
    if (lists[kind] === undefined) continue
    for await (const entry of api.all(PATHS[kind])) entries[kind].push(entry)
  }
  return { schema, entries, document }
}

export function sourceNames({ entries }: Installed): Map<string, string> {
  return new Map(entries.sources.map(({ id, name }) => [String(id), String(name)]))
}

// ── Out ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Written {
  file: ConfigurationFile
  /** What must be set in the environment of whoever applies it elsewhere. */
  variables: string[]
}

/** In an order that does not change, without what has its default, with references where secrets are. */
export function configurationOf(installed: Installed, { withKeys }: { withKeys: boolean }): Written {
  const names = sourceNames(installed)
  const variables = new VariableNames()
  const given: string[] = []
  const reference = (thing: string, use: string): string => {
    const name = variables.name(thing, use)
    given.push(name)
    return `\${${name}}`
  }
  const file: ConfigurationFile = { version: 1, sources: [], destinations: [], oauthApps: [] }
  for (const kind of KINDS) {
    const sorted = [...installed.entries[kind]].sort((left, right) => (String(left['name']) < String(right['name']) ? -1 : 1))
    for (const stored of sorted) {
      const entry: Entry = { name: String(stored['name']) }
      for (const [field, schema] of Object.entries(installed.schema[kind])) {
        if (field === 'name' || (field === 'writeKeys' && !withKeys)) continue
        const value = fieldOf(kind, stored, field, names, reference)
        if (value === undefined || (field !== 'enabled' && same(value, schema.default))) continue
        entry[field] = value
      }
      file[kind].push(entry)
    }
  }
  return { file, variables: given }
}

type Reference = (thing: string, use: string) => string

function fieldOf(kind: Kind, stored: JsonObject, field: string, names: ReadonlyMap<string, string>, reference: Reference): unknown {
  const name = String(stored['name'])
  switch (field) {
    case 'sources':
      return namesOf(stored, names)
    case 'sharedSecret':
      return stored['hasSharedSecret'] === true ? reference(name, 'shared secret') : undefined
    case 'signingSecrets': {
      const count = Number(stored['signingSecretCount'] ?? 0)
      return count === 0
        ? undefined
        : Array.from({ length: count }, (_, index) => reference(name, index === 0 ? 'signing secret' : `signing secret ${index + 1}`))
    }
    case 'headers':
      return kind === 'destinations'
        ? Object.fromEntries(
            Object.entries((stored['headers'] ?? {}) as Record<string, string>).map(([header, value]) => [
              header,
              soundsSecret(header) ? reference(name, header) : escapeReferences(value),
            ]),
          )
        : stored[field]
    case 'urls':
      return ((stored['urls'] ?? []) as string[]).map((url) => urlText(url, (parameter) => reference(name, `URL ${parameter}`)))
    case 'keys':
      return keysOf(stored)
    default:
      return stored[field]
  }
}

export function namesOf(stored: JsonObject, names: ReadonlyMap<string, string>): string[] {
  return ((stored['sourceIds'] ?? []) as string[]).flatMap((id) => names.get(id) ?? []).sort()
}

/** Without when they were made. */
export function keysOf(stored: JsonObject): { id: string; publicKeyPem: string }[] {
  return ((stored['keys'] ?? []) as { id: string; publicKeyPem: string }[]).map(({ id, publicKeyPem }) => ({ id, publicKeyPem }))
}

/** With something else in the place of what a parameter of the query keeps secret. */
export function urlText(url: string, instead: (parameter: string) => string): string {
  const [start = '', query] = url.split(/\?(.*)/s)
  if (query === undefined) return escapeReferences(url)
  const parts = query.split('&').map((part) => {
    const [parameter = '', value] = part.split(/=(.*)/s)
    return value !== undefined && value !== '' && soundsSecret(parameter) ? `${parameter}=${instead(parameter)}` : escapeReferences(part)
  })
  return `${escapeReferences(start)}?${parts.join('&')}`
}

// ── In ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Takes what YAML made of a file. Throws a CommandProblem that says what is wrong with the whole. */
export function parseConfigurationFile(value: unknown, path: string): ConfigurationFile {
  const wrong = (sentence: string): CommandProblem => new CommandProblem(`${path}: ${sentence}`, EXIT.usage)
  if (!isObject(value)) throw wrong('the file must be a YAML mapping with version, sources, destinations and oauthApps.')
  if (value['version'] !== 1) throw wrong('version must be 1.')
  for (const key of Object.keys(value))
    if (key !== 'version' && !KINDS.some((kind) => kind === key)) throw wrong(`${key} is not known here.`)
  const file: ConfigurationFile = { version: 1, sources: [], destinations: [], oauthApps: [] }
  for (const kind of KINDS) {
    const list = value[kind] ?? []
    if (!Array.isArray(list)) throw wrong(`${kind} must be a list.`)
    const seen = new Set<string>()
    for (const [index, entry] of list.entries()) {
      if (!isObject(entry) || typeof entry['name'] !== 'string') throw wrong(`${kind}[${index}] must have a name.`)
      if (Object.hasOwn(entry, '__proto__')) throw wrong(`${kind}[${index}]: __proto__ is not known here.`)
      if (seen.has(entry['name'])) throw wrong(`${kind}[${index}]: ${entry['name']} is there twice. Names tell entries apart.`)
      seen.add(entry['name'])
      file[kind].push(entry as Entry)
    }
  }
  return file
}

/** What the file does not say has its default, in objects within as well. */
export function withDefaults(value: unknown, schema: FieldSchema): unknown {
  if (value === undefined) return structuredClone(schema.default)
  if (!isObject(value) || schema.properties === undefined) return value
  const filled: Record<string, unknown> = { ...value }
  for (const [name, field] of Object.entries(schema.properties)) {
    const inner = withDefaults(Object.hasOwn(value, name) ? value[name] : undefined, field)
    if (inner !== undefined) filled[name] = inner
  }
  return filled
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whatever the order of the fields. */
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
