// Writes the TypeScript type of a JSON Schema. Every value that the schema allows has the type, with two exceptions that find mistakes: an object literal
// may not have properties that the schema does not name (unless `additionalProperties` or `patternProperties` allow them), and a schema that has
// `properties` or `items` but no `type` is read as that of an object or an array. What a type cannot express (ranges, patterns, conditions) is left
// to the service. The result always compiles, whatever the schema contains.

import { isObject, type JsonObject } from '@switchyard/protocol'
import { docComment, quoted } from './source-text.ts'

export interface SchemaType {
  text: string
  /** Whether `{}` has the type. */
  allowsEmpty: boolean
}

const KINDS = ['string', 'number', 'boolean', 'null', 'array', 'object'] as const
type Kind = (typeof KINDS)[number]

const UNKNOWN: SchemaType = { text: 'unknown', allowsEmpty: true }
const NEVER: SchemaType = { text: 'never', allowsEmpty: false }
const ANY_OBJECT: SchemaType = { text: '{ [key: string]: unknown }', allowsEmpty: true }
const ANY_ARRAY: SchemaType = { text: 'readonly unknown[]', allowsEmpty: false }

/** Deeper than what people plan. What is deeper is `unknown`. */
const MAX_DEPTH = 24
/** References can repeat, so a small schema can describe a huge type. What would exceed about this length is `unknown`. */
const MAX_CHARACTERS = 200_000

/** The type of the properties or traits that a rule describes: always that of an object. */
export function objectTypeOf(schema: JsonObject): SchemaType {
  return new TypeWriter(schema).typeOf(schema, ['object'])
}

/** Writes the types of one schema and of what is inside it, up to the limits. */
class TypeWriter {
  readonly #definitions: JsonObject
  #depth = 0
  #characters = 0

  constructor(root: JsonObject) {
    this.#definitions = objectOf(own(root, '$defs'))
  }

