// A JSON Schema as rows of a table that people can read: a row per property, with its type and its limits in words. Keywords that no row can
// express are named, so that nothing is hidden; the schema itself is shown beside the table. Pure.

export interface SchemaRow {
  /** `address.city`, `products[].price`. */
  path: string
  type: string
  isRequired: boolean
  /** In words, for example `one of "EUR", "USD"`. */
  limits: string[]
  description: string
}

type Schema = Readonly<Record<string, unknown>>

const MAX_DEPTH = 8
const MAX_ROWS = 500
const MAX_VALUES = 8

/** Keywords that the rows express, or that have no effect. */
const SHOWN = new Set(
  '$schema $id $comment title description default examples deprecated type enum const format pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems uniqueItems properties required items additionalProperties'.split(
    ' ',
  ),
)

export function schemaRows(schema: unknown): SchemaRow[] {
  const rows: SchemaRow[] = []
  addProperties(schema, '', 0, rows)
  return rows
}

/** What the schema says about all properties together, as sentences. */
export function schemaNotes(schema: unknown): string[] {
  const { additionalProperties } = asSchema(schema)
  const others = otherKeywords(asSchema(schema))
  return [
    additionalProperties === false ? 'Other properties are not planned.' : 'Other properties are allowed.',
    ...(others.length === 0 ? [] : [`Further conditions: ${others.join(', ')}. The schema below has them in full.`]),
  ]
}

function addProperties(value: unknown, path: string, depth: number, rows: SchemaRow[]): void {
  const { properties, required } = asSchema(value)
  const names = new Set(Array.isArray(required) ? required : [])
  for (const [name, property] of Object.entries(asSchema(properties))) {
    if (rows.length >= MAX_ROWS || depth >= MAX_DEPTH) return
    const own = path === '' ? name : `${path}.${name}`
    rows.push(rowOf(property, own, names.has(name)))
    addProperties(property, own, depth + 1, rows)
    const { items } = asSchema(property)
    if (items !== undefined) addProperties(items, `${own}[]`, depth + 1, rows)
  }
}

function rowOf(value: unknown, path: string, isRequired: boolean): SchemaRow {
  const schema = asSchema(value)
  const { description } = schema
  return {
    path,
    type: value === false ? 'not allowed' : typeText(schema),
    isRequired,
    limits: limitsOf(schema),
    description: typeof description === 'string' ? description : '',
  }
}

function typeText({ type, items, enum: values, const: constant, anyOf, oneOf }: Schema): string {
  if (typeof type === 'string') return type === 'array' && items !== undefined ? `array of ${typeText(asSchema(items))}` : type
  if (Array.isArray(type)) return type.map(String).join(' or ')
  if (Array.isArray(values)) return [...new Set(values.map(typeName))].join(' or ')
  if (constant !== undefined) return typeName(constant)
  const alternatives = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : []
  return alternatives.length === 0 ? 'any' : [...new Set(alternatives.map((each) => typeText(asSchema(each))))].join(' or ')
}

function limitsOf(schema: Schema): string[] {
  const { enum: values, const: constant, format, pattern, items, additionalProperties, properties } = schema
  const limits: string[] = []
  if (Array.isArray(values)) {
    const shown = values.slice(0, MAX_VALUES).map((value) => JSON.stringify(value))
    limits.push(`one of ${shown.join(', ')}${values.length > MAX_VALUES ? ` and ${values.length - MAX_VALUES} more` : ''}`)
  }
  if (constant !== undefined) limits.push(`always ${JSON.stringify(constant)}`)
  if (typeof format === 'string') limits.push(`format ${format}`)
  if (typeof pattern === 'string') limits.push(`matches ${pattern}`)
  limits.push(
    ...range(schema, 'minimum', 'maximum', ''),
    ...range(schema, 'exclusiveMinimum', 'exclusiveMaximum', '', true),
    ...range(schema, 'minLength', 'maxLength', ' characters'),
    ...range(schema, 'minItems', 'maxItems', ' elements'),
  )
  if (typeof schema['multipleOf'] === 'number') limits.push(`a multiple of ${schema['multipleOf']}`)
  if (schema['uniqueItems'] === true) limits.push('no element twice')
  // The elements of an array have rows only if they are objects.
  if (items !== undefined && asSchema(items)['properties'] === undefined)
    limits.push(...limitsOf(asSchema(items)).map((limit) => `each ${limit}`))
  if (properties !== undefined && additionalProperties === false) limits.push('no other properties')
  const others = otherKeywords(schema)
  if (others.length > 0) limits.push(`further conditions: ${others.join(', ')}`)
  return limits
}

function range(schema: Schema, least: string, most: string, unit: string, isExclusive = false): string[] {
  const { [least]: from, [most]: to } = schema
  const [above, below] = isExclusive ? ['more than', 'less than'] : ['at least', 'at most']
  if (typeof from === 'number' && typeof to === 'number' && !isExclusive) return [`${from} to ${to}${unit}`]
  return [...(typeof from === 'number' ? [`${above} ${from}${unit}`] : []), ...(typeof to === 'number' ? [`${below} ${to}${unit}`] : [])]
}

function otherKeywords(schema: Schema): string[] {
  // Alternatives of types are in the column of types.
  const isTypes = (keyword: string): boolean =>
    (keyword === 'anyOf' || keyword === 'oneOf') &&
    Array.isArray(schema[keyword]) &&
    schema[keyword].every((each: unknown) => Object.keys(asSchema(each)).join() === 'type')
  return Object.keys(schema).filter((keyword) => !SHOWN.has(keyword) && !isTypes(keyword))
}

function typeName(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

function asSchema(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {}
}
