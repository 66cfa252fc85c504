// Counts that nobody waits for: rejected calls and messages of suppressed users. They are added up on the main thread while
// the ones before are being committed, so that a flood of bad calls is one row per source and code and not a queue.

import type { Rejection } from '../store.ts'

export interface CountBatch {
  rejections: readonly Rejection[]
  suppressed: readonly [sourceId: string, count: number][]
}

export class DeferredCounts {
  readonly #write: (tally: CountBatch) => Promise<unknown>
  #rejections = new Map<string, Rejection>()
  #suppressed = new Map<string, number>()
  #writing: Promise<void> | null = null

  constructor(write: (tally: CountBatch) => Promise<unknown>) {
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

  /** Until everything that was counted before is written, or cannot be because the store is closing. */
  flush(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null
    })
    return this.#writing
  }

  async #writeAll(): Promise<void> {
    while (this.#rejections.size > 0 || this.#suppressed.size > 0) {
      const tally: CountBatch = { rejections: [...this.#rejections.values()], suppressed: [...this.#suppressed] }
      this.#rejections = new Map()
      this.#suppressed = new Map()
      try {
        await this.#write(tally)
      } catch {
        return
      }
    }
  }
}
