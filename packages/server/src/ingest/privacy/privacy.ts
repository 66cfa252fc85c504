// Applies the privacy rules of a source to its messages: values are dropped, hashed or masked in place, before anything else sees the message.
// The key of a source is derived from one secret of the installation and the id of the source, so that equal values of a source stay equal
// on every node, after a key rotation, and after a move to another store.

import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { JsonObject } from '@switchyard/protocol'
import { IDENTITIES, parsePath } from '../../api/resources/privacy-path.ts'
import type { PrivacyRule, Source } from '../../model/configuration.ts'
import { oncePerObject } from '../../model/once-per-object.ts'
import { State, type Step } from './privacy-states.ts'

/** A hash takes about 3 µs, and one request can contain 250,000 numbers that a rule with `*` matches. */
export const MAX_HASHED_VALUES = 20_000

/** Up to this number, it takes less time to look for the names of rules in an object than to list the keys of the object. */
const FEW_NAMES = 4

const HASH = /^[0-9a-f]{64}$/

/** A request has more values to hash than MAX_HASHED_VALUES. */
export class TooManyHashedValues extends Error {
  override name = 'TooManyHashedValues'
}

/** Changes a message, or an object with the fields of a batch, in place, and returns the number of changed values. Throws TooManyHashedValues. */
export type Protect = (message: JsonObject) => number

export interface Privacy {
  /** Returns null if the source has no rules. Call the function that it returns once per request. */
  of(source: Pick<Source, 'id' | 'privacy'>): (() => Protect) | null
  /** The same for messages that the rules, or earlier ones, were applied to before: what looks like a hash is not hashed again. */
  ofStored(source: Pick<Source, 'id' | 'privacy'>): (() => Protect) | null
  /** The ids that users have in the stored messages of a source, or null if the source does not hash user ids. */
  storedUserIds(source: Pick<Source, 'id' | 'privacy'>, userIds: readonly string[]): string[] | null
}

type Container = { [key: string]: unknown } | unknown[]
type Hash = (text: string) => string

/** `secret` is the stored secret `privacy_key`. */
export function createPrivacy(secret: string): Privacy {
  const hashOf = (sourceId: string): Hash => {
    const key = keyOf(secret, sourceId)
    return (text) => createHmac('sha256', key).update(text).digest('hex')
  }
  const compiled = oncePerObject(({ id, privacy = [] }: Pick<Source, 'id' | 'privacy'>) => compile(privacy, hashOf(id)))
  const compiledOfStored = oncePerObject(({ id, privacy = [] }: Pick<Source, 'id' | 'privacy'>) => {
    const hash = hashOf(id)
    return compile(privacy, (text) => (HASH.test(text) ? text : hash(text)))
  })
  return {
    of: (source) => (hasPrivacy(source) ? compiled(source) : null),
    ofStored: (source) => (hasPrivacy(source) ? compiledOfStored(source) : null),
    storedUserIds({ id, privacy }, userIds) {
      if (!privacy?.some(({ path }) => path === 'userId')) return null
      const hash = hashOf(id)
      // Whoever copies the id from a stored message already has the hash.
      return userIds.map((userId) => (HASH.test(userId) ? userId : hash(userId)))
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
  let first = new State(parsed)
  return () => {
    let left = MAX_HASHED_VALUES
    const counted: Hash = (text) => {
      if (--left < 0) throw new TooManyHashedValues()
      return hash(text)
    }
    return (message) => {
      if (first.isFull) first = new State(parsed)
      return walk(message, first, true, counted)
    }
  }
}

/** Returns the number of changed values. */
function walk(parent: Container, given: State, isMessage: boolean, hash: Hash): number {
  const isArray = Array.isArray(parent)
  const { state, isEmptied } = isArray ? given.ofArray : { state: given, isEmptied: false }
  let changed = 0
  if (state !== null) {
    // An array of empty objects must not cost the number of rules for each of them.
    for (const key of state.hasStar || state.names.size > FEW_NAMES ? Object.keys(parent) : state.names) {
      if (!Object.hasOwn(parent, key) || (isArray && key === 'length')) continue
      const step = state.step(key)
      if (step !== null) changed += change(parent, key, step, isMessage, hash)
    }
  }
  if (isArray && isEmptied) {
    changed += parent.length
    parent.length = 0
  }
  return changed
}

function change(parent: Container, key: string, { inside, actions }: Step, isMessage: boolean, hash: Hash): number {
  // Also by index, so that elements of an array need no case of their own.
  const fields = parent as { [key: string]: unknown }
  let changed = 0
  const found = fields[key]
  if (inside !== null && typeof found === 'object' && found !== null) changed += walk(found as Container, inside, false, hash)
  for (const action of actions) {
    const value = fields[key]
    // A message without a user has null or an empty string here. All of them would become the same user.
    if (isMessage && IDENTITIES.has(key) && (typeof value !== 'string' || value === '')) break
    changed++
    if (action === 'hash') fields[key] = hash(typeof value === 'string' ? value : JSON.stringify(value))
    else if (action === 'mask') fields[key] = masked(value)
    // The other elements of an array keep their index.
    else if (Array.isArray(parent)) fields[key] = null
    else {
      delete fields[key]
      break
    }
  }
  return changed
}

/** What is neither a string nor a number has no characters worth keeping: `t**e` would still show the value. */
function masked(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') return '***'
  // By code points, so that no half of a surrogate pair is kept.
  const characters = Array.from(String(value))
  if (characters.length <= 2) return '*'.repeat(characters.length)
  return `${characters[0]}${'*'.repeat(characters.length - 2)}${characters.at(-1)}`
}