  /** `kinds`: what the value can be, by what the schemas around this one say. */
  typeOf(schema: unknown, kinds: readonly Kind[] = KINDS): SchemaType {
    if (schema === false) return NEVER
    if (!isObject(schema) || this.#depth >= MAX_DEPTH || this.#characters > MAX_CHARACTERS) return anyOf(kinds)
    // At least this much for each subschema, so that many short ones end, too.
    this.#characters += 20
    this.#depth += 1
    try {
      return this.#typeOfKeywords(schema, kinds)
    } finally {
      this.#depth -= 1
    }
  }

  #typeOfKeywords(schema: JsonObject, around: readonly Kind[]): SchemaType {
    const kinds = kindsOf(schema, around)
    const values = valuesOf(schema)
    const parts: SchemaType[] = []
    if (values !== undefined) {
      const type = union(values.filter((value) => kinds.includes(kindOf(value))).map(literal))
      this.#characters += type.text.length
      parts.push(type)
    } else if (isDetailed(schema)) parts.push(union(kinds.map((kind) => this.#typeOfKind(schema, kind))))
    // The only references that a plan may have.
    const [, reference] = /^#\/\$defs\/([\w.-]+)$/.exec(String(own(schema, '$ref'))) ?? []
    if (reference !== undefined) parts.push(this.typeOf(own(this.#definitions, reference), kinds))
    for (const part of list(own(schema, 'allOf'))) parts.push(this.typeOf(part, kinds))
    for (const keyword of ['anyOf', 'oneOf']) {
      const choices = list(own(schema, keyword))
      if (choices.length > 0) parts.push(union(choices.map((choice) => this.typeOf(choice, kinds))))
    }
    return parts.length === 0 ? anyOf(kinds) : intersection(parts)
  }

  #typeOfKind(schema: JsonObject, kind: Kind): SchemaType {
    if (kind === 'object') return this.#typeOfObject(schema)
    if (kind === 'array') return this.#typeOfArray(schema)
    // The clients write a Date as such a string.
    if (kind === 'string' && own(schema, 'format') === 'date-time') return { text: 'string | Date', allowsEmpty: false }
    return anyOf([kind])
  }

  #typeOfObject(schema: JsonObject): SchemaType {
    const properties = objectOf(own(schema, 'properties'))
    const patterns = Object.values(objectOf(own(schema, 'patternProperties')))
    const additional = own(schema, 'additionalProperties')
    const required = new Set(list(own(schema, 'required')).filter((name): name is string => typeof name === 'string'))
    const names = [...new Set([...Object.keys(properties), ...required])].sort()
    const members = names.map((name) => {
      const inner = Object.hasOwn(properties, name) ? properties[name] : additional === false ? undefined : additional
      const head = `${docComment(describe(inner))}${quotedKey(name)}`
      this.#characters += head.length
      const { text } = this.typeOf(inner)
      if (required.has(name)) return `${head}: ${text}`
      return `${head}?: ${text === 'unknown' ? text : `${text} | undefined`}`
    })
    const others = [...patterns, ...(additional === undefined || additional === false ? [] : [additional])]
    if (members.length === 0) {
      if (others.length === 0 && additional !== false) return ANY_OBJECT
      members.push(`[key: string]: ${union(others.map((other) => this.typeOf(other))).text}`)
    } else if (others.length > 0) {
      // An index signature must also fit the named properties.
      members.push('[key: string]: unknown')
    }
    return { text: `{\n${indented(members.join('\n'))}\n}`, allowsEmpty: required.size === 0 }
  }

  #typeOfArray(schema: JsonObject): SchemaType {
    const items = own(schema, 'items')
    const first = list(own(schema, 'prefixItems'))
    if (first.length === 0) {
      const { text } = this.typeOf(items)
      return text === 'unknown'
        ? ANY_ARRAY
        : { text: items === false ? 'readonly []' : `readonly ${bracketed(text)}[]`, allowsEmpty: false }
    }
    const required = Number(own(schema, 'minItems') ?? 0)
    const elements = first.map((element, index) => `${bracketed(this.typeOf(element).text)}${index < required ? '' : '?'}`)
    if (items !== false) elements.push(`...${bracketed(this.typeOf(items).text)}[]`)
    return { text: `readonly [${elements.join(', ')}]`, allowsEmpty: false }
  }
}

function kindsOf(schema: JsonObject, around: readonly Kind[]): readonly Kind[] {
  const given = own(schema, 'type')
  if (given !== undefined) {
    const types = new Set([given].flat().map((type) => (type === 'integer' ? 'number' : type)))
    return around.filter((kind) => types.has(kind))
  }
  if (around.length < KINDS.length) return around
  if (OBJECT_KEYWORDS.some((keyword) => Object.hasOwn(schema, keyword))) return ['object']
  return ARRAY_KEYWORDS.some((keyword) => Object.hasOwn(schema, keyword)) ? ['array'] : around
}

const OBJECT_KEYWORDS = ['properties', 'required', 'additionalProperties', 'patternProperties']
const ARRAY_KEYWORDS = ['items', 'prefixItems']
const DETAILS = [...OBJECT_KEYWORDS, ...ARRAY_KEYWORDS, 'format']

/** Whether the schema itself says more than the kinds of value that are allowed. */
function isDetailed(schema: JsonObject): boolean {
  return DETAILS.some((keyword) => Object.hasOwn(schema, keyword))
}

function valuesOf(schema: JsonObject): readonly unknown[] | undefined {
  if (Object.hasOwn(schema, 'const')) return [schema['const']]
  return Object.hasOwn(schema, 'enum') ? list(schema['enum']) : undefined
}

function kindOf(value: unknown): Kind {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : (typeof value as Kind)
}

/** The type that only this JSON value has. */
function literal(value: unknown): SchemaType {
  if (Array.isArray(value)) return { text: `readonly [${value.map((item) => literal(item).text).join(', ')}]`, allowsEmpty: false }
  if (!isObject(value)) return { text: typeof value === 'string' ? quoted(value) : JSON.stringify(value), allowsEmpty: false }
  const members = Object.entries(value).map(([name, item]) => `${quotedKey(name)}: ${literal(item).text}`)
  return members.length === 0
    ? { text: '{ [key: string]: never }', allowsEmpty: true }
    : { text: `{ ${members.join('; ')} }`, allowsEmpty: false }
}

function anyOf(kinds: readonly Kind[]): SchemaType {
  if (kinds.length === KINDS.length) return UNKNOWN
  return union(kinds.map((kind) => (kind === 'object' ? ANY_OBJECT : kind === 'array' ? ANY_ARRAY : { text: kind, allowsEmpty: false })))
}

function union(types: readonly SchemaType[]): SchemaType {
  if (types.some(({ text }) => text === 'unknown')) return UNKNOWN
  const possible = types.filter(({ text }) => text !== 'never')
  if (possible.length === 0) return NEVER
  const texts = new Set(possible.map(({ text }) => text))
  return { text: [...texts].join(' | '), allowsEmpty: possible.some(({ allowsEmpty }) => allowsEmpty) }
}

function intersection(types: readonly SchemaType[]): SchemaType {
  // All of them have the same kinds. One that allows any object would allow unknown properties in the others.
  const details = types.filter(({ text }) => text !== UNKNOWN.text && text !== ANY_OBJECT.text)
  const texts = new Set((details.length === 0 ? types : details).map(({ text }) => text))
  if (texts.has('never')) return NEVER
  const parts = [...texts]
  return {
    text: parts.length === 1 ? (parts[0] as string) : parts.map((text) => (text.includes(' | ') ? `(${text})` : text)).join(' & '),
    allowsEmpty: types.every(({ allowsEmpty }) => allowsEmpty),
  }
}

/** What the author says about a value, for its doc comment. */
function describe(schema: unknown): string[] {
  if (!isObject(schema)) return []
  const text = own(schema, 'description') ?? own(schema, 'title')
  return [...(typeof text === 'string' ? [text] : []), ...(own(schema, 'deprecated') === true ? ['Deprecated.'] : [])]
}

function quotedKey(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name)
}

function bracketed(text: string): string {
  return /^\w+$/.test(text) ? text : `(${text})`
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ')
}

function own(schema: JsonObject, keyword: string): unknown {
  return Object.hasOwn(schema, keyword) ? schema[keyword] : undefined
}

function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
