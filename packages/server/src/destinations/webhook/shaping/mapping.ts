// Checks a mapping (`request.body`) when it is saved. The mapping kit's own check does not look into arrays, literals and some options, so
// this one looks at everything first. What a mapping reads is fixed: the path of a @path and the text of a @template are constants, so no
// message can choose them.

import { isObject } from '@switchyard/protocol'
import { mappingKit } from './mapping-kit.ts'
import { templateProblem } from './template.ts'

const MAX_LENGTH = 65_536
const MAX_DEPTH = 32
/** How many times longer than the values it reads a text may get, by @replace and @json inside each other. */
const MAX_GROWTH = 20
/** The mapping kit's limit. */
const MAX_REPLACE_LENGTH = 10

/** In the mapping of an integration, the key beside its fields for a @transform whose result they read in place of the message. */
export const ROOT_TRANSFORM = '__segment_internal_directive'

const UNPAIRED = /\p{Surrogate}/u

interface Problem {
  /** Continues `request.body`: `.text.@template`. */
  place: string
  problem: string
}

class Refused extends Error {
  readonly found: Problem

  constructor(place: string, problem: string) {
    super(problem)
    this.found = { place, problem }
  }
}

/** `isHosted`: whether it is the mapping of an integration. */
export function mappingProblem(mapping: unknown, { isHosted = false } = {}): Problem | null {
  try {
    allowed = isHosted ? HOSTED_DIRECTIVES : DIRECTIVES
    check(mapping, '', 0)
    if (JSON.stringify(mapping).length > MAX_LENGTH) throw new Refused('', `must be at most ${MAX_LENGTH} characters of JSON`)
  } catch (error) {
    if (error instanceof Refused) return error.found
    throw error
  }
  return kitProblem(mapping)
}

/** Returns how many times longer than the longest value that it reads the text can be. */
type CheckDirective = (value: unknown, place: string, depth: number) => number

