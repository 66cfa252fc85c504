// The configuration of an installation as a file, as commands read it: what is installed, and what YAML made of a file. How a file is
// written is in ../../api/configuration-export.ts. Which fields there are and what their defaults are is the service's to say, by the schema that
// it gives out.

import type { JsonObject } from '@switchyard/protocol'
import {
  type ConfigurationFile,
  type Entry,
  type FieldSchema,
  type Installed,
  isObject,
  KINDS,
  type Kind,
} from '../../api/configuration-export.ts'
import { CommandProblem, EXIT } from '../line/problem.ts'
import type { Api } from '../service/api.ts'

export const PATHS: Record<Kind, string> = { sources: '/api/sources', destinations: '/api/destinations', oauthApps: '/api/oauth-apps' }

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
