// Declarative schemas for the requests and responses of the control API. Each schema both parses a value and describes itself as JSON
// Schema, so the validation and the OpenAPI document cannot drift apart. Parsing builds new objects from known fields only, so a field
// that a caller made up (such as `__proto__`) is never copied. The meaning of the fields is defined by the routes, not here.

import { isoTime, parseTime } from '@switchyard/protocol'
import { ApiError } from '../errors.ts'
import { suggestion } from './nearest.ts'

export type JsonSchema = { readonly [keyword: string]: unknown }

export interface Schema<T> {
  /** Returns the validated value, or throws an ApiError with `path` as its field. */
  parse: (value: unknown, path: string) => T
  toJsonSchema: () => JsonSchema
  /** Returns a stored value as a response shows it; see `shown`. Undefined if nothing has to be done. */
  show?: ((value: unknown) => unknown) | undefined
}

/** A field that may be left out; it is then absent from the parsed object. */
export interface OptionalSchema<T> extends Schema<T> {
  readonly optional: true
}

/** A field that may be left out; it then has the value `fallback`. */
export interface DefaultSchema<T> extends Schema<T> {
  readonly fallback: T
}

export type Infer<S> = S extends Schema<infer T> ? T : never

export type Fields = { readonly [name: string]: Schema<unknown> }

export type Simplify<T> = { [K in keyof T]: T[K] }
export type ObjectOf<F extends Fields> = Simplify<
  { -readonly [K in keyof F as F[K] extends { optional: true } ? never : K]: Infer<F[K]> } & {
    -readonly [K in keyof F as F[K] extends { optional: true } ? K : never]?: Infer<F[K]>
  }
>

export interface ObjectSchema<F extends Fields> extends Schema<ObjectOf<F>> {
  readonly fields: F
}

/**
 * A stored value as responses show it: without fields that the schema does not have, and with times, which are stored in milliseconds under names
 * such as `createdAtMs`, in the format of responses.
 */
export function shown(schema: Schema<unknown>, value: unknown): unknown {
  return schema.show === undefined || value == null ? value : schema.show(value)
}

/** Returns what is wrong with a value, as the end of a sentence that starts with the name of the field; null if it is valid. */
export type Check<T> = (value: T) => string | null

export interface Described {
  description?: string
}

export function string(
  options: Described & { min?: number; max?: number; format?: string; pattern?: string; writeOnly?: true; check?: Check<string> } = {},
): Schema<string> {
  const { min = 0, max, check, ...keywords } = options
  return {
    parse(value, path) {
      if (typeof value !== 'string') throw invalidField(path, 'must be a string')
      if (value.length < min || (max !== undefined && value.length > max))
        throw invalidField(path, `must be ${lengthText(min, max, 'characters')} long`)
      if (/\p{Surrogate}/u.test(value)) throw invalidField(path, 'must be valid Unicode, without unpaired surrogates')
      const problem = check?.(value) ?? null
      if (problem !== null) throw invalidField(path, problem)
      return value
    },
    toJsonSchema: () => defined({ type: 'string', minLength: min || undefined, maxLength: max, ...keywords }),
  }
}

type Range = Described & { min?: number; max?: number }

export function integer(options: Range = {}): Schema<number> {
  return numeric('integer', options, (value, path) => {
    if (!Number.isSafeInteger(value) || !isWithin(value as number, options))
      throw invalidField(path, `must be ${rangeText('an integer', options)}`)
  })
}

/** Any finite number, such as a rate or a latency. */
export function number(options: Range = {}): Schema<number> {
  return numeric('number', options, (value, path) => {
    if (typeof value !== 'number' || !Number.isFinite(value)) throw invalidField(path, 'must be a number')
    if (!isWithin(value, options)) throw invalidField(path, `must be ${rangeText('a number', options)}`)
  })
}

