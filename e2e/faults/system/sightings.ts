// What the receiver of an ordered destination saw of each message: every request with it, also those that failed, and when an attempt was answered
// so that the delivery could end.

/** A request that carried the message. */
export interface Sighting {
  /** The number of the request, in the order of arrival. */
  request: number
  /** The place of the message in it. */
  place: number
  /** performance.now() */
  atMs: number
}

export interface SeenMessage {
  sightings: Sighting[]
  /** When it was accepted or refused permanently, or may have been. */
  endsMs: number[]
}

export class Sightings {
  readonly #seen = new Map<string, SeenMessage>()
  #requests = 0

  arrived(messageIds: readonly string[], atMs: number): void {
    const request = ++this.#requests
    for (const [place, id] of messageIds.entries()) {
      const seen = this.#seen.get(id)
      const sighting = { request, place, atMs }
      if (seen === undefined) this.#seen.set(id, { sightings: [sighting], endsMs: [] })
      else seen.sightings.push(sighting)
    }
  }

  ended(messageIds: readonly string[], atMs: number): void {
    for (const id of messageIds) this.#seen.get(id)?.endsMs.push(atMs)
  }

  get(messageId: string): SeenMessage | undefined {
    return this.#seen.get(messageId)
  }

  ids(): IterableIterator<string> {
    return this.#seen.keys()
  }
}
