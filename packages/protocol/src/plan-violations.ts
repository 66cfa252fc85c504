// Turns the errors of a JSON Schema validator into violations: codes and words instead of keywords. Violations contain names of properties and
// values of the schema, but no values of the message, which may be personal data.

import type { SchemaError } from './plan-schema.ts'
import type { Violation, ViolationCode } from './tracking-plan.ts'

/** Per message. More would say nothing new about it. */
export const MAX_VIOLATIONS = 20
const MAX_PATH_LENGTH = 200
const MAX_LISTED_VALUES = 10
const MAX_EXPECTED_LENGTH = 200

interface Problem {
  code: ViolationCode
  expected: string
  found: string
}

/** `found` for a value on the wrong side of the limit. The limit is in `params.limit`. */
const LIMITS: Readonly<Record<string, [expected: (limit: string) => string, found: string]>> = {
  minimum: [(limit) => `a number of at least ${limit}`, 'a smaller number'],
  maximum: [(limit) => `a number of at most ${limit}`, 'a larger number'],
  exclusiveMinimum: [(limit) => `a number above ${limit}`, 'a smaller number'],
  exclusiveMaximum: [(limit) => `a number below ${limit}`, 'a larger number'],
  minLength: [(limit) => `a string of at least ${limit} characters`, 'a shorter string'],
  maxLength: [(limit) => `a string of at most ${limit} characters`, 'a longer string'],
  minItems: [(limit) => `at least ${limit} elements`, 'fewer elements'],
  maxItems: [(limit) => `at most ${limit} elements`, 'more elements'],
  minProperties: [(limit) => `at least ${limit} properties`, 'fewer properties'],
  maxProperties: [(limit) => `at most ${limit} properties`, 'more properties'],
}
const UNPLANNED: ReadonlySet<string> = new Set(['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'false schema'])
/** Of these keywords the validator also reports why each branch failed. */
const BRANCHES: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'not', 'contains'])

export interface FoundViolations {
  violations: Violation[]
  /** Where properties are that are not planned, as keys from the field on. All of them, also those beyond MAX_VIOLATIONS. */
  unplannedPaths: string[][]
}

/** `value` is the value of the field, which is not valid, and `errors` is what the validator found. */
export function violationsOf(rule: string, field: string, value: unknown, errors: readonly SchemaError[]): FoundViolations {
  const violations: Violation[] = []
  const unplannedPaths: string[][] = []
  const seen = new Set<string>()
  for (const error of withoutBranches(errors)) {
    if (violations.length === MAX_VIOLATIONS && !UNPLANNED.has(error.keyword)) continue
    const keys = keysOf(error)
    const at = valueAt(value, keys)
    const problem = problemOf(error, at)
    if (problem.code === 'unplanned_property') unplannedPaths.push(keys)
    if (violations.length === MAX_VIOLATIONS) continue
    const path = shortened([field, ...keys].join('.'), MAX_PATH_LENGTH)
    const identity = `${problem.code} ${path}`
    if (seen.has(identity)) continue
    seen.add(identity)
    violations.push({ rule, ...problem, path, expected: shortened(problem.expected, MAX_EXPECTED_LENGTH) })
  }
  return { violations, unplannedPaths }
}

/** Returns a copy of the value without these properties. */
export function withoutProperties(value: unknown, paths: readonly (readonly string[])[]): unknown {
  const copy: unknown = JSON.parse(JSON.stringify(value))
  for (const path of paths) {
    const parent = valueAt(copy, path.slice(0, -1))
    if (isContainer(parent)) delete parent[path.at(-1) ?? '']
  }
  return copy
}

/**
 * If no branch of an `anyOf` fits, the validator lists the errors of all branches before the error of the keyword. A reader wants the latter
 * only, and a property that one branch does not allow must not be removed for another one.
 */
function withoutBranches(errors: readonly SchemaError[]): SchemaError[] {
  const kept: SchemaError[] = []
  for (const error of errors) {
    const { keyword, instancePath, schemaPath, propertyName } = error
    // `if` is followed by nothing, but preceded by the errors of `then` or `else`. A name is reported by the keyword propertyNames itself.
    if (keyword === 'if' || propertyName !== undefined) continue
    if (BRANCHES.has(keyword)) {
      let first = kept.length
      while (first > 0 && isInside(kept[first - 1] as SchemaError, instancePath, schemaPath)) first--
      const branches = kept.splice(first)
      const types = branches.map((branch) =>
        branch.keyword === 'type' && branch.instancePath === instancePath ? branch.params['type'] : null,
      )
      // All branches asked for another type: the usual way to write that a value may be null.
      if (types.length > 0 && !types.includes(null)) {
        kept.push({ ...error, keyword: 'type', params: { type: types.flat() } })
        continue
      }
    }
    kept.push(error)
  }
  return kept
}

