// Bounds for the library's mapping kit. Its own functions read prototypes, take a second to flatten 2,700 keys, and copy any amount of data, which
// stops every integration of a host. The replacements have the same results for ordinary messages: only own properties are read, flattening is
// linear, and what one message may read is limited. The server bounds the bodies of webhooks in the same way (bounded-reading.ts there).

import { dirname, join } from 'node:path'
import type { JsonObject } from '@switchyard/protocol'
import { type CompiledMapping, compileMapping, type MappingKit } from './compiled-mapping.ts'
import { require } from './definitions.ts'

/** In characters of JSON, roughly. Messages have at most 32 KB, so only a mapping that copies the same values many times reaches this. */
const MAX_READ = 1_000_000

/** What the message that is being mapped may still read; null outside of mappings, where definitions use the same functions. */
let left: number | null = null

export class TooMuch extends Error {
  override name = 'PayloadValidationError'

  constructor() {
    super(`The mapping results in more than ${MAX_READ} characters for this message.`)
  }
}

interface Kit {
  transform: (...args: unknown[]) => unknown
  transformBatch: (mapping: unknown, data: readonly unknown[], ...more: unknown[]) => unknown
}

/** Once per process. Throws if the files are elsewhere, so that a new version cannot run without the bounds. */
export function boundMappingKit(): void {
  const folder = join(dirname(require.resolve('@segment/actions-core')), 'mapping-kit')
  // In the exports of its modules, where the kit looks them up with each call, so that it does not matter whether they are loaded already.
  Object.assign(require(join(folder, 'flatten.js')) as object, { flattenObject })
  Object.assign(require(join(folder, '..', 'get.js')) as object, { get: boundedGet })
  const types = require(join(folder, '..', 'real-type-of.js')) as { isObject: (value: unknown) => boolean }
  const { isObject } = types
  types.isObject = (value) => isPlainObject(value) ?? isObject(value)
  const kit = require(folder) as Kit
  const { transform } = kit
  kit.transform = (...args) => bounded(() => (compiled.get(args[0] as object) ?? transform)(...args))
  // One by one, so that each message has its own limit.
  kit.transformBatch = (mapping, data, ...more) => data.map((each) => kit.transform(mapping, each, ...more))
  const { path } = kit.transform({ path: { '@path': '$.constructor' } }, {}) as { path?: unknown }
  if (path !== undefined) throw new Error('This version of @segment/actions-core is not supported: its files have moved.')
}

/** The library calls this for each value of each payload, and compares strings. Undefined: its own check has to decide. */
function isPlainObject(value: unknown): boolean | undefined {
  if (typeof value !== 'object' || value === null) return false
  return Object.getPrototypeOf(value) === Object.prototype && !(Symbol.toStringTag in value) ? true : undefined
}

/** By the copy of a mapping that an action gets. */
const compiled = new WeakMap<object, Kit['transform']>()

/**
 * Has the kit evaluate this copy of a mapping with the functions of the compiled one, until it is collected. Nothing may change it before it is
 * evaluated.
 */
export function useCompiled(copy: object, mapping: CompiledMapping): void {
  compiled.set(copy, (_, data, stats) => mapping(data as object, stats))
}

/** Null if the kit refuses the mapping, or has to evaluate all of it. After boundMappingKit(). */
export function compiledMapping(mapping: JsonObject): CompiledMapping | null {
  const folder = join(dirname(require.resolve('@segment/actions-core')), 'mapping-kit')
  const { default: validate } = require(join(folder, 'validate.js')) as { default: (mapping: object) => void }
  try {
    validate(mapping)
  } catch {
    return null
  }
  const { transform } = require(folder) as MappingKit
  const { render } = require(join(folder, 'placeholders.js')) as MappingKit
  return compileMapping(mapping, { transform, render, get: boundedGet, segmentsOf })
}

/** A mapping with @transform calls the kit again: that counts towards the same limit. */
function bounded<T>(evaluate: () => T): T {
  const before = left
  left ??= MAX_READ
  try {
    return evaluate()
  } finally {
    if (before === null) left = null
  }
}

/** The same separators as in the mapping kit: `a.b`, `a[0]`, `a['b']`. */
const SEPARATORS = /\[(?="|'|\d)|\.|(?<="|'|\d)]+/g

function boundedGet(from: unknown, path: string | readonly string[] | null | undefined): unknown {
  if (path === null || path === undefined) return undefined
  const value = path === '' || path === '.' ? from : readSegments(from, typeof path === 'string' ? segmentsOf(path) : path)
  if (left !== null) charge(value)
  return value
}

function segmentsOf(path: string): string[] {
  const segments = path.split(SEPARATORS).filter((segment) => segment !== '')
  return segments.map((segment) => segment.replaceAll(/['"]/g, ''))
}

/** Like the mapping kit, returns what ends the walk early: null, false, 0 or ''. */
function readSegments(from: unknown, segments: readonly PropertyKey[]): unknown {
  let value = from
  for (const key of segments) {
    if (!value) return value
    value = Object.hasOwn(value, key) ? (value as Record<PropertyKey, unknown>)[key] : undefined
  }
  return value
}

function spend(amount: number): void {
  if (left === null) return
  left -= amount
  if (left < 0) throw new TooMuch()
}

function charge(value: unknown): void {
  if (typeof value === 'string') return spend(value.length + 2)
  if (typeof value !== 'object' || value === null) return spend(5)
  for (const key of Object.keys(value)) {
    spend(key.length + 4)
    charge((value as Record<string, unknown>)[key])
  }
}

function flattenObject(input: unknown, prefix = '', separator = '.', keepArrays = false): Record<string, unknown> {
  const result: Record<string, unknown> = {}
  flattenInto(result, input, prefix, separator, keepArrays)
  return result
}

function flattenInto(result: Record<string, unknown>, input: unknown, prefix: string, separator: string, keepArrays: boolean): void {
  if (typeof input === 'object' && input !== null && !(keepArrays && Array.isArray(input))) {
    for (const [key, value] of Object.entries(input)) {
      flattenInto(result, value, prefix === '' ? key : `${prefix}${separator}${key}`, separator, keepArrays)
    }
    return
  }
  spend(prefix.length + 4)
  if (prefix !== '__proto__') result[prefix] = input
}
