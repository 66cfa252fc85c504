// Messages waiting to be sent, bounded in bytes. A message is text until its batch is full, then the batch is bytes
// outside the JavaScript heap: a million calls in one tight loop cost their own size and little more (the public
// client, with objects and a promise for each, runs out of 4 GB there: bench/client, --all). Nothing here knows how a batch is sent.

import { MAX_BATCH_MESSAGES } from '@switchyard/protocol'
import { platform } from '#platform'
import type { Callback } from '../call/callback.ts'
import type { Context } from '../call/context.ts'
import type { PluginRun } from '../plugins/pipeline.ts'
import type { Period } from './flush-periods.ts'
import type { SpoolRange } from './spool.ts'

/** Someone to tell of one message's outcome. */
export interface Waiter {
  /** The message's place in its batch. */
  index: number
  ctx: Context
  callback: Callback | undefined
  /** Set if the message came through plugins. */
  piped: Piped | undefined
}

/** A message that came through plugins: after plugins are still to run, once destination plugins are done with it. */
export interface Piped {
  destinations: PluginRun | undefined
}

export interface Batch {
  /** The messages' JSON, comma-separated; the parts are to be joined by commas, too. */
  parts: Uint8Array[]
  count: number
  /** Of the messages, without what separates them: what they take of the queue's limit. */
  bytes: number
  period: Period
  waiters: Waiter[] | undefined
  spooled: SpoolRange[] | undefined
}

/** A message that was taken back out of the queue. */
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
  /** Below the mark again after a call was told that it is above. */
  onDrained: () => void
}

/** Enough for the cost of a request to vanish, and little enough for its deadline. */
const JOINED_BYTES = 64 * 1024

export class Queue {
  readonly #options: QueueOptions
  #bytes = 0
  #toldFull = false
  #isSealing = false
  /** How many messages at the end of the queue were added by the code that is running now (in this microtask run). */
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

  /** Takes room for a message from its call until its outcome; false if there is none. */
  reserve(bytes: number): boolean {
    if (this.#bytes + bytes > this.#options.maxBytes) return false
    this.#bytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#bytes -= bytes
    if (this.#toldFull && this.#bytes <= this.#options.highWaterBytes / 2) {
      this.#toldFull = false
      this.#options.onDrained()
    }
  }

  /** What a call returns: false says "wait for `drained`". */
  belowMark(): boolean {
    if (this.#bytes <= this.#options.highWaterBytes) return true
    this.#toldFull = true
    this.sealSoon()
    return false
  }

  /** Takes room for a message that can wait: below the mark, or whatever its size if there is nothing else to wait for. */
  admit(bytes: number): boolean {
    if (this.#bytes === 0 || (this.belowMark() && this.#bytes + bytes <= this.#options.maxBytes)) {
      this.#bytes += bytes
      return true
    }
    this.sealSoon()
    return false
  }

  /** Adds a message whose room is reserved. `isFresh`: a call was made for it just now, and it can be recalled. */
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
    // Kept on disk or not, a batch is one or the other, because what is given up at close is lost or is not.
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

  /** Takes back what the code that is running now has added. Sending begins only after that code has finished, so none of it was sent. */
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

  /** Makes what has been collected ready to be sent. */
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
   * The next batch to send, when so many requests can be started now. If more batches are ready than that, the service
   * or the network is behind, and a request of fifteen messages costs nearly as much as one of a hundred: then ready
   * batches share a request. (bench/client, tight, five interleaved pairs: 1,142 ms with this, 1,741 ms without.)
   */
  take(places: number): Batch | undefined {
    const batch = this.#shift()
    if (batch === undefined || this.#options.flushAt === 1) return batch
    for (let share = Math.ceil((this.#ready.length - this.#head + 1) / places); share > 1; share--) {
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
    // Shifting an array of a hundred thousand batches one by one would be quadratic; cutting it at half is not.
    if (this.#head > 1_000 && this.#head * 2 > this.#ready.length) {
      this.#ready = this.#ready.slice(this.#head)
      this.#head = 0
    }
    return batch
  }

  /**
   * For whoever waits for what is in the batch being filled. A turn of the loop later, so that what comes together (out of
   * plugins, out of the spool, from a caller who goes on calling) goes together.
   */
  sealSoon(): void {
    if (this.#isSealing) return
    this.#isSealing = true
    setTimeout(() => {
      this.#isSealing = false
      this.seal()
    }, 0)
  }

  /** Stops the timer; what is queued stays. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #start(period: Period): void {
    this.#period = period
    this.#startedAt = performance.now()
    this.#timer ??= this.#wait(this.#options.flushIntervalMs)
  }

  // One timer serves many batches: under load a batch fills in far less than the interval, and arming and clearing a
  // timer for each costs about as much as composing a message.
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
