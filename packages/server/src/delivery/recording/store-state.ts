// Whether outcomes can be recorded now. If the store reports an error, or a settlement has failed, lanes start nothing: whatever they sent would
// be sent again if the process ended before the store is back. Lanes read a flag, and are told when it changes.

export class StoreState {
  readonly #onChange: (isFailing: boolean) => void
  #isWritable = true
  /** Settlements that failed because the store is unavailable, and are retried. */
  #failed = 0
  #isFailing = false

  constructor(onChange: (isFailing: boolean) => void) {
    this.#onChange = onChange
  }

  get isFailing(): boolean {
    return this.#isFailing
  }

  setWritable(isWritable: boolean): void {
    this.#isWritable = isWritable
    this.#report()
  }

  /** A settlement failed for the first time (1), or has ended after that (-1). */
  settlementsFailed(more: 1 | -1): void {
    this.#failed += more
    this.#report()
  }

  #report(): void {
    const isFailing = !this.#isWritable || this.#failed > 0
    if (isFailing === this.#isFailing) return
    this.#isFailing = isFailing
    this.#onChange(isFailing)
  }
}
