// Applies the privacy rules of a source to its messages: values are dropped, hashed or masked in place, before anything else sees the message.
// The key of a source is derived from one secret of the installation and the id of the source, so that equal values of a source stay equal
// on every node, after a key rotation, and after a move to another store.

import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { JsonObject } from '@switchyard/protocol'
import type { PrivacyRule, Source } from '../../store/port/model.ts'
import { IDENTITIES, NOT_IN_WILDCARD, parsePath, type Segment } from './privacy-path.ts'

/** A hash takes about 3 µs, and one request can contain 250,000 numbers that a rule with `*` matches. */
export const MAX_HASHED_VALUES = 20_000

/** A request has more values to hash than MAX_HASHED_VALUES. */
export class TooManyHashedValues extends Error {
  override name = 'TooManyHashedValues'
}

/** Changes a message, or an object with the fields of a batch, in place, and returns the number of changed values. Throws TooManyHashedValues. */
export type Protect = (message: JsonObject) => number

export interface Privacy {
  /** Returns null if the source has no rules. Call the function that it returns once per request. */
  of(source: Pick<Source, 'id' | 'privacy'>): (() => Protect) | null
  /** The ids that users have in the stored messages of a source, or null if the source does not hash user ids. */
  storedUserIds(source: Pick<Source, 'id' | 'privacy'>, userIds: readonly string[]): string[] | null
}

type Container = { [key: string]: unknown } | unknown[]
type Hash = (text: string) => string

/** `secret` is the stored secret `privacy_key`. */
export function createPrivacy(secret: string): Privacy {
  const compiled = new WeakMap<object, () => Protect>()
  const hashOf = (sourceId: string): Hash => {
    const key = keyOf(secret, sourceId)
    return (text) => createHmac('sha256', key).update(text).digest('hex')
  }
  return {
    of(source) {
      if (!hasPrivacy(source)) return null
      let protection = compiled.get(source)
      if (protection === undefined) compiled.set(source, (protection = compile(source.privacy, hashOf(source.id))))
      return protection
    },
    storedUserIds({ id, privacy }, userIds) {
      if (!privacy?.some(({ path }) => path === 'userId')) return null
      const hash = hashOf(id)
      // Whoever copies the id from a stored message already has the hash.
      return userIds.map((userId) => (/^[0-9a-f]{64}$/.test(userId) ? userId : hash(userId)))
    },
  }
}

export function hasPrivacy<T extends Pick<Source, 'privacy'>>(source: T): source is T & Required<Pick<Source, 'privacy'>> {
  return source.privacy !== undefined && source.privacy.length > 0
}

/** The address of the sender is added to `context.ip` later, so a rule for that field applies to it as well. */
export function protectAddress(protect: Protect, ip: string): string | null {
  const message: { context?: { ip?: unknown } } = { context: { ip } }
  protect(message)
  const { ip: left } = message.context ?? {}
  return typeof left === 'string' ? left : null
}

function keyOf(secret: string, sourceId: string): KeyObject {
  return createSecretKey(createHmac('sha256', secret).update(sourceId).digest())
}

function compile(rules: readonly PrivacyRule[], hash: Hash): () => Protect {
  const parsed = rules.map(({ path, action }) => {
    const segments = parsePath(path)
    // The rules were checked when they were saved. If one cannot be read any more, no message of the source may be stored.
    if (typeof segments === 'string') throw new Error(`The privacy path ${JSON.stringify(path)} ${segments}.`)
    return { segments, action }
  })
  return () => {
    let left = MAX_HASHED_VALUES
    const counted: Hash = (text) => {
      if (--left < 0) throw new TooManyHashedValues()
      return hash(text)
    }
    return (message) => {
      let changed = 0
      for (const { segments, action } of parsed) changed += walk(message, segments, 0, action, counted)
      return changed
    }
  }
}

function walk(parent: Container, segments: readonly Segment[], at: number, action: PrivacyRule['action'], hash: Hash): number {
  const segment = segments[at] as Segment
  const isLast = at === segments.length - 1
  // Also by index, so that elements of an array need no case of their own below.
  const fields = parent as { [key: string]: unknown }
  let changed = 0
  if (segment === null) {
    const keys = Object.keys(parent)
    if (isLast && action === 'drop' && Array.isArray(parent)) {
      parent.length = 0
      return keys.length
    }
    for (const key of keys) if (at > 0 || !NOT_IN_WILDCARD.has(key)) visit(key)
  } else if (Object.hasOwn(parent, segment) && !(Array.isArray(parent) && segment === 'length')) visit(segment)
  return changed

  function visit(key: string): void {
    const value = fields[key]
    if (!isLast) {
      if (typeof value === 'object' && value !== null) changed += walk(value as Container, segments, at + 1, action, hash)
      return
    }
    // A message without a user has null or an empty string here. All of them would become the same user.
    if (at === 0 && IDENTITIES.has(key) && (typeof value !== 'string' || value === '')) return
    changed++
    if (action === 'hash') fields[key] = hash(typeof value === 'string' ? value : JSON.stringify(value))
    else if (action === 'mask') fields[key] = masked(value)
    // The other elements of an array keep their index.
    else if (Array.isArray(parent)) fields[key] = null
    else delete fields[key]
  }
}

/** What is neither a string nor a number has no characters worth keeping: `t**e` would still show the value. */
function masked(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') return '***'
  // By code points, so that no half of a surrogate pair is kept.
  const characters = Array.from(String(value))
  if (characters.length <= 2) return '*'.repeat(characters.length)
  return `${characters[0]}${'*'.repeat(characters.length - 2)}${characters.at(-1)}`
}
