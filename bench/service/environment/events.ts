// The traffic: `track` events of 700 bytes, built once and given a new messageId before each request. The id is
// a UUID that looks random like those of clients (sequential ids would favour any index), but the event's number can be decoded from it, so that
// the receiver identifies an event in a few nanoseconds.

import { randomInt } from 'node:crypto'

export const EVENT_BYTES = 700
export const EVENTS_PER_REQUEST = 15
/** The largest batch of such events that the tracking API accepts: 500 KB. */
export const EVENTS_PER_LARGE_REQUEST = 690
/** Larger batches have smaller events, so that as many fit. */
export const SHORT_EVENT_BYTES = 500
export const MAX_EVENTS_PER_REQUEST = 1_000

/** Differs in every run, because a store that is kept would drop the ids of an earlier run as duplicates. */
const SALT = randomInt(2 ** 32)
const ID_LENGTH = 36
const USER_PREFIX = '"userId":"user_'
const USER_DIGITS = 10
const PLACEHOLDER = '00000000-0000-4a7b-8c1d-0000'
const EVENT_NAMES = ['Order Completed', 'Product Viewed', 'Cart Updated', 'Signup Finished', 'Invoice Paid', 'Plan Changed']
const WORDS = 'amber basin cedar delta ember fjord grove haven inlet jetty knoll lagoon meadow north orchard pier quarry ridge'.split(' ')

/** A request body and the offsets of the ids in it. */
export interface Template {
  bytes: Buffer
  bodyBytes: number
  idOffsets: number[]
  /** Of the digits of the user ids. */
  userOffsets: number[]
}

export interface Target {
  host: string
  port: number
  /** If a program listens on several addresses, connections are distributed over them. */
  ports?: number[]
  path: string
  headers: Record<string, string>
}

/** A complete HTTP request with `events` events. Values are drawn from `seed`, so two templates have the same structure but different content. */
export function buildTemplate(target: Target, events: number, seed: number): Template {
  const random = createRandom(seed)
  const now = new Date().toISOString()
  const batch = Array.from({ length: events }, () => buildEvent(random, now, eventBytesIn(events)))
  const body = JSON.stringify({ batch, sentAt: now })
  const headers = { Host: `${target.host}:${target.port}`, 'Content-Type': 'application/json', ...target.headers }
  const lines = Object.entries({ ...headers, 'Content-Length': Buffer.byteLength(body) }).map(([name, value]) => `${name}: ${value}\r\n`)
  const bytes = Buffer.from(`POST ${target.path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  const idOffsets: number[] = []
  for (let at = bytes.indexOf(PLACEHOLDER); at !== -1; at = bytes.indexOf(PLACEHOLDER, at + ID_LENGTH)) idOffsets.push(at)
  const userOffsets: number[] = []
  for (let at = bytes.indexOf(USER_PREFIX); at !== -1; at = bytes.indexOf(USER_PREFIX, at + 1)) userOffsets.push(at + USER_PREFIX.length)
  if (idOffsets.length !== events) throw new Error(`found ${idOffsets.length} id placeholders in ${events} events`)
  return { bytes, bodyBytes: Buffer.byteLength(body), idOffsets, userOffsets }
}

/** The size of an event in a batch of this many. */
export function eventBytesIn(events: number): number {
  return events > EVENTS_PER_LARGE_REQUEST ? SHORT_EVENT_BYTES : EVENT_BYTES
}

function buildEvent(random: () => number, timestamp: string, bytes: number) {
  const word = () => WORDS[Math.floor(random() * WORDS.length)] ?? ''
  const digits = (count: number) => Array.from({ length: count }, () => Math.floor(random() * 10)).join('')
  const product = () => ({ productId: `p_${digits(8)}`, sku: `${word()}-${digits(4)}`, price: Number(digits(4)) / 100, quantity: 2 })
  const event = {
    messageId: `${PLACEHOLDER}${digits(8)}`,
    timestamp,
    type: 'track',
    event: EVENT_NAMES[Math.floor(random() * EVENT_NAMES.length)],
    userId: `user_${digits(USER_DIGITS)}`,
    properties: {
      orderId: `order_${digits(12)}`,
      total: Number(digits(6)) / 100,
      currency: 'EUR',
      isFirst: random() < 0.5,
      products: bytes < EVENT_BYTES ? [] : [product(), product()],
      path: `/${word()}/${word()}/${digits(6)}`,
      tags: [word(), word(), word()],
      note: '',
    },
    context: { library: { name: '@switchyard/node', version: '0.1.0' }, locale: 'en-GB', app: { name: word(), build: digits(4) } },
    integrations: {},
  }
  const noteBytes = bytes - JSON.stringify(event).length
  while (event.properties.note.length < noteBytes) event.properties.note += `${word()} `
  event.properties.note = event.properties.note.slice(0, noteBytes)
  return event
}

/** Writes the ids of the events `first`, `first + 1`, … into the template. */
export function stampIds({ bytes, idOffsets }: Template, first: number): void {
  for (let index = 0; index < idOffsets.length; index += 1) {
    const at = idOffsets[index] ?? 0
    const low = mix(first + index)
    const high = mix(low ^ SALT)
    writeHex(bytes, at, low >>> 16)
    writeHex(bytes, at + 4, low & 0xffff)
    writeHex(bytes, at + 9, high >>> 16)
    writeHex(bytes, at + 24, high & 0xffff)
  }
}

/** The user of an event, one of `users`: which one is random, but the same in every run. */
export function userOf(sequence: number, users: number): number {
  return mix(sequence ^ 0x5bd1e995) % users
}

/** Gives the events `first`, `first + 1`, … their users. */
export function stampUsers({ bytes, userOffsets }: Template, first: number, users: number): void {
  for (const [index, at] of userOffsets.entries()) {
    let left = userOf(first + index, users)
    for (let digit = USER_DIGITS - 1; digit >= 0; digit -= 1) {
      bytes[at + digit] = 48 + (left % 10)
      left = Math.floor(left / 10)
    }
  }
}

/** The number of the event whose id starts at `at`. */
export function sequenceAt(body: Buffer, at: number): number {
  return unmix(Number.parseInt(body.toString('latin1', at, at + 8), 16))
}

const HEX = Uint8Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0))

function writeHex(bytes: Buffer, at: number, value: number): void {
  bytes[at] = HEX[value >>> 12] ?? 0
  bytes[at + 1] = HEX[(value >>> 8) & 15] ?? 0
  bytes[at + 2] = HEX[(value >>> 4) & 15] ?? 0
  bytes[at + 3] = HEX[value & 15] ?? 0
}

// MurmurHash3's finalizer, a bijection of 32 bits, and its inverse (the odd factors' inverses modulo 2^32).
function mix(value: number): number {
  let hash = value ^ (value >>> 16)
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  hash = Math.imul(hash, 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

function unmix(value: number): number {
  let hash = value ^ (value >>> 16)
  hash = Math.imul(hash, 0x7ed1b41d)
  hash ^= (hash >>> 13) ^ (hash >>> 26)
  hash = Math.imul(hash, 0xa5cb9243)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** mulberry32: the same events in every run. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}
