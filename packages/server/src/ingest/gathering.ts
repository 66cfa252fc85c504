// Gathers requests of one message into batches, because the store and delivery do most of their work for each batch, not for each message. A lone
// request waits for the end of the current turn of the event loop. Requests that arrive while a batch of the same kind is being stored wait for it,
// or until there are enough of them. Everything that a batch shares, except `receivedAt`, is equal in its requests, or empty.

import type { SegmentContent } from '../model/messages.ts'

/** A request that has exactly one message. */
export interface Single {
  content: SegmentContent
  /** The size of its body. */
  bytes: number
}

interface Batch<S extends Single> {
  waiting: S[]
  waitingBytes: number
  isScheduled: boolean
  /** The number of batches that are being stored. */
  inFlight: number
}

/** Larger messages gain little, because their own bytes cost the most. */
const MAX_BYTES = 8 * 1024
const MOST_REQUESTS = 64
/** Less than the size above which the messages of a stored body are found by scanning it. */
const MOST_BYTES = 48 * 1024
/** The number of requests that need not wait for the batch before them. */
const EARLY = 16
/** How many batches such requests may be in at the same time. */
const MOST_EARLY_IN_FLIGHT = 2
/** All messages of a batch have the time at which the first arrived, so none that arrives later than this is added. */
const LONGEST_MS = 3

export class Gathering<S extends Single> {
  readonly #store: (requests: S[]) => Promise<void>
  readonly #batches = new Map<string, Batch<S>>()

  /** `store` must not reject. */
  constructor(store: (requests: S[]) => Promise<void>) {
    this.#store = store
  }

  /** The number of kinds of requests of which some wait or are being stored. */
  get size(): number {
    return this.#batches.size
  }

  add(request: S): void {
    const { sourceId, browser, ip, receivedAtMs } = request.content
    const key = `${sourceId} ${browser} ${ip}`
    let batch = this.#batches.get(key)
    if (batch === undefined) {
      batch = { waiting: [], waitingBytes: 0, isScheduled: false, inFlight: 0 }
      this.#batches.set(key, batch)
    }
    const [first] = batch.waiting
    if (first !== undefined) {
      const isLate = Math.abs(receivedAtMs - first.content.receivedAtMs) > LONGEST_MS
      if (isLate || batch.waitingBytes + request.bytes > MOST_BYTES) this.#send(key, batch)
    }
    batch.waiting.push(request)
    batch.waitingBytes += request.bytes
    if (batch.waiting.length === MOST_REQUESTS || (batch.waiting.length >= EARLY && batch.inFlight < MOST_EARLY_IN_FLIGHT))
      this.#send(key, batch)
    else if (batch.inFlight === 0) this.#schedule(key, batch)
  }

  /** At the end of this turn of the event loop, so that requests that are read in it go into the same batch. */
  #schedule(key: string, batch: Batch<S>): void {
    if (batch.isScheduled) return
    batch.isScheduled = true
    setImmediate(() => {
      batch.isScheduled = false
      if (batch.waiting.length > 0) this.#send(key, batch)
      else this.#deleteIfUnused(key, batch)
    })
  }

  #send(key: string, batch: Batch<S>): void {
    const requests = batch.waiting
    batch.waiting = []
    batch.waitingBytes = 0
    batch.inFlight++
    void this.#store(requests).then(() => {
      batch.inFlight--
      if (batch.waiting.length > 0) this.#send(key, batch)
      else this.#deleteIfUnused(key, batch)
    })
  }

  #deleteIfUnused(key: string, { inFlight, isScheduled }: Batch<S>): void {
    if (inFlight === 0 && !isScheduled) this.#batches.delete(key)
  }
}

/** Whether nothing of the request is stored once for the whole batch, except what the key of a batch contains. */
export function isGatherable({ content, bytes }: Single): boolean {
  const { items, sentAt, context, integrations, trace, violations } = content
  if (items.length !== 1 || bytes > MAX_BYTES) return false
  if (context !== null || integrations !== null || trace !== null || violations !== undefined) return false
  return sentAt === null || items[0]?.['sentAt'] == null
}

/** The messages of the requests as one batch. The `sentAt` of a request applies to its message, so it can be in the message as well. */
export function gatheredContent(requests: readonly Single[]): SegmentContent {
  const { content } = requests[0] as Single
  const isSame = requests.every((request) => request.content.sentAt === content.sentAt)
  const items = requests.map(({ content: { items: own, sentAt } }) => {
    const [item = null] = own
    return isSame || sentAt === null || item === null ? item : { ...item, sentAt }
  })
  return { ...content, sentAt: isSame ? content.sentAt : null, items }
}
