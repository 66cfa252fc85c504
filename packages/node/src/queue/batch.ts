// A batch of queued messages. Its JSON is in chunks of memory outside the JavaScript heap, which many batches share. So a batch
// costs one small object, and a long queue hardly grows the heap: V8 doubles its young generation when objects survive, and with
// a buffer for each batch it took 134 MB for a million messages.

import { platform } from '#platform'
import type { Callback } from '../call/callback.ts'
import type { Context } from '../call/context.ts'
import { type AnalyticsEvent, LIBRARY_CONTEXT } from '../call/event.ts'
import type { PluginRun } from '../plugins/pipeline.ts'
import type { Period } from './flush-periods.ts'
import type { SpoolRange } from './spool.ts'

/** The context and callback of a message, for when its outcome is known. */
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
 * Most messages end with the same text: a context that names only the library. That is 69 bytes, a tenth of a usual message. In a chunk,
 * the byte CUT stands for this text. JSON cannot contain this byte, because control characters are escaped.
 */
const CUT = 0x01
const COMMA = 0x2c
const USUAL_END = `,"context":${JSON.stringify(LIBRARY_CONTEXT)}}`
const CUT_BYTES = platform.encode(`${USUAL_END},`)

/** Writes a message into a chunk and returns the position after it, or undefined if the chunk has no room for it. `bytes` is the size of the JSON. */
export function writeMessage(json: string, bytes: number, chunk: Uint8Array, at: number): number | undefined {
  // endsWith() takes three times as long.
  const isCut = json.slice(-USUAL_END.length) === USUAL_END
  const end = isCut ? at + bytes - USUAL_END.length : at + bytes
  if (end >= chunk.length) return undefined
  platform.write(json, chunk, at, end - at)
  chunk[end] = isCut ? CUT : COMMA
  return end + 1
}

/** Size of the JSON of a batch, with a comma after each message. */
export function jsonBytes(batch: Batch): number {
  return batch.bytes + batch.count
}

/** Writes the JSON of a batch, with a comma after each message. */
export function writeJson(batch: Batch, into: Uint8Array, start: number): void {
  const end = start + jsonBytes(batch)
  let at = start
  for (let run: Run | undefined = batch; run; run = run.next) {
    const stored = run.chunk.memory.subarray(run.from, run.to)
    // Copies the run to the end of the room, and then each message from there to its place. Creating a view of each message
    // instead would take a third longer.
    let from = end - stored.length
    into.set(stored, from)
    for (let cut = into.indexOf(CUT, from); cut !== -1 && cut < end; cut = into.indexOf(CUT, from)) {
      into.copyWithin(at, from, cut)
      at += cut - from
      into.set(CUT_BYTES, at)
      at += CUT_BYTES.length
      from = cut + 1
    }
    into.copyWithin(at, from, end)
    at += end - from
  }
  // Room that was not written may contain anything, and must not be sent.
  if (at !== end) throw new Error(`a batch has ${at - start} bytes instead of ${end - start}`)
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