const DIRECTIVES: Record<string, CheckDirective> = {
  '@path': (path, place) => {
    if (text(path, place) === '$') throw new Refused(place, 'must be a path such as $.userId; $. is the whole message')
    return 1
  },
  '@template': (template, place) => {
    const problem = templateProblem(withTwoBraces(text(template, place)))
    if (problem !== null) throw new Refused(place, problem)
    return 1
  },
  '@literal': check,
  '@if': (value, place, depth) => {
    const given = options(value, place, ['exists', 'blank', 'then', 'else'])
    if (!given['exists'] && !given['blank']) throw new Refused(place, 'must have exists or blank, which is the value to check')
    return checkAll(given, place, depth)
  },
  '@case': (value, place, depth) => {
    const given = options(value, place, ['operator', 'value'])
    oneOf(given['operator'], `${place}.operator`, ['lower', 'upper'])
    return checkAll(given, place, depth)
  },
  '@replace': (value, place, depth) => {
    const given = options(value, place, ['pattern', 'replacement', 'pattern2', 'replacement2', 'value', 'ignorecase', 'global'])
    let growth = checkAll(given, place, depth)
    for (const number of ['', '2']) {
      const pattern = given[`pattern${number}`]
      const replacement = given[`replacement${number}`] ?? ''
      if (pattern === undefined && number === '2') continue
      const least = text(pattern, `${place}.pattern${number}`, 1, MAX_REPLACE_LENGTH)
      const most = text(replacement, `${place}.replacement${number}`, 0, MAX_REPLACE_LENGTH)
      // In a replacement, these stand for everything before or after the match, so the result could grow to the square of the value.
      if (/\$['`]/.test(most)) throw new Refused(`${place}.replacement${number}`, "must not contain $' or $`")
      growth *= Math.max(1, most.length / least.length)
    }
    return limited(growth, place)
  },
  '@arrayPath': (value, place, depth) => {
    if (!Array.isArray(value) || value.length < 1 || value.length > 2)
      throw new Refused(place, 'must be an array with a path and, optionally, the shape of each element')
    const path: unknown = value[0]
    if (typeof path !== 'string' && !(isObject(path) && Object.hasOwn(path, '@path')))
      throw new Refused(`${place}[0]`, 'must be a path such as $.properties.products, or a @path')
    check(path, `${place}[0]`, depth + 1)
    return value.length === 1 ? 1 : check(value[1], `${place}[1]`, depth + 1)
  },
  '@json': (value, place, depth) => {
    const given = options(value, place, ['mode', 'value'])
    const mode = oneOf(given['mode'], `${place}.mode`, ['encode', 'decode'])
    if (!given['value']) throw new Refused(`${place}.value`, 'is required')
    // Encoding puts a backslash before every quotation mark and every backslash.
    return limited(checkAll(given, place, depth) * (mode === 'encode' ? 2 : 1), place)
  },
  '@flatten': (value, place, depth) => {
    const given = options(value, place, ['separator', 'value', 'omitArrays'])
    text(given['separator'], `${place}.separator`, 1, MAX_REPLACE_LENGTH)
    if (given['value'] === undefined) throw new Refused(`${place}.value`, 'is required')
    return checkAll(given, place, depth)
  },
  '@merge': (value, place, depth) => {
    const given = options(value, place, ['objects', 'direction'])
    oneOf(given['direction'], `${place}.direction`, ['left', 'right'])
    const { objects } = given
    if (!Array.isArray(objects)) throw new Refused(`${place}.objects`, 'must be an array')
    const wrong = objects.findIndex((object) => !isObject(object))
    if (wrong >= 0) throw new Refused(`${place}.objects[${wrong}]`, 'must be an object, or a directive whose result is an object')
    return checkAll(given, place, depth)
  },
}

/** Only for integrations, whose mappings are evaluated in a host process. */
const HOSTED_DIRECTIVES: typeof DIRECTIVES = {
  ...DIRECTIVES,
  // Evaluates `mapping` for the object that `apply` results in, in place of the message.
  '@transform': (value, place, depth) => {
    const given = options(value, place, ['apply', 'mapping'])
    for (const name of ['apply', 'mapping']) if (!isObject(given[name])) throw new Refused(`${place}.${name}`, 'must be an object')
    const apply = check(given['apply'], `${place}.apply`, depth + 1)
    return limited(apply * check(given['mapping'], `${place}.mapping`, depth + 1), place)
  },
  '@excludeWhenNull': check,
}

/** The directives of the mapping that is being checked. */
let allowed = DIRECTIVES

function check(value: unknown, place: string, depth: number): number {
  if (depth > MAX_DEPTH) throw new Refused(place, `is nested too deeply; the limit is ${MAX_DEPTH} levels`)
  if (typeof value === 'string') {
    if (UNPAIRED.test(value)) throw new Refused(place, 'must be valid Unicode, without unpaired surrogates')
    return 1
  }
  if (Array.isArray(value)) return Math.max(1, ...value.slice(0, MAX_LENGTH).map((item, at) => check(item, `${place}[${at}]`, depth + 1)))
  if (!isObject(value)) return 1
  const keys = Object.keys(value)
  const name = keys.find((key) => key.startsWith('@'))
  if (name === undefined) return checkAll(value, place, depth)
  const directive = Object.hasOwn(allowed, name) ? allowed[name] : undefined
  if (directive === undefined)
    throw new Refused(inside(place, name), `is not a directive; the directives are ${Object.keys(allowed).join(', ')}`)
  // The mapping editor of Segment adds `_metadata`, which has no effect.
  const other = keys.find((key) => key !== name && key !== '_metadata')
  if (other !== undefined)
    throw new Refused(inside(place, other), `must not be next to ${name}: a directive must be the only key of its object`)
  return directive(value[name], inside(place, name), depth + 1)
}

function checkAll(value: Record<string, unknown>, place: string, depth: number): number {
  let growth = 1
  for (const [key, inner] of Object.entries(value)) {
    if (key === '__proto__') throw new Refused(inside(place, key), 'must not be used as a key')
    // The mapping kit also evaluates it in the `apply` of a @transform, with everything beside it as the mapping.
    if (key === ROOT_TRANSFORM && allowed === HOSTED_DIRECTIVES) throw new Refused(inside(place, key), 'must be at the top of the mapping')
    if (UNPAIRED.test(key)) throw new Refused(place, 'must have keys that are valid Unicode, without unpaired surrogates')
    growth = Math.max(growth, check(inner, inside(place, key), depth + 1))
  }
  return growth
}

/** The mapping kit's own check, for what the above does not cover, such as the type of a @case value. */
function kitProblem(mapping: unknown): Problem | null {
  try {
    mappingKit().validate({ body: mapping })
    return null
  } catch (error) {
    const first = (Symbol.iterator in (error as object) ? [...(error as Iterable<Error>)][0] : error) as Error
    const [, at = '', problem = 'is not a valid mapping'] = /^\/body(\S*) (.*)\.$/s.exec(first.message) ?? []
    return { place: at.replaceAll('/', '.'), problem: problem.replace(/^should/, 'must') }
  }
}

/** `{{{x}}}` means the same as `{{x}}`. But the mapping kit would then look for placeholders in the value. */
export function withTwoBraces(template: string): string {
  return template.replaceAll(/\{\{\{([^{}]+)\}\}\}/g, '{{$1}}')
}

/** Returns a copy for evaluation, and the length of the longest element of a @arrayPath as JSON, which is 0 if there is none. */
export function compileMapping(mapping: unknown): { mapping: unknown; itemSize: number } {
  let itemSize = 0
  const copy = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(copy)
    if (!isObject(value)) return value
    const result: Record<string, unknown> = {}
    for (const [key, inner] of Object.entries(value)) {
      if (key === '@arrayPath' && Array.isArray(inner) && inner.length > 1) itemSize = Math.max(itemSize, JSON.stringify(inner[1]).length)
      result[key] = key === '@template' && typeof inner === 'string' ? withTwoBraces(inner) : copy(inner)
    }
    return result
  }
  return { mapping: copy(mapping), itemSize }
}

function options(value: unknown, place: string, names: readonly string[]): Record<string, unknown> {
  if (!isObject(value)) throw new Refused(place, 'must be an object')
  const unknown = Object.keys(value).find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Refused(inside(place, unknown), `is not an option here; the options are ${names.join(', ')}`)
  return value
}

function text(value: unknown, place: string, min = 0, max = MAX_LENGTH): string {
  if (typeof value !== 'string') throw new Refused(place, 'must be a string')
  if (value.length < min || value.length > max) throw new Refused(place, `must be ${min} to ${max} characters long`)
  return value
}

function oneOf(value: unknown, place: string, names: readonly string[]): string {
  const found = names.find((name) => name === value)
  if (found === undefined) throw new Refused(place, `must be ${names.join(' or ')}`)
  return found
}

function limited(growth: number, place: string): number {
  if (growth > MAX_GROWTH)
    throw new Refused(place, `can make a value more than ${MAX_GROWTH} times longer; use fewer @replace and @json inside each other`)
  return growth
}

/** Keys are truncated, because they can have any length and the place is quoted in the response. */
export function inside(place: string, key: string): string {
  return `${place}.${(key.length > 100 ? `${key.slice(0, 100)}…` : key).replaceAll(/\p{Surrogate}/gu, '\ufffd')}`
}
