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

/** Requests that may be in one batch. */
interface Group<S extends Single> {
  waiting: S[]
  waitingBytes: number
  isScheduled: boolean
  /** The number of batches that are being stored. */
  inFlight: number
}

/** Larger messages gain little, because their own bytes cost the most. */
const MAX_REQUEST_BYTES = 8 * 1024
const MAX_BATCH_REQUESTS = 64
/** Less than the size above which the messages of a stored body are found by scanning it. */
const MAX_BATCH_BYTES = 48 * 1024
/** The number of requests that need not wait for the batch before them. */
const EARLY_REQUESTS = 16
/** How many batches such requests may be in at the same time. */
const MAX_EARLY_IN_FLIGHT = 2
/** All messages of a batch have the time at which the first arrived, so none that arrives later than this is added. */
const MAX_AGE_MS = 3

export class Gathering<S extends Single> {
  readonly #store: (requests: S[]) => Promise<void>
  readonly #groups = new Map<string, Group<S>>()

  /** `store` must not reject. */
  constructor(store: (requests: S[]) => Promise<void>) {
    this.#store = store
  }

  /** The number of groups that have requests which wait or are being stored. */
  get size(): number {
    return this.#groups.size
  }

  add(request: S): void {
    const { sourceId, browser, ip, receivedAtMs } = request.content
    const key = `${sourceId} ${browser} ${ip}`
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = { waiting: [], waitingBytes: 0, isScheduled: false, inFlight: 0 }
      this.#groups.set(key, group)
    }
    const [first] = group.waiting
    if (first !== undefined) {
      const isLate = Math.abs(receivedAtMs - first.content.receivedAtMs) > MAX_AGE_MS
      if (isLate || group.waitingBytes + request.bytes > MAX_BATCH_BYTES) this.#send(key, group)
    }
    group.waiting.push(request)
    group.waitingBytes += request.bytes
    if (group.waiting.length === MAX_BATCH_REQUESTS || (group.waiting.length >= EARLY_REQUESTS && group.inFlight < MAX_EARLY_IN_FLIGHT))
      this.#send(key, group)
    else if (group.inFlight === 0) this.#schedule(key, group)
  }

  /** At the end of this turn of the event loop, so that requests that are read in it go into the same batch. */
  #schedule(key: string, group: Group<S>): void {
    if (group.isScheduled) return
    group.isScheduled = true
    setImmediate(() => {
      group.isScheduled = false
      if (group.waiting.length > 0) this.#send(key, group)
      else this.#deleteIfUnused(key, group)
    })
  }

  #send(key: string, group: Group<S>): void {
    const requests = group.waiting
    group.waiting = []
    group.waitingBytes = 0
    group.inFlight++
    void this.#store(requests).then(() => {
      group.inFlight--
      if (group.waiting.length > 0) this.#send(key, group)
      else this.#deleteIfUnused(key, group)
    })
  }

  #deleteIfUnused(key: string, { inFlight, isScheduled }: Group<S>): void {
    if (inFlight === 0 && !isScheduled) this.#groups.delete(key)
  }
}

/** Whether nothing of the request is stored once for the whole batch, except what the key of a group contains. */
export function isGatherable({ content, bytes }: Single): boolean {
  const { items, sentAt, context, integrations, trace, violations } = content
  if (items.length !== 1 || bytes > MAX_REQUEST_BYTES) return false
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
