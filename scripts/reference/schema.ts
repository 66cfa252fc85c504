// Shows schemas in the reference: the type of a value in a few words, its limits, a table of fields, and an example value.

import { code, table } from './markdown.ts'
import { type OpenApi, resolved, type SchemaNode, schemaName } from './openapi.ts'

const MAX_DEPTH = 4
const EXAMPLE_TIME = '2026-11-15T09:00:00.000Z'

/** Returns the link to a named schema, relative to the page that is being written. */
export type SchemaLink = (name: string) => string

/** Has a row for every field, also of nested objects: `batch.size`, `urls[].weight`. Named schemas are linked instead. The type is below
 * the name, not in a column of its own, so that the table fits on a phone. */
export function fieldTable(schema: SchemaNode, link: SchemaLink): string {
  const rows = fieldRows(schema, '', link)
  return rows.length === 0 ? 'Any JSON object.' : table(['Field', 'Meaning'], rows)
}

function fieldRows({ properties = {}, required = [] }: SchemaNode, prefix: string, link: SchemaLink): string[][] {
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = prefix + name
    const marks = [required.includes(name) ? ', required' : '', field.writeOnly ? ', write-only' : ''].join('')
    const nested = fieldRows(field.items ?? field, field.items === undefined ? `${path}.` : `${path}[].`, link)
    const variants = (field.oneOf ?? []).flatMap((variant) => fieldRows(variant, `${path}.`, link))
    return [[`${code(path)}<br>${typeText(field, link)}${marks}`, meaningText(field)]].concat(nested, variants)
  })
}

/** In a few words: `string or null`, `list of Source`. */
export function typeText(schema: SchemaNode, link: SchemaLink): string {
  const name = schemaName(schema)
  if (name !== undefined) return `[${name}](${link(name)})`
  if (schema.oneOf !== undefined) return [...new Set(schema.oneOf.map((one) => typeText(one, link)))].join(' or ')
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['any'])
  return types
    .map((type) => {
      if (type === 'array') return `list of ${schema.items === undefined ? 'any' : typeText(schema.items, link)}`
      if (type === 'object' && typeof schema.additionalProperties === 'object')
        return `object of ${typeText(schema.additionalProperties, link)}`
      return type === 'string' && schema.format === 'date-time' ? 'time' : type
    })
    .join(' or ')
}

/** The description of a field or parameter, and its limits. A list or map without a description has that of its entries. */
export function meaningText(schema: SchemaNode): string {
  const {
    description = entryDescription(schema),
    enum: values,
    default: fallback,
    minimum,
    maximum,
    minLength,
    maxLength,
    minItems,
    maxItems,
  } = schema
  const limits = [
    ...(values === undefined
      ? []
      : [
          `one of ${values
            .filter((value) => value !== null)
            .map(literal)
            .join(', ')}`,
        ]),
    ...(schema.const === undefined ? [] : [`always ${literal(schema.const)}`]),
    ...range(minimum, maximum, ''),
    ...range(minLength, maxLength, ' characters'),
    ...range(minItems, maxItems, ' entries'),
    // The fields of an object have their own defaults.
    ...(fallback === undefined || schema.properties !== undefined ? [] : [`default ${code(JSON.stringify(fallback))}`]),
  ]
  if (description === undefined) return limits.join('; ')
  return limits.length === 0 ? description : `${description} (${limits.join('; ')})`
}

function entryDescription({ items, additionalProperties }: SchemaNode): string | undefined {
  return items?.description ?? (typeof additionalProperties === 'object' ? additionalProperties.description : undefined)
}

function range(least: number | undefined, most: number | undefined, things: string): string[] {
  if (least === undefined && most === undefined) return []
  if (most === undefined && least === 1 && things !== '') return ['not empty']
  if (most === undefined) return [`at least ${number(least ?? 0)}${things}`]
  return [least === undefined ? `at most ${number(most)}${things}` : `${number(least)} to ${number(most)}${things}`]
}

function number(value: number): string {
  return value.toLocaleString('en-US')
}

function literal(value: unknown): string {
  return code(typeof value === 'string' ? value : JSON.stringify(value))
}

export function exampleOf(document: OpenApi, schema: SchemaNode, name = '', depth = 0): unknown {
  const own = resolved(document, schema)
  if (own.default !== undefined) return own.default
  if (own.const !== undefined) return own.const
  if (own.enum !== undefined) return own.enum[0]
  if (own.oneOf !== undefined) return exampleOf(document, own.oneOf[0] ?? {}, name, depth)
  const type = typeof own.type === 'string' ? own.type : own.type?.[0]
  switch (type) {
    case 'object': {
      if (depth > MAX_DEPTH) return {}
      const fields = Object.entries(own.properties ?? {})
      return Object.fromEntries(fields.map(([field, node]) => [field, exampleOf(document, node, field, depth + 1)]))
    }
    case 'array':
      return own.items === undefined ? [] : [exampleOf(document, own.items, name, depth + 1)]
    case 'integer':
    case 'number':
      return own.minimum ?? 0
    case 'boolean':
      return true
    case 'string':
      if (own.format === 'date-time' || name.endsWith('At')) return EXAMPLE_TIME
      return /^urls?$/.test(name) ? 'https://example.com/webhook' : '…'
    default:
      return null
  }
}
