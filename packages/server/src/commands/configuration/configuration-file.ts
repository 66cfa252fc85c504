// Reads the configuration of an installation, and validates the parsed YAML of a configuration file. Writing a file is in
// ../../api/configuration-export.ts. The fields and their defaults come from the schema that the service returns.

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
import { suggestion } from '../../api/nearest.ts'
import type { Api } from '../service/api.ts'
import { type CommandProblem, UsageProblem } from '../service/problem.ts'

export const PATHS: Record<Kind, string> = {
  sources: '/api/sources',
  destinations: '/api/destinations',
  oauthApps: '/api/oauth-apps',
  plans: '/api/plans',
}

/** The secrets of a destination. The file contains references to them; a secret that is left out stays unchanged. */
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
  // The kinds need many modules, which `switchyard --help` would load as well.
  const { KIND_SETTINGS } = await import('../../destinations/kinds.ts')
  return { schema, entries, kinds: KIND_SETTINGS, document }
}

/** Validates the structure of a parsed YAML file. Throws a CommandProblem if it is invalid. */
export function parseConfigurationFile(value: unknown, path: string): ConfigurationFile {
  const invalid = (sentence: string): CommandProblem => new UsageProblem(`${path}: ${sentence}`)
  if (!isObject(value)) throw invalid('the file must be a YAML mapping with the keys version, sources, destinations, oauthApps and plans.')
  if (value['version'] !== 1) throw invalid('version must be 1.')
  for (const key of Object.keys(value))
    if (key !== 'version' && !KINDS.some((kind) => kind === key)) {
      const meant = suggestion(key, KINDS)
      throw invalid(
        `unknown key ${key}. ${meant === undefined ? `The known keys are version, ${KINDS.join(', ')}.` : `Did you mean ${meant}?`}`,
      )
    }
  const file: ConfigurationFile = { version: 1, sources: [], destinations: [], oauthApps: [], plans: [] }
  for (const kind of KINDS) {
    const list = value[kind] ?? []
    if (!Array.isArray(list)) throw invalid(`${kind} must be a list.`)
    const seen = new Set<string>()
    for (const [index, entry] of list.entries()) {
      if (!isObject(entry) || typeof entry['name'] !== 'string') throw invalid(`${kind}[${index}] must have a name.`)
      if (Object.hasOwn(entry, '__proto__')) throw invalid(`${kind}[${index}]: unknown field __proto__.`)
      if (seen.has(entry['name'])) throw invalid(`${kind}[${index}]: the name ${entry['name']} is used twice. Names must be unique.`)
      seen.add(entry['name'])
      file[kind].push(withoutAlias(entry as Entry))
    }
  }
  return file
}

/** `retryWindowMs` is another name of `retry.windowMs`. If both are given and differ, the service says so. */
function withoutAlias({ retryWindowMs, ...entry }: Entry): Entry {
  if (retryWindowMs === undefined) return entry
  const retry = entry['retry'] ?? {}
  const windowMs = isObject(retry) ? (retry['windowMs'] ?? retryWindowMs) : undefined
  if (!isObject(retry) || windowMs !== retryWindowMs) return { ...entry, retryWindowMs }
  return { ...entry, retry: { ...retry, windowMs } }
}

/** Fills in the default of every field that is missing, also in nested objects. */
export function withDefaults(value: unknown, schema: FieldSchema): unknown {
  if (value === undefined) return structuredClone(schema.default)
  if (Array.isArray(value) && schema.items !== undefined) return value.map((entry) => withDefaults(entry, schema.items as FieldSchema))
  if (!isObject(value)) return value
  const { properties } = schema.oneOf?.find((variant) => variant.properties?.['type']?.enum?.includes(value['type'])) ?? schema
  if (properties === undefined) return value
  const filled: Record<string, unknown> = { ...value }
  for (const [name, field] of Object.entries(properties)) {
    const inner = withDefaults(Object.hasOwn(value, name) ? value[name] : undefined, field)
    if (inner !== undefined) filled[name] = inner
  }
  return filled
}