function numeric(type: string, { min, max, ...keywords }: Range, check: (value: unknown, path: string) => void): Schema<number> {
  return {
    parse(value, path) {
      check(value, path)
      return value as number
    },
    toJsonSchema: () => defined({ type, minimum: min, maximum: max, ...keywords }),
  }
}

function isWithin(value: number, { min = -Infinity, max = Infinity }: Range): boolean {
  return value >= min && value <= max
}

export function boolean(options: Described = {}): Schema<boolean> {
  return {
    parse(value, path) {
      if (typeof value !== 'boolean') throw invalidField(path, 'must be true or false')
      return value
    },
    toJsonSchema: () => ({ type: 'boolean', ...options }),
  }
}

export function oneOf<const T extends string>(values: readonly T[], options: Described = {}): Schema<T> {
  return {
    parse(value, path) {
      const found = values.find((known) => known === value)
      if (found === undefined) throw invalidField(path, `must be ${values.length === 1 ? values[0] : `one of ${values.join(', ')}`}`)
      return found
    },
    toJsonSchema: () => ({ type: 'string', enum: [...values], ...options }),
  }
}

/** A time in the format of requests and responses: ISO 8601, UTC, with milliseconds. */
export function time(options: Described = {}): Schema<string> {
  const text = string({
    format: 'date-time',
    ...options,
    check: (given) =>
      parseTime(given) !== undefined && isoTime(parseTime(given) as number) === given
        ? null
        : 'must be an ISO 8601 time in UTC with milliseconds, such as 2026-11-14T09:00:00.000Z',
  })
  return { ...text, show: showTime }
}

function showTime(value: unknown): unknown {
  return typeof value === 'number' ? isoTime(value) : value
}

/** A JSON object with any content. It is not copied. */
export function anyObject(options: Described = {}): Schema<Record<string, unknown>> {
  return {
    parse(value, path) {
      if (!isObject(value)) throw invalidField(path, 'must be an object')
      return value
    },
    toJsonSchema: () => ({ type: 'object', additionalProperties: true, ...options }),
  }
}

/** Any JSON value. It is not copied. */
export function anyValue(options: Described = {}): Schema<unknown> {
  return { parse: (value) => value, toJsonSchema: () => ({ ...options }) }
}

export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  return {
    parse: (value, path) => (value === null ? null : schema.parse(value, path)),
    toJsonSchema: () => orNull(schema.toJsonSchema()),
    show: schema.show,
  }
}

export function array<T>(
  item: Schema<T>,
  options: Described & { min?: number; max?: number; writeOnly?: true; identity?: (value: T) => string } = {},
): Schema<T[]> {
  const { min = 0, max, identity, ...keywords } = options
  return {
    parse(value, path) {
      if (!Array.isArray(value)) throw invalidField(path, 'must be an array')
      if (value.length < min || (max !== undefined && value.length > max))
        throw invalidField(path, `must have ${lengthText(min, max, 'entries')}`)
      const result = value.map((entry, index) => item.parse(entry, `${path}[${index}]`))
      if (identity !== undefined) {
        const seen = new Set<string>()
        for (const [index, entry] of result.entries()) {
          if (seen.has(identity(entry))) throw invalidField(`${path}[${index}]`, 'is the same as an earlier entry; remove it')
          seen.add(identity(entry))
        }
      }
      return result
    },
    toJsonSchema: () =>
      defined({
        type: 'array',
        items: item.toJsonSchema(),
        minItems: min || undefined,
        maxItems: max,
        uniqueItems: identity && true,
        ...keywords,
      }),
    show: item.show && ((value) => (value as readonly unknown[]).map((entry) => shown(item, entry))),
  }
}

