// What can distinguish one message from others of the same event: the presence, the types and the values of its fields, its source, its size, and
// the version of the destination that sent it. Pure. Messages are hostile: the work for each is bounded, and names of fields are only ever keys
// of a Map or parts of an array.

import type { JsonObject } from '@switchyard/protocol'

export interface Feature {
  /** The fields on the way to the value. `[]` stands for the elements of an array. Empty for what is not a field. */
  path: readonly string[]
  kind: 'presence' | 'type' | 'value' | 'source' | 'version' | 'size'
  value: string
}

/** More fields than any plan describes. The rest of a message is only counted as "more". */
export const MAX_FIELDS = 500
const MAX_DEPTH = 6
const MAX_ELEMENTS = 20
const MAX_NAME = 100
/** Longer texts are different in every message, and may be free text about a person. */
export const MAX_VALUE = 64

/** They are different in every message. */
const UNIQUE: ReadonlySet<string> = new Set(['messageId', 'timestamp', 'originalTimestamp', 'sentAt', 'receivedAt', 'version'])
const SIZES: readonly (readonly [bytes: number, text: string])[] = [
  [1_024, '1 KB'],
  [4_096, '4 KB'],
  [8_192, '8 KB'],
  [16_384, '16 KB'],
  [32_768, '32 KB'],
]

/** By a key that is the same for the same feature of another message. */
export type Features = Map<string, Feature>

/** `message`: as destinations get it. */
export function featuresOf(message: JsonObject, about: { sourceId: string; version: number | null; bytes: number }): Features {
  const found: Features = new Map()
  add(found, [], 'source', about.sourceId)
  if (about.version !== null) add(found, [], 'version', String(about.version))
  for (const [bytes, text] of SIZES) if (about.bytes >= bytes) add(found, [], 'size', text)
  const left = { fields: MAX_FIELDS }
  for (const name of Object.keys(message)) if (!UNIQUE.has(name) && message[name] !== undefined) walk(found, [name], message[name], left)
  if (left.fields < 0) add(found, [], 'size', `${MAX_FIELDS} fields`)
  return found
}

function walk(found: Features, path: readonly string[], value: unknown, left: { fields: number }): void {
  if (--left.fields < 0) return
  const type = typeOf(value)
  add(found, path, 'presence', '')
  add(found, path, 'type', type)
  if (Array.isArray(value)) {
    if (path.length >= MAX_DEPTH) return
    for (const element of value.slice(0, MAX_ELEMENTS)) walk(found, [...path, '[]'], element, left)
  } else if (typeof value === 'object' && value !== null) {
    if (path.length >= MAX_DEPTH) return
    for (const name in value) {
      if (left.fields < 0) return
      if (!Object.hasOwn(value, name) || name.length > MAX_NAME) continue
      walk(found, [...path, name], (value as JsonObject)[name], left)
    }
  } else if (value !== null) {
    const text = JSON.stringify(value)
    if (text.length <= MAX_VALUE) add(found, path, 'value', text)
  }
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return value.length === 0 ? 'empty array' : 'array'
  if (value === '') return 'empty string'
  return typeof value
}

function add(found: Features, path: readonly string[], kind: Feature['kind'], value: string): void {
  found.set(JSON.stringify([kind, path, value]), { path, kind, value })
}
