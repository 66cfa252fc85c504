// The JSON Schemas of a tracking plan: which ones are accepted, and how they are compiled. This package has no dependencies, so the
// caller passes Ajv in; the options are here, so that the service, the command line and the client for tests agree on every message.
// Invariant: a schema that passes `schemaProblem` needs no network, ends, and takes a limited time (judging-steps.ts).

import { JudgingSteps, requestBudget, type StepBudget, StepsExceeded, withSteps } from './judging-steps.ts'
import { isObject, type JsonObject } from './messages.ts'
import { limitedPattern, patternProblem } from './slow-pattern.ts'

/** An error as Ajv reports it. */
export interface SchemaError {
  keyword: string
  instancePath: string
  schemaPath: string
  params: Record<string, unknown>
  parentSchema?: unknown
  /** Present if the error is about the name of a property. */
  propertyName?: string
}

export interface SchemaValidator {
  /** Throws StepsExceeded if the value needs more steps than one message has, or than the budget of its request has left. */
  (value: unknown, budget?: StepBudget): boolean
  errors?: readonly SchemaError[] | null
}

export type CompileSchema = (schema: JsonObject) => SchemaValidator
/**
 * A compiler keeps what it compiled, so each version of a plan gets its own. With `validateSchema`, it first checks a schema against the schema
 * of JSON Schema, for which a new compiler needs about 30 ms.
 */
export type CreateSchemaCompiler = (options?: { validateSchema: boolean }) => CompileSchema

/** The part of Ajv that is used. */
interface Validator {
  removeKeyword(keyword: string): unknown
  addKeyword(definition: {
    keyword: string
    type: 'array'
    schemaType: 'boolean'
    validate: (schema: boolean, value: readonly unknown[]) => boolean
  }): unknown
  addFormat(name: string, format: RegExp): unknown
  compile(schema: JsonObject): unknown
  /** The generated code finds it here. */
  $steps?: JudgingSteps
}

const OPTIONS = {
  allErrors: true,
  // For the type of a property that is missing.
  verbose: true,
  messages: false,
  // A misspelled keyword is an error.
  strictSchema: true,
  strictNumbers: true,
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
  allowUnionTypes: true,
  allowMatchingProperties: true,
  logger: false,
} as const

export type ValidatorOptions = typeof OPTIONS & {
  validateSchema: boolean
  code: {
    /** Optimizing takes three times as long as generating the code. */
    optimize: false
    process: (code: string) => string
    regExp: { (pattern: string, flags: string): { test: (text: string) => boolean }; code: string }
  }
}

