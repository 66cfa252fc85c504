// Whether the database can be written to, as the latest writes show: those that accept and settle, and heartbeats. A settlement is retried
// until it is written, so while one is failing, only its end shows that outcomes can be recorded again. After any other
// failure, the next write of any kind does; a heartbeat is sent every second.

/** A group of settlements that is being written. */
export interface FailingSettlements {
  /** Called when it failed because the database is unavailable, and will be retried. */
  failed(): void
  ended(): void
}

export class WriteState {
  readonly #onChange: (isWritable: boolean) => void
  #hasFailed = false
  readonly #failing = new Set<FailingSettlements>()

  /** `onChange` may be called without a change. */
  constructor(onChange: (isWritable: boolean) => void) {
    this.#onChange = onChange
  }

  /** Called after each write, except for settlements that failed. */
  wrote(hasSucceeded: boolean): void {
    this.#hasFailed = !hasSucceeded
    this.#report()
  }

  settling(): FailingSettlements {
    const settlements: FailingSettlements = {
      failed: () => {
        this.#failing.add(settlements)
        this.#report()
      },
      ended: () => {
        if (this.#failing.delete(settlements)) this.#report()
      },
    }
    return settlements
  }

  #report(): void {
    this.#onChange(!this.#hasFailed && this.#failing.size === 0)
  }
}
