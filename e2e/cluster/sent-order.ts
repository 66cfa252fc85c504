// In which order messages were sent to the service, as far as it is certain: a message comes before those that were sent after it was acknowledged,
// and before those behind it in its request. Of requests that overlapped, nothing is certain.

interface SentMessage {
  /** performance.now() before the first request with it. */
  sentMs: number
  /** performance.now() after the first response 200; infinite if there was none. */
  acknowledgedMs: number
  /** The messages of its request; null if it was sent again in a request with other messages. */
  request: readonly string[] | null
  place: number
}

export class SentOrder {
  readonly #messages = new Map<string, SentMessage>()

  /** Called before each request. */
  sent(messageIds: readonly string[]): void {
    const sentMs = performance.now()
    for (const [place, id] of messageIds.entries()) {
      const before = this.#messages.get(id)
      if (before === undefined) this.#messages.set(id, { sentMs, acknowledgedMs: Number.POSITIVE_INFINITY, request: messageIds, place })
      else if (before.request?.join() !== messageIds.join()) before.request = null
    }
  }

  acknowledged(messageIds: readonly string[]): void {
    const nowMs = performance.now()
    for (const id of messageIds) {
      const message = this.#messages.get(id)
      if (message !== undefined) message.acknowledgedMs = Math.min(message.acknowledgedMs, nowMs)
    }
  }

  isBefore(first: string, second: string): boolean {
    const [a, b] = [this.#messages.get(first), this.#messages.get(second)]
    if (a === undefined || b === undefined) return false
    if (a.acknowledgedMs < b.sentMs) return true
    // The second of two equal requests is another array with the same messages.
    return a.request !== null && b.request !== null && a.place < b.place && a.request[b.place] === second && b.request[a.place] === first
  }
}
