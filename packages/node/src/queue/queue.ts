// The queue of messages to send, limited in bytes. Messages are collected as text until their batch is full; then the batch is
// encoded to bytes outside the JavaScript heap. A million calls in one tight loop therefore need little more memory than their
// own size (the public client, with objects and a promise for each, runs out of 4 GB: bench/client, --all). Nothing here knows
// how a batch is sent.

import { MAX_BATCH_MESSAGES } from '@switchyard/protocol'
import { platform } from '#platform'
import type { Callback } from '../call/callback.ts'
import type { Context } from '../call/context.ts'
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

export interface Batch {
  /** JSON of the messages, separated by commas. The parts must be joined by commas, too. */
  parts: Uint8Array[]
  count: number
  /** Total size of the messages without the commas, as counted against the queue's limit. */
  bytes: number
  period: Period
  waiters: Waiter[] | undefined
  spooled: SpoolRange[] | undefined
}

/** A message that was removed from the queue again. */
export interface Recalled {
  json: string
  bytes: number
  period: Period
  waiter: Waiter | undefined
  spooledAs: number | undefined
}

export interface QueueOptions {
  flushAt: number
  flushIntervalMs: number
  maxBatchBytes: number
  maxBytes: number
  highWaterBytes: number
  /** A batch is ready to be taken. */
  onReady: () => void
  /** The queue has fallen to half of the high-water mark, after a call returned false. */
  onDrained: () => void
}

/** Large enough that the overhead of a request is negligible, and small enough to be sent well within its timeout. */
const JOINED_BYTES = 64 * 1024

export class Queue {
  readonly #options: QueueOptions
  #bytes = 0
  #returnedFull = false
  #isSealing = false
  /** Number of messages at the end of the queue that were added by the code that is running now (in the current microtask). */
  #fresh = 0
  #ready: Batch[] = []
  #head = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  /** The batch being filled. */
  #text = ''
  #textBytes = 0
  #count = 0
  #startedAt = 0
  #period: Period | undefined
  #waiters: Waiter[] | undefined
  #spooled: SpoolRange[] | undefined

  constructor(options: QueueOptions) {
    this.#options = options
  }