/** The path of a schema behind a `$ref` starts at its definition, so the branch that it was referenced from is not known. */
function isInside(error: SchemaError, instancePath: string, schemaPath: string): boolean {
  return (
    (error.instancePath === instancePath || error.instancePath.startsWith(`${instancePath}/`)) &&
    (error.schemaPath.startsWith(`${schemaPath}/`) || error.schemaPath.startsWith('#/$defs/'))
  )
}

function problemOf({ keyword, params, parentSchema }: SchemaError, value: unknown): Problem {
  const found = describe(value)
  const limit = LIMITS[keyword]
  if (limit !== undefined) return { code: 'out_of_range', expected: limit[0](String(params['limit'])), found: limit[1] }
  if (UNPLANNED.has(keyword)) return { code: 'unplanned_property', expected: 'nothing', found }
  switch (keyword) {
    case 'type':
      return { code: 'wrong_type', expected: typesInWords(params['type']), found }
    case 'required':
    case 'dependentRequired': {
      const planned = propertiesOf(parentSchema)[String(params['missingProperty'])]
      const type: unknown = isContainer(planned) ? planned['type'] : undefined
      return { code: 'missing_property', expected: type === undefined ? 'a value' : typesInWords(type), found: 'nothing' }
    }
    case 'enum':
    case 'const': {
      const { expected, kinds } = allowedBy(keyword, parentSchema, params)
      return { code: 'wrong_value', expected, found: kinds.has(found) ? other(found) : found }
    }
    case 'format':
      return { code: 'wrong_format', expected: `a string in the format ${String(params['format'])}`, found: 'another string' }
    case 'pattern':
      return { code: 'wrong_format', expected: `a string that matches ${String(params['pattern'])}`, found: 'another string' }
    case 'multipleOf':
      return { code: 'other', expected: `a multiple of ${String(params['multipleOf'])}`, found: 'another number' }
    case 'uniqueItems':
      return { code: 'other', expected: 'different elements', found: 'equal elements' }
    default:
      return { code: 'other', expected: `a value that fits the keyword ${keyword} of the schema`, found }
  }
}

interface Allowed {
  expected: string
  /** What `describe` says of them. */
  kinds: ReadonlySet<string>
}

/** By the schema that contains the keyword. An `enum` may have thousands of values, and a message as many violations of it. */
const allowed = { enum: new WeakMap<object, Allowed>(), const: new WeakMap<object, Allowed>() }

function allowedBy(keyword: 'enum' | 'const', schema: unknown, params: SchemaError['params']): Allowed {
  const known = isContainer(schema) ? allowed[keyword].get(schema) : undefined
  if (known !== undefined) return known
  const values = keyword === 'enum' ? (params['allowedValues'] as readonly unknown[]) : [params['allowedValue']]
  const found: Allowed = { expected: shortened(valuesInWords(values), MAX_EXPECTED_LENGTH), kinds: new Set(values.map(describe)) }
  if (isContainer(schema)) allowed[keyword].set(schema, found)
  return found
}

/** The keys from the field to the value that the error is about. Some errors are about a property of the value at `instancePath`. */
function keysOf({ instancePath, params }: SchemaError): string[] {
  const keys = instancePath === '' ? [] : instancePath.slice(1).split('/').map(unescaped)
  const property = params['missingProperty'] ?? params['additionalProperty'] ?? params['unevaluatedProperty'] ?? params['propertyName']
  if (typeof property === 'string') keys.push(property)
  return keys
}

/** Undoes the escaping of a JSON pointer. */
function unescaped(key: string): string {
  return key.includes('~') ? key.replaceAll('~1', '/').replaceAll('~0', '~') : key
}

function valueAt(value: unknown, keys: readonly string[]): unknown {
  let at = value
  for (const key of keys) {
    if (!isContainer(at) || !Object.hasOwn(at, key)) return undefined
    at = at[key]
  }
  return at
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  return typesInWords(value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)
}

function other(found: string): string {
  return found.replace(/^an? /, 'another ')
}

function typesInWords(type: unknown): string {
  if (Array.isArray(type)) return [...new Set(type.map(typesInWords))].join(' or ')
  const name = String(type)
  return name === 'null' ? 'null' : `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`
}

function valuesInWords(values: readonly unknown[]): string {
  const listed = values.slice(0, MAX_LISTED_VALUES).map((value) => JSON.stringify(value))
  const rest = values.length - listed.length
  if (values.length === 1) return listed[0] ?? ''
  return `one of ${listed.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

function propertiesOf(schema: unknown): Record<string, unknown> {
  const properties = isContainer(schema) ? schema['properties'] : undefined
  return isContainer(properties) ? properties : {}
}

export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
