// Fields on the command line, from the tables that the service uses too: the flags of a resource and of the filters of a list, the request
// that they make, and the lines that show a resource.

import type { JsonObject } from '@switchyard/protocol'
import type { Fields, JsonSchema } from '../../api/schema.ts'
import type { Query } from '../service/api.ts'
import { type Call, type Flag, UsageProblem } from './command.ts'
import { PERIOD_FLAGS, periodOf, showFacts, time } from './listing.ts'
import { optionalId } from './references.ts'
import { durationText, parseCount, parseDuration } from './times.ts'

const BOOLEANS = ['true', 'false'] as const

type Settings = { readonly fields: Fields }

/** The flags for the fields that are a text, a choice, a number or a boolean, also inside objects. Others need flags of their own. */
export function flagsFor({ fields }: Settings): Record<string, Flag> {
  return Object.fromEntries(simpleFields(fields).map(({ field, schema }) => [flagName(field), flagOf(field, schema)]))
}

/** The fields whose flags were given. */
export function bodyFrom(call: Call, { fields }: Settings): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const { field, path, schema } of simpleFields(fields)) {
    if (!call.has(flagName(field))) continue
    const parent = path.slice(0, -1).reduce((within, name) => (within[name] ??= {}) as typeof body, body)
    parent[path.at(-1) as string] = valueOf(call, field, schema)
  }
  return body
}

function valueOf(call: Call, field: string, schema: JsonSchema): unknown {
  const flag = flagName(field)
  const text = call.flag(flag) ?? ''
  if (isOfType(schema, 'boolean')) return text !== 'false'
  if (isDuration(field)) return parseDuration(flag, text)
  if (isOfType(schema, 'integer')) return parseCount(flag, text)
  if (isOfType(schema, 'number')) return Number(text)
  return text === '' && isOfType(schema, 'null') ? null : text
}

/** The same, or a CommandProblem if there are none. */
export function changesFrom(call: Call, settings: Settings, others: Record<string, unknown>, otherFlags: readonly string[]): object {
  const body = { ...bodyFrom(call, settings), ...others }
  if (Object.keys(body).length > 0) return body
  const flags = [...Object.keys(flagsFor(settings)), ...otherFlags].map((flag) => `--${flag}`)
  throw new UsageProblem(`Nothing to change: use ${flags.slice(0, -1).join(', ')} or ${flags.at(-1)}.`)
}

/** Filters that name a resource, which the command line accepts by name too. */
const REFERENCES = { sourceId: 'source', destinationId: 'destination' } as const
const PERIOD = new Set(['from', 'to'])

/** The flags for the filters of a list. */
export function filterFlags(filters: Fields): Record<string, Flag> {
  const flags = Object.entries(filters).flatMap(([name, filter]): [string, Flag][] => {
    if (PERIOD.has(name)) return [[name, PERIOD_FLAGS[name] as Flag]]
    const flag = flagOf(name, filter.toJsonSchema())
    if (!isReference(name)) return [[flagName(name), flag]]
    const kind = REFERENCES[name]
    return [[kind, { placeholder: kind.toUpperCase(), description: flag.description.replace(/\.$/, ', by id or name.') }]]
  })
  return Object.fromEntries(flags)
}

/** The query parameters for the flags that were given. */
export async function filtersFrom(call: Call, filters: Fields): Promise<Query> {
  const query: Record<string, string | undefined> = 'from' in filters ? periodOf(call) : {}
  for (const name of Object.keys(filters)) {
    if (PERIOD.has(name)) continue
    query[name] = isReference(name) ? await optionalId(call.api, REFERENCES[name], call.flag(REFERENCES[name])) : call.flag(flagName(name))
  }
  return query
}

function isReference(name: string): name is keyof typeof REFERENCES {
  return Object.hasOwn(REFERENCES, name)
}

/** How a field is shown: another label, another value, or not at all. */
export type Shown = Readonly<Record<string, null | { label?: string; value?: (value: unknown) => unknown }>>

/** Shows a resource with a line for each field that has a value. */
export function showResource({ json, out }: Call, fields: Fields, resource: JsonObject, shown: Shown): void {
  if (json) return out.json(resource)
  const facts = Object.entries(fields).flatMap(([name, schema]): [string, unknown][] => {
    const how = shown[name]
    if (how === null) return []
    const value = resource[name] ?? undefined
    const isTime = schema.toJsonSchema()['format'] === 'date-time'
    return [[how?.label ?? words(name), how?.value?.(value) ?? (isTime ? time(value) : value)]]
  })
  showFacts(out, facts)
}

interface SimpleField {
  /** `retry-windowMs` for a field of an object. */
  field: string
  path: readonly string[]
  schema: JsonSchema
}

function simpleFields(fields: Fields): SimpleField[] {
  return Object.entries(fields).flatMap(([name, schema]) => simpleParts([name], schema.toJsonSchema()))
}

function simpleParts(path: readonly string[], schema: JsonSchema): SimpleField[] {
  if (isOfType(schema, 'string', 'boolean', 'integer', 'number')) return [{ field: path.join('-'), path, schema }]
  const parts = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>)
  return parts.flatMap(([name, part]) => simpleParts([...path, name], part))
}

function flagOf(field: string, schema: JsonSchema): Flag {
  const { description, enum: values, default: fallback } = schema as { description: string; enum?: readonly string[]; default?: unknown }
  // A switch that is off by default needs no value.
  if (isOfType(schema, 'boolean'))
    return fallback === false ? { placeholder: null, description } : { placeholder: 'BOOLEAN', description, values: BOOLEANS }
  if (isOfType(schema, 'integer', 'number')) return numberFlag(field, schema as NumberSchema)
  return {
    placeholder: flagName(field).replaceAll('-', '_').toUpperCase(),
    description: isOfType(schema, 'null') && !('default' in schema) ? `${description} An empty text removes it.` : description,
    ...(values === undefined ? {} : { values }),
  }
}

type NumberSchema = { description: string; minimum: number; maximum: number; default?: number }

function numberFlag(field: string, { description, minimum, maximum, default: fallback }: NumberSchema): Flag {
  const text = isDuration(field) ? durationText : String
  return {
    placeholder: isDuration(field) ? 'DURATION' : 'NUMBER',
    description: `${description} From ${text(minimum)} to ${text(maximum)}.`,
    ...(fallback === undefined ? {} : { defaultText: text(fallback) }),
  }
}

/** A duration is in milliseconds, and its field has a name such as `windowMs`. */
function isDuration(field: string): boolean {
  return field.endsWith('Ms')
}

function isOfType({ type }: JsonSchema, ...wanted: readonly string[]): boolean {
  return wanted.some((each) => (Array.isArray(type) ? type.includes(each) : type === each))
}

/** requireOAuth → require-oauth, timeoutMs → timeout */
function flagName(field: string): string {
  return field
    .replace(/Ms$/, '')
    .replaceAll(/(?<=[a-z])[A-Z]/g, '-$&')
    .toLowerCase()
}

/** writeKeys → write keys */
function words(field: string): string {
  return field.replaceAll(/(?<=[a-z])[A-Z]/g, ' $&').toLowerCase()
}
