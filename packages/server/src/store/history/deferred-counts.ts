// Counts that no request waits for: rejected calls and messages of suppressed users. They are added up on the main thread while earlier counts
// are being committed. This way, any number of rejected calls needs only one row per source and code, and no queue builds up.

import { singleFlight } from '../../timing/single-flight.ts'
import type { Rejection } from '../store.ts'

export interface CountBatch {
  rejections: readonly Rejection[]
  suppressed: readonly [sourceId: string, count: number][]
}

export class DeferredCounts {
  readonly #write: (counts: CountBatch) => Promise<unknown>
  #rejections = new Map<string, Rejection>()
  #suppressed = new Map<string, number>()

  constructor(write: (counts: CountBatch) => Promise<unknown>) {
    this.#write = write
  }

  reject(rejection: Rejection): void {
    const key = JSON.stringify([rejection.sourceId, rejection.code])
    const before = this.#rejections.get(key)
    this.#rejections.set(key, before ? { ...rejection, count: before.count + rejection.count } : rejection)
    void this.flush()
  }

  suppressed(sourceId: string, count: number): void {
    this.#suppressed.set(sourceId, (this.#suppressed.get(sourceId) ?? 0) + count)
    void this.flush()
  }

  /** Resolves when all earlier counts are written, or could not be written because the store is closing. */
  readonly flush = singleFlight(async (): Promise<void> => {
    while (this.#rejections.size > 0 || this.#suppressed.size > 0) {
      const counts: CountBatch = { rejections: [...this.#rejections.values()], suppressed: [...this.#suppressed] }
      this.#rejections = new Map()
      this.#suppressed = new Map()
      try {
        await this.#write(counts)
      } catch {
        return
      }
    }
  })
}