/** An object whose field names the caller chooses and whose values all have the same schema. */
export function record<T>(
  entry: Schema<T>,
  options: Described & { max?: number; name?: Check<string>; whole?: Check<Record<string, T>> } = {},
): Schema<Record<string, T>> {
  const { max, name: checkName, whole, ...keywords } = options
  return {
    parse(value, path) {
      if (!isObject(value)) throw invalidField(path, 'must be an object')
      const names = Object.keys(value)
      if (max !== undefined && names.length > max) throw invalidField(path, `must have at most ${max} entries`)
      const result: Record<string, T> = {}
      for (const name of names) {
        if (name === '__proto__') throw unknownField(path, name)
        const problem = checkName?.(name) ?? null
        if (problem !== null) throw invalidField(join(path, name), problem)
        result[name] = entry.parse(value[name], join(path, name))
      }
      const problem = whole?.(result) ?? null
      if (problem !== null) throw invalidField(path, problem)
      return result
    },
    toJsonSchema: () => defined({ type: 'object', additionalProperties: entry.toJsonSchema(), maxProperties: max, ...keywords }),
  }
}

/** With a title, the OpenAPI document lists the schema once under this name, and refers to it elsewhere. */
export function object<F extends Fields>(fields: F, options: Described & { title?: string } = {}): ObjectSchema<F> {
  return {
    fields,
    parse(value, path) {
      if (!isObject(value)) {
        if (path === '') throw new ApiError('invalid_request', { message: 'The request body must be a JSON object.' })
        throw invalidField(path, 'must be an object')
      }
      for (const name of Object.keys(value)) if (!Object.hasOwn(fields, name)) throw unknownField(path, name, Object.keys(fields))
      const result: Record<string, unknown> = {}
      for (const [name, schema] of Object.entries(fields)) {
        if (Object.hasOwn(value, name) && value[name] !== undefined) result[name] = schema.parse(value[name], join(path, name))
        else if ('fallback' in schema) result[name] = structuredClone(schema.fallback)
        else if (!('optional' in schema)) throw invalidField(join(path, name), 'is required')
      }
      return result as ObjectOf<F>
    },
    toJsonSchema() {
      const entries = Object.entries(fields)
      const required = entries.filter(([, schema]) => !('optional' in schema) && !('fallback' in schema)).map(([name]) => name)
      return {
        type: 'object',
        properties: Object.fromEntries(entries.map(([name, schema]) => [name, schema.toJsonSchema()])),
        ...(required.length > 0 ? { required } : {}),
        additionalProperties: false,
        ...options,
      }
    },
    show(value) {
      const stored = value as Readonly<Record<string, unknown>>
      const result: Record<string, unknown> = {}
      for (const [name, schema] of Object.entries(fields)) {
        // A duration in milliseconds, such as `retryMs`, must not fill a field that means something else.
        const own = stored[name] === undefined && schema.show === showTime ? stored[`${name}Ms`] : stored[name]
        if (own !== undefined) result[name] = shown(schema, own)
        else if ('fallback' in schema) result[name] = schema.fallback
      }
      return result
    },
  }
}

type Variant<By extends string, V extends Readonly<Record<string, Fields>>> = {
  [K in keyof V & string]: Simplify<{ [B in By]: K } & ObjectOf<V[K]>>
}[keyof V & string]

/** An object whose other fields depend on the value of the field `by`. */
export function variants<const By extends string, V extends Readonly<Record<string, Fields>>>(
  by: By,
  fieldsOf: V,
  options: Described & { title?: string } = {},
): Schema<Variant<By, V>> {
  const schemas = Object.entries(fieldsOf).map(([name, fields]) => [name, object({ [by]: oneOf([name]), ...fields })] as const)
  return {
    parse(value, path) {
      if (!isObject(value)) throw invalidField(path, 'must be an object')
      const found = schemas.find(([name]) => name === value[by])
      if (found === undefined) throw invalidField(join(path, by), `must be one of ${schemas.map(([name]) => name).join(', ')}`)
      return found[1].parse(value, path) as Variant<By, V>
    },
    toJsonSchema: () => ({ oneOf: schemas.map(([, schema]) => schema.toJsonSchema()), ...options }),
    show(value) {
      const found = schemas.find(([name]) => name === (value as Record<string, unknown>)[by])
      return found === undefined ? value : shown(found[1], value)
    },
  }
}

