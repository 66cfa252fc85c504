// How much a sender holds in memory, in bytes: messages as they were prepared, and the bodies of requests in flight. What does not
// fit waits in its stored form, which is small: the main thread limits it (lanes/memory.ts). Each destination may always have one request in
// flight and one piece of its messages in preparation, so one that fills the memory does not stop the others.

const MIB = 1024 * 1024
/** Messages that are prepared before their request is started, without a transformation. This only saves time, so it has no shares. */
const MAX_AHEAD_BYTES = 32 * MIB
/** The same for the messages of one load, which have more only if they share a large context or are shaped: others must not wait for all that. */
const MAX_AHEAD_BYTES_EACH = 2 * MIB
/** Prepared messages, and the most that those being transformed can have: of all destinations, and of one. */
const MAX_HELD_BYTES = 64 * MIB
const MAX_HELD_BYTES_EACH = 32 * MIB
/** Bodies in flight: of all destinations, and of one. If many have requests in flight, the share of each is smaller. */
const MAX_SENT_BYTES = 96 * MIB
const MAX_SENT_BYTES_EACH = 32 * MIB

/** A destination, as a user of memory. */
export interface MemoryUser {
  heldBytes: number
  sentBytes: number
}

export class SenderMemory {
  #heldBytes = 0
  /** The number of users with a body in flight. */
  #sending = 0
  /** Users that had no room because of others, each with the function that tries again. */
  readonly #waiting = new Map<MemoryUser, () => void>()

  /** Adds to the prepared messages of a destination, or takes away from them. */
  hold(user: MemoryUser, bytes: number): void {
    user.heldBytes += bytes
    this.#heldBytes += bytes
    if (this.#waiting.size > 0 && bytes < 0 && this.#heldBytes < MAX_HELD_BYTES) this.#retry()
  }

  /** Whether more messages of a load may be prepared before their request is started. */
  mayPrepareAhead({ heldBytes }: { heldBytes: number }): boolean {
    return heldBytes < MAX_AHEAD_BYTES_EACH && this.#heldBytes < MAX_AHEAD_BYTES
  }

  /** Whether more messages of a destination may be transformed. If not because of others, `retry` is called when there is room. */
  mayTransform(user: MemoryUser, retry: () => void): boolean {
    if (user.heldBytes === 0) return true
    if (user.heldBytes >= MAX_HELD_BYTES_EACH) return false
    if (this.#heldBytes < MAX_HELD_BYTES) return true
    this.#waiting.set(user, retry)
    return false
  }

  /** Whether another request of a destination may be started, if it has any in flight. The last one may exceed the limit. */
  maySend({ sentBytes }: MemoryUser): boolean {
    return sentBytes === 0 || sentBytes < Math.min(MAX_SENT_BYTES_EACH, MAX_SENT_BYTES / this.#sending)
  }

  sent(user: MemoryUser, bytes: number): void {
    if (user.sentBytes === 0) this.#sending++
    user.sentBytes += bytes
  }

  ended(user: MemoryUser, bytes: number): void {
    user.sentBytes -= bytes
    if (user.sentBytes === 0) this.#sending--
  }

  #retry(): void {
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const retry of waiting) retry()
  }
}