  /** Reserves room for a message from its call until its outcome is known. Returns false if the queue is full. */
  reserve(bytes: number): boolean {
    if (this.#bytes + bytes > this.#options.maxBytes) return false
    this.#bytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#bytes -= bytes
    if (this.#returnedFull && this.#bytes <= this.#options.highWaterBytes / 2) {
      this.#returnedFull = false
      this.#options.onDrained()
    }
  }

  /** The return value of a call: false means that the caller should wait for `drained`. */
  isBelowMark(): boolean {
    if (this.#bytes <= this.#options.highWaterBytes) return true
    this.#returnedFull = true
    this.sealSoon()
    return false
  }

  /** Reserves room for a message that can wait: if the queue is below the high-water mark, or if it is empty, whatever the size of the message. */
  admit(bytes: number): boolean {
    if (this.#bytes === 0 || (this.isBelowMark() && this.#bytes + bytes <= this.#options.maxBytes)) {
      this.#bytes += bytes
      return true
    }
    this.sealSoon()
    return false
  }

  /** Adds a message for which room is reserved. `isFresh`: its call was made just now, so it can be recalled. */
  add(
    json: string,
    bytes: number,
    period: Period,
    waiter: Omit<Waiter, 'index'> | undefined,
    spooledAs: number | undefined,
    isFresh: boolean,
  ): void {
    if (!isFresh) this.#fresh = 0
    else if (this.#fresh++ === 0) queueMicrotask(this.#endFresh)
    // A batch contains either only spooled messages or none, because at close spooled messages are kept and others are lost.
    const isOther = this.#period !== period || (this.#spooled === undefined) !== (spooledAs === undefined)
    if (this.#count > 0 && (isOther || this.#textBytes + bytes + 1 > this.#options.maxBatchBytes)) this.seal()
    if (this.#count === 0) this.#start(period)
    else this.#text += ','
    this.#text += json
    if (waiter) {
      this.#waiters ??= []
      this.#waiters.push({ ...waiter, index: this.#count })
    }
    if (spooledAs !== undefined) this.#noteSpooled(spooledAs)
    this.#textBytes += bytes + 1
    if (++this.#count >= this.#options.flushAt) this.seal()
  }

  readonly #endFresh = (): void => {
    this.#fresh = 0
  }

  /** Removes and returns the messages that the code running now has added. Sending starts only after that code has finished, so none of them was sent. */
  recall(): Recalled[] {
    const fresh = this.#fresh
    if (fresh === 0) return []
    this.seal()
    let from = this.#ready.length
    let count = 0
    while (count < fresh && from > this.#head) count += (this.#ready[--from] as Batch).count
    const messages = this.#ready.splice(from).flatMap(messagesOf)
    const older = messages.splice(0, Math.max(count - fresh, 0))
    for (const { json, bytes, period, waiter, spooledAs } of older) this.add(json, bytes, period, waiter, spooledAs, false)
    this.#fresh = 0
    return messages
  }

  /** Completes the batch that is being filled, so that it can be sent. */
  seal(): void {
    if (this.#count === 0) return
    this.#ready.push({
      parts: [platform.encode(this.#text)],
      count: this.#count,
      bytes: this.#textBytes - this.#count,
      period: this.#period as Period,
      waiters: this.#waiters,
      spooled: this.#spooled,
    })
    this.#text = ''
    this.#textBytes = 0
    this.#count = 0
    this.#waiters = undefined
    this.#spooled = undefined
    this.#options.onReady()
  }

  /**
   * Returns the next batch to send; `freeSlots` is the number of requests that can be started now. If more batches than that are
   * ready, the service or the network is slow, and batches are combined into one request, because a request of fifteen messages costs
   * nearly as much as one of a hundred. (bench/client, tight, five interleaved pairs: 1,142 ms with this, 1,741 ms without.)
   */
  take(freeSlots: number): Batch | undefined {
    const batch = this.#shift()
    if (batch === undefined || this.#options.flushAt === 1) return batch
    for (let share = Math.ceil((this.#ready.length - this.#head + 1) / freeSlots); share > 1; share--) {
      const next = this.#ready[this.#head]
      if (next === undefined || next.period !== batch.period || batch.bytes + next.bytes > JOINED_BYTES) break
      if (batch.count + next.count > MAX_BATCH_MESSAGES || (batch.spooled === undefined) !== (next.spooled === undefined)) break
      join(batch, next)
      this.#shift()
    }
    return batch
  }

  #shift(): Batch | undefined {
    const batch = this.#ready[this.#head]
    if (batch === undefined) return undefined
    this.#ready[this.#head++] = undefined as unknown as Batch
    // Calling shift() for each of a hundred thousand batches would be quadratic; slicing when half is used is not.
    if (this.#head > 1_000 && this.#head * 2 > this.#ready.length) {
      this.#ready = this.#ready.slice(this.#head)
      this.#head = 0
    }
    return batch
  }

  /**
   * Completes the batch in the next turn of the event loop, if someone is waiting for its messages. The delay lets messages that
   * arrive together (from plugins, the spool or further calls) share a batch.
   */
  sealSoon(): void {
    if (this.#isSealing) return
    this.#isSealing = true
    setTimeout(() => {
      this.#isSealing = false
      this.seal()
    }, 0)
  }

  /** Stops the timer. Queued messages stay in the queue. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #start(period: Period): void {
    this.#period = period
    this.#startedAt = performance.now()
    this.#timer ??= this.#wait(this.#options.flushIntervalMs)
  }

  // One timer serves many batches: under load a batch fills up long before the interval ends, and setting and clearing a
  // timer for each batch costs about as much as composing a message.
  #wait(ms: number): ReturnType<typeof setTimeout> {
    return platform.idleTimer(() => {
      this.#timer = undefined
      if (this.#count === 0) return
      const left = this.#startedAt + this.#options.flushIntervalMs - performance.now()
      if (left > 1) this.#timer = this.#wait(left)
      else this.seal()
    }, ms)
  }

  #noteSpooled(number: number): void {
    const last = this.#spooled?.at(-1)
    if (last?.to === number - 1) last.to = number
    else {
      this.#spooled ??= []
      this.#spooled.push({ from: number, to: number })
    }
  }
}

function join(batch: Batch, next: Batch): void {
  if (next.waiters) {
    batch.waiters ??= []
    for (const waiter of next.waiters) batch.waiters.push({ ...waiter, index: waiter.index + batch.count })
  }
  if (next.spooled) {
    batch.spooled ??= []
    batch.spooled.push(...next.spooled)
  }
  batch.parts.push(...next.parts)
  batch.bytes += next.bytes
  batch.count += next.count
}

function messagesOf({ parts, period, waiters, spooled }: Batch): Recalled[] {
  const events = JSON.parse(`[${parts.map((part) => platform.decode(part)).join(',')}]`) as unknown[]
  const waiterOf = new Map(waiters?.map((waiter) => [waiter.index, waiter]))
  const numbers = spooled?.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, at) => from + at))
  return events.map((event, index) => {
    const json = JSON.stringify(event)
    return { json, bytes: platform.byteLength(json), period, waiter: waiterOf.get(index), spooledAs: numbers?.[index] }
  })
}