/** `create` returns a new Ajv for draft 2020-12, with the formats of ajv-formats. */
export function planSchemaCompiler(create: (options: ValidatorOptions) => Validator): CreateSchemaCompiler {
  return ({ validateSchema } = { validateSchema: false }) => {
    const steps = new JudgingSteps()
    const regExp = Object.assign((pattern: string, flags: string) => limitedPattern(pattern, flags, steps), { code: 'new RegExp' })
    const process = (code: string): string => withLimit(withSteps(code))
    const validator = create({ ...OPTIONS, validateSchema, code: { optimize: false, regExp, process } })
    validator.$steps = steps
    // The expression of ajv-formats takes a second for some texts that fit into one message.
    validator.addFormat('url', /^(?:https?|ftp):\/\/[^\s/?#]\S*$/i)
    // Ajv compares every element with every other one: seconds for the elements that fit into one message.
    validator.removeKeyword('uniqueItems')
    validator.addKeyword({
      keyword: 'uniqueItems',
      type: 'array',
      schemaType: 'boolean',
      validate: (unique, elements) => {
        if (!unique) return true
        const texts = elements.map((element) => {
          const text = canonical(element)
          steps.take(50 + text.length * 4)
          return text
        })
        return new Set(texts).size === texts.length
      },
    })
    return (schema) => {
      const validate = validator.compile(withoutReferences(schema)) as SchemaValidator
      const limited: SchemaValidator = (value, budget = requestBudget()) => {
        const isValid = steps.run(budget, () => validate(value))
        limited.errors = validate.errors ?? null
        return isValid
      }
      // The engine compiles a function when it is called first, which takes as long as generating it.
      try {
        limited(null, { steps: 0, patternSteps: 0 })
      } catch (error) {
        if (!(error instanceof StepsExceeded)) throw error
      }
      return limited
    }
  }
}

export const MAX_SCHEMA_VALUES = 5_000
const MAX_SCHEMA_DEPTH = 32
const DIALECT = 'https://json-schema.org/draft/2020-12/schema'
const REFERENCE = /^#\/\$defs\/([\w.-]+)$/
/** Every object has these properties, so a validator would find them in every message. */
const INHERITED: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype))
/** They give a schema an address or depend on who refers to it. `$async` would make the validator return a promise. */
const UNSUPPORTED: ReadonlySet<string> = new Set(['$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '$vocabulary', '$async'])

export interface SchemaProblem {
  /** Where in the schema, for example `properties.total.pattern`; empty for the schema as a whole. */
  path: string
  /** The end of a sentence that starts with the name of the field. */
  problem: string
}

/** Returns why a schema is not accepted, or null. `compile` must validate schemas. */
export function schemaProblem(schema: JsonObject, compile: CompileSchema): SchemaProblem | null {
  const problem = structureProblem(schema)
  if (problem !== null) return problem
  try {
    compile(schema)
    return null
  } catch (error) {
    return { path: '', problem: `is not a valid JSON Schema: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** Every reference counts as what it refers to: a few references to references could otherwise stand for billions of checks. */
function structureProblem(schema: JsonObject): SchemaProblem | null {
  const definitions = isObject(schema['$defs']) ? schema['$defs'] : {}
  const active = new Set<string>()
  let values = 0

  function walk(value: unknown, path: readonly string[]): SchemaProblem | null {
    const problem = (text: string, ...keys: string[]): SchemaProblem => ({ path: [...path, ...keys].join('.'), problem: text })
    if (++values > MAX_SCHEMA_VALUES)
      return {
        path: '',
        problem: `has more than ${MAX_SCHEMA_VALUES} values, counting each $ref as what it refers to. Split the rule or simplify it`,
      }
    if (typeof value !== 'object' || value === null) return null
    if (path.length > MAX_SCHEMA_DEPTH) return { path: '', problem: `is nested more than ${MAX_SCHEMA_DEPTH} levels deep` }
    for (const [key, inner] of Object.entries(value) as [string, unknown][]) {
      if (INHERITED.has(key)) return problem('has a name that every JavaScript object has, so it cannot be checked. Remove it', key)
      if (UNSUPPORTED.has(key) && !isObject(inner)) return problem('is not supported. Use $defs, and $ref with #/$defs/NAME', key)
      if (key === '$schema' && typeof inner === 'string' && inner.replace(/#$/, '') !== DIALECT)
        return problem(`must be ${DIALECT}. Other versions of JSON Schema are not supported`, key)
      if (key === 'required' && Array.isArray(inner)) {
        const at = inner.findIndex((name) => INHERITED.has(String(name)))
        if (at >= 0) return problem('is a name that every JavaScript object has, so it cannot be checked. Remove it', key, String(at))
      }
      const patterns =
        key === 'pattern' && typeof inner === 'string' ? [inner] : key === 'patternProperties' && isObject(inner) ? Object.keys(inner) : []
      for (const pattern of patterns) {
        const slow = patternProblem(pattern)
        if (slow !== null) return problem(slow, key)
      }
      const found = key === '$ref' && typeof inner === 'string' ? reference(inner, [...path, key]) : walk(inner, [...path, key])
      if (found !== null) return found
    }
    return null
  }

  function reference(target: string, path: readonly string[]): SchemaProblem | null {
    const name = REFERENCE.exec(target)?.[1]
    if (name === undefined || !Object.hasOwn(definitions, name))
      return { path: path.join('.'), problem: 'must be #/$defs/NAME, where NAME is a key of $defs of the same schema' }
    if (active.has(name)) return { path: path.join('.'), problem: 'refers to itself. Recursive schemas are not supported' }
    active.add(name)
    const found = walk(definitions[name], path)
    active.delete(name)
    return found
  }

  return walk(schema, [])
}

/** A message can have millions of errors: the elements of an array times the keywords of the schema. After this many, the rest of the array is not examined. */
export const MAX_ERRORS = 5_000

/**
 * `errors` is the number of errors so far, in the code that Ajv generates. Those before the loop do not count: they may be of another branch of an
 * `anyOf`, and a branch whose elements were not examined would be valid.
 */
function withLimit(code: string): string {
  return code.replaceAll(
    /for\(let (i\d+)=(\d+); \1<(len\d+); \1\+\+\)/g,
    `for(let $1=$2,$1$=errors; $1<$3&&errors-$1$<${MAX_ERRORS}; $1++)`,
  )
}

/**
 * Puts definitions in the place of references. Ajv makes a function of a definition, and copies all errors found so far for each call that
 * finds another one: seconds for the elements that fit into one message.
 */
function withoutReferences(schema: JsonObject): JsonObject {
  const definitions = isObject(schema['$defs']) ? schema['$defs'] : {}
  function inlined(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(inlined)
    if (!isObject(value)) return value
    const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, inlined(inner)]))
    const name = typeof value['$ref'] === 'string' ? REFERENCE.exec(value['$ref'])?.[1] : undefined
    if (name === undefined || !Object.hasOwn(definitions, name)) return copy
    delete copy['$ref']
    return { ...copy, allOf: [...(Array.isArray(copy['allOf']) ? (copy['allOf'] as unknown[]) : []), inlined(definitions[name])] }
  }
  return inlined(schema) as JsonObject
}

/** Equal texts for equal values, whatever the order of the keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isObject(inner) ? Object.entries(inner).sort(([left], [right]) => (left < right ? -1 : 1)) : inner,
  )
}
