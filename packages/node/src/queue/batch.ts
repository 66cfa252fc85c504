// A batch of queued messages. Its JSON is in chunks of memory outside the JavaScript heap, which many batches share. So a batch
// costs one small object, and a long queue hardly grows the heap: V8 doubles its young generation when objects survive, and with
// a buffer for each batch it took 134 MB for a million messages.

import { MESSAGE_TYPES } from '@switchyard/protocol'
import { platform } from '#platform'
import type { Callback } from '../call/callback.ts'
import type { Context } from '../call/context.ts'
import { type AnalyticsEvent, LIBRARY_CONTEXT } from '../call/event.ts'
import type { PluginRun } from '../plugins/pipeline.ts'
import type { SpoolRange } from '../spool.ts'
import type { Period } from './flush-periods.ts'

/** The context and callback of a message, used when its outcome is known. */
export interface Waiter {
  /** Index of the message in its batch. */
  index: number
  ctx: Context
  callback: Callback | undefined
  /** Set if plugins processed the message. */
  piped: Piped | undefined
}

/** State of a message that plugins processed: its after plugins run when its destination plugins have finished. */
export interface Piped {
  destinations: PluginRun | undefined
}

/** Memory for many messages. */
export interface Chunk {
  memory: Uint8Array<ArrayBuffer>
  /** Number of runs that are not settled, and one more while the chunk is being filled. */
  uses: number
}

/** Bytes `from` to `to` of a chunk, as written by writeMessage(). */
export interface Run {
  chunk: Chunk
  from: number
  to: number
  /** Set if the messages continue in another chunk. */
  next: Run | undefined
}

export interface Batch extends Run {
  count: number
  /** Total size of the messages as JSON, as counted against the queue's limit. */
  bytes: number
  period: Period
  waiters: Waiter[] | undefined
  spooled: SpoolRange[] | undefined
}

/**
 * Most messages start with their type and end with a context that names only the library. These texts are a sixth of a
 * usual message, so they are not stored. In a chunk, a message is a byte that says what it starts and ends with, the text in between,
 * and the byte END. JSON cannot contain END, because control characters are escaped.
 */
const END = 0x01
const STARTS = ['', ...MESSAGE_TYPES.map((type) => `{"type":"${type}","messageId":"`)]
const START_BYTES = STARTS.map((start) => platform.encode(start))
const LIBRARY_END = `,"context":${JSON.stringify(LIBRARY_CONTEXT)}}`
const LIBRARY_END_BYTES = platform.encode(`${LIBRARY_END},`)
/** Added to the index of the start if the message ends with LIBRARY_END. */
const HAS_LIBRARY_END = 0x80
const COMMA = 0x2c
/** What a message needs in a chunk in addition to its JSON, at most. */
export const STORAGE_OVERHEAD_BYTES = 2
/** The index in STARTS by the first letter of the type. */
const START_OF_LETTER = new Map(MESSAGE_TYPES.map((type, index) => [type.charCodeAt(0), index + 1]))
const LETTER_AT = '{"type":"'.length

/** Writes a message into a chunk and returns the position after it, or undefined if the chunk has no room for it. `bytes` is the size of the JSON. */
export function writeMessage(json: string, bytes: number, chunk: Uint8Array, at: number): number | undefined {
  let start = START_OF_LETTER.get(json.charCodeAt(LETTER_AT)) ?? 0
  let startLength = (STARTS[start] as string).length
  // slice() takes a third of the time of startsWith() and endsWith().
  if (json.slice(0, startLength) !== STARTS[start]) start = startLength = 0
  const endLength = json.slice(-LIBRARY_END.length) === LIBRARY_END ? LIBRARY_END.length : 0
  const end = at + 1 + bytes - startLength - endLength
  if (end >= chunk.length) return undefined
  chunk[at] = endLength > 0 ? start + HAS_LIBRARY_END : start
  platform.write(json.slice(startLength, json.length - endLength), chunk, at + 1)
  chunk[end] = END
  return end + 1
}

/** Size of the JSON of a batch, with a comma after each message. */
export function jsonBytes(batch: Batch): number {
  return batch.bytes + batch.count
}

/** Writes the JSON of a batch, with a comma after each message. */
export function writeJson(batch: Batch, into: Uint8Array, offset: number): void {
  let at = offset
  for (let run: Run | undefined = batch; run; run = run.next) {
    const stored = run.chunk.memory.subarray(run.from, run.to)
    for (let from = 0, end = 0; from < stored.length; from = end + 1) {
      const code = stored[from] as number
      end = stored.indexOf(END, from + 1)
      const start = START_BYTES[code & ~HAS_LIBRARY_END] as Uint8Array
      into.set(start, at)
      at += start.length
      into.set(stored.subarray(from + 1, end), at)
      at += end - from - 1
      if (code < HAS_LIBRARY_END) into[at++] = COMMA
      else {
        into.set(LIBRARY_END_BYTES, at)
        at += LIBRARY_END_BYTES.length
      }
    }
  }
  // Room that was not written may contain anything, and must not be sent.
  if (at !== offset + jsonBytes(batch)) throw new Error(`a batch has ${at - offset} bytes instead of ${jsonBytes(batch)}`)
}

export function eventsOf(batch: Batch): AnalyticsEvent[] {
  const json = platform.allocate(jsonBytes(batch))
  writeJson(batch, json, 0)
  return JSON.parse(`[${platform.decode(json.subarray(0, -1))}]`) as AnalyticsEvent[]
}

/** Appends the messages of `next` to `batch`. */
export function join(batch: Batch, next: Batch): void {
  if (next.waiters) {
    batch.waiters ??= []
    for (const waiter of next.waiters) batch.waiters.push({ ...waiter, index: waiter.index + batch.count })
  }
  if (next.spooled) {
    batch.spooled ??= []
    batch.spooled.push(...next.spooled)
  }
  let last: Run = batch
  while (last.next) last = last.next
  if (last.chunk === next.chunk && last.to === next.from) {
    last.to = next.to
    last.next = next.next
    endUse(next.chunk)
  } else last.next = { chunk: next.chunk, from: next.from, to: next.to, next: next.next }
  batch.bytes += next.bytes
  batch.count += next.count
}

/** Frees the memory of the messages of a batch. They cannot be read after this. */
export function free(batch: Batch): void {
  for (let run: Run | undefined = batch; run; run = run.next) endUse(run.chunk)
}

/**
 * Frees the memory of a chunk after its last use. The garbage collector would free it much later, because it runs when the heap
 * grows, and these chunks are not in the heap.
 */
export function endUse(chunk: Chunk): void {
  // Node.js 18 and 20 do not have transfer(), and free the memory at the next garbage collection.
  if (--chunk.uses === 0) (chunk.memory.buffer as { transfer?: (bytes: number) => unknown }).transfer?.(0)
}