export function optional<T>(schema: Schema<T>): OptionalSchema<T> {
  const { parse, toJsonSchema, show } = schema
  return { parse, toJsonSchema, show, optional: true }
}

export function withDefault<T>(schema: Schema<T>, fallback: T): DefaultSchema<T> {
  const { parse, toJsonSchema, show } = schema
  return { parse, toJsonSchema: () => ({ ...toJsonSchema(), default: fallback }), show, fallback }
}

/** A secret, which no response contains. A secret that is left out has the value `leftOut`, which is not part of the JSON Schema. */
export function writeOnly<T>(schema: Schema<T>, leftOut: T): DefaultSchema<T> {
  return { parse: schema.parse, toJsonSchema: () => ({ ...schema.toJsonSchema(), writeOnly: true }), fallback: leftOut }
}

export type PatchFields<F extends Fields> = { readonly [K in keyof F]: OptionalSchema<Infer<F[K]>> }

/** The same fields for a PATCH request: all are optional, and none has a default. */
export function patchOf<F extends Fields>(fields: F): PatchFields<F> {
  const described = Object.entries(fields).map(([name, schema]) => [name, optional(withoutDefault(schema))])
  return Object.fromEntries(described) as PatchFields<F>
}

export function withoutDefault<T>(schema: Schema<T>): Schema<T> {
  const { parse, show } = schema
  return {
    parse,
    toJsonSchema() {
      const { default: _, ...rest } = schema.toJsonSchema()
      return rest
    },
    show,
  }
}

// ── Messages and paths ─────────────────────────────────────────────────────────────────────────────────────────────

/** `problem` is the end of a sentence that starts with the path. It must not quote the value, which may be a secret. */
export function invalidField(path: string, problem: string): ApiError {
  return new ApiError('invalid_field', { message: `${path} ${problem}.`, field: path })
}

function unknownField(path: string, name: string, known: readonly string[] = []): ApiError {
  const field = join(path, name)
  const meant = suggestion(name, known)
  const advice = meant === undefined ? 'Remove it or correct its spelling.' : `Did you mean ${join(path, meant)}?`
  return new ApiError('unknown_field', { message: `${field} is not a known field. ${advice}`, field })
}

/** Truncates the name, because callers can send names of any length and it is quoted in the response. */
function join(path: string, name: string): string {
  // Unpaired surrogates, from the caller or from the truncation, would make a response that not every JSON parser accepts.
  const shown = (name.length > 100 ? `${name.slice(0, 100)}…` : name).replaceAll(/\p{Surrogate}/gu, '\ufffd')
  return path === '' ? shown : `${path}.${shown}`
}

function lengthText(min: number, max: number | undefined, things: string): string {
  if (max === undefined) return `at least ${min} ${things}`
  return min === 0 ? `at most ${max} ${things}` : `${min} to ${max} ${things}`
}

function rangeText(thing: string, { min, max }: { min?: number; max?: number }): string {
  if (min === undefined) return max === undefined ? thing : `${thing} of at most ${max}`
  return max === undefined ? `${thing} of at least ${min}` : `${thing} from ${min} to ${max}`
}

/** Without the keywords that have no value. */
function defined(json: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(json).filter(([, value]) => value !== undefined))
}

function orNull(json: JsonSchema): JsonSchema {
  const { type, enum: values, ...rest } = json
  if (Array.isArray(rest['oneOf'])) return { ...rest, oneOf: [...(rest['oneOf'] as JsonSchema[]), { type: 'null' }] }
  return {
    type: [...(Array.isArray(type) ? type : [type]), 'null'],
    ...(Array.isArray(values) ? { enum: [...values, null] } : {}),
    ...rest,
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
