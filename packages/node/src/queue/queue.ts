// The queue of messages to send, limited in bytes. A message is written to memory outside the JavaScript heap during its call. A
// million calls in one tight loop therefore need little more memory than their own size (the public client, with objects and a
// promise for each, runs out of 4 GB: bench/client, --all). Nothing here knows how a batch is sent.

import { MAX_BATCH_MESSAGES } from '@switchyard/protocol'
import { platform } from '#platform'
import {
  type Batch,
  type Chunk,
  endUse,
  eventsOf,
  free,
  join,
  type Run,
  STORAGE_OVERHEAD_BYTES,
  type Waiter,
  writeMessage,
} from './batch.ts'
import type { Period } from './flush-periods.ts'

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

/** Small for a client that sends little, so that it uses little memory, and large for a long queue, so that there are few chunks. */
const MIN_CHUNK_BYTES = 64 * 1024
const MAX_CHUNK_BYTES = 1024 * 1024

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
  /** The chunk being filled, and where the next message goes. */
  #chunk: Chunk = { memory: new Uint8Array(0), uses: 1 }
  #at = 0
  /** The batch being filled, and its last run. */
  #filling: Batch | undefined
  #run: Run | undefined
  #startedAt = 0

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
    const open = this.#filling
    if (open !== undefined) {
      // A batch contains either only spooled messages or none, because at close spooled messages are kept and others are lost.
      const isOther = open.period !== period || (open.spooled === undefined) !== (spooledAs === undefined)
      if (isOther || open.bytes + open.count + bytes + 1 > this.#options.maxBatchBytes) this.seal()
    }
    const batch = this.#write(json, bytes, period)
    if (waiter) {
      batch.waiters ??= []
      batch.waiters.push({ ...waiter, index: batch.count })
    }
    if (spooledAs !== undefined) noteSpooled(batch, spooledAs)
    batch.bytes += bytes
    if (++batch.count >= this.#options.flushAt) this.seal()
  }

  /** Writes a message at the end of the batch that is being filled, and returns that batch. */
  #write(json: string, bytes: number, period: Period): Batch {
    let to = writeMessage(json, bytes, this.#chunk.memory, this.#at)
    if (to === undefined) {
      const size = Math.min(Math.max(Math.trunc(this.#bytes / 4), MIN_CHUNK_BYTES), MAX_CHUNK_BYTES)
      const memory = platform.allocate(Math.max(size, bytes + STORAGE_OVERHEAD_BYTES))
      endUse(this.#chunk)
      this.#chunk = { memory, uses: 1 }
      this.#at = 0
      to = writeMessage(json, bytes, this.#chunk.memory, 0) as number
    }
    const chunk = this.#chunk
    const from = this.#at
    this.#at = to
    if (this.#run?.chunk === chunk) this.#run.to = to
    else {
      chunk.uses++
      if (this.#filling === undefined) {
        this.#start()
        this.#filling = { chunk, from, to, next: undefined, count: 0, bytes: 0, period, waiters: undefined, spooled: undefined }
        this.#run = this.#filling
      } else this.#run = (this.#run as Run).next = { chunk, from, to, next: undefined }
    }
    return this.#filling as Batch
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
    const batches = this.#ready.splice(from)
    const messages = batches.flatMap(messagesOf)
    for (const batch of batches) free(batch)
    const older = messages.splice(0, Math.max(count - fresh, 0))
    for (const { json, bytes, period, waiter, spooledAs } of older) this.add(json, bytes, period, waiter, spooledAs, false)
    this.#fresh = 0
    return messages
  }

  /** Completes the batch that is being filled, so that it can be sent. */
  seal(): void {
    if (this.#filling === undefined) return
    this.#ready.push(this.#filling)
    this.#filling = undefined
    this.#run = undefined
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

  #start(): void {
    this.#startedAt = performance.now()
    this.#timer ??= this.#wait(this.#options.flushIntervalMs)
  }

  // One timer serves many batches: under load a batch fills up long before the interval ends, and setting and clearing a
  // timer for each batch costs about as much as composing a message.
  #wait(ms: number): ReturnType<typeof setTimeout> {
    return platform.idleTimer(() => {
      this.#timer = undefined
      if (this.#filling === undefined) return
      const left = this.#startedAt + this.#options.flushIntervalMs - performance.now()
      if (left > 1) this.#timer = this.#wait(left)
      else this.seal()
    }, ms)
  }
}

function noteSpooled(batch: Batch, number: number): void {
  const last = batch.spooled?.at(-1)
  if (last?.to === number - 1) last.to = number
  else {
    batch.spooled ??= []
    batch.spooled.push({ from: number, to: number })
  }
}

function messagesOf(batch: Batch): Recalled[] {
  const { period, waiters, spooled } = batch
  const waiterOf = new Map(waiters?.map((waiter) => [waiter.index, waiter]))
  const numbers = spooled?.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, at) => from + at))
  return eventsOf(batch).map((event, index) => {
    const json = JSON.stringify(event)
    return { json, bytes: platform.byteLength(json), period, waiter: waiterOf.get(index), spooledAs: numbers?.[index] }
  })
}
