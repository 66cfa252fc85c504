// A batch of queued messages. Its JSON is in chunks of memory outside the JavaScript heap, which many batches share. So a batch
// costs one small object, and a long queue hardly grows the heap: V8 doubles its young generation when objects survive, and with
// a buffer for each batch it took 134 MB for a million messages.

import { platform } from '#platform'
import type { Callback } from '../call/callback.ts'
import type { Context } from '../call/context.ts'
import type { AnalyticsEvent } from '../call/event.ts'
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

/** Bytes `from` to `to` of a chunk: the JSON of messages, separated by commas. */
export interface Run {
  chunk: Uint8Array
  from: number
  to: number
  /** Set if the messages continue in another chunk. */
  next: Run | undefined
}

export interface Batch extends Run {
  count: number
  /** Total size of the messages without the commas, as counted against the queue's limit. */
  bytes: number
  period: Period
  waiters: Waiter[] | undefined
  spooled: SpoolRange[] | undefined
}

/** The JSON of the messages, separated by commas, in parts that must be joined by commas, too. */
export function partsOf(batch: Batch): Uint8Array[] {
  const parts: Uint8Array[] = []
  for (let run: Run | undefined = batch; run; run = run.next) parts.push(run.chunk.subarray(run.from, run.to))
  return parts
}

export function eventsOf(batch: Batch): AnalyticsEvent[] {
  const texts = partsOf(batch).map((part) => platform.decode(part))
  return JSON.parse(`[${texts.join(',')}]`) as AnalyticsEvent[]
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
  // Batches that follow each other in a chunk have a comma between them.
  if (last.chunk === next.chunk && last.to + 1 === next.from) {
    last.to = next.to
    last.next = next.next
  } else last.next = { chunk: next.chunk, from: next.from, to: next.to, next: next.next }
  batch.bytes += next.bytes
  batch.count += next.count
}
