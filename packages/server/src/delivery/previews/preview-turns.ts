// Runs the messages of a preview one after the other, within one limit of time, and for a few callers at the same time.

/** The most callers at the same time. */
const MAX_AT_ONCE = 4
/** How long the messages of one caller may take. */
export const PREVIEW_LIMIT_MS = 10_000

/** Too many previews run at the moment. */
export class TooManyPreviews extends Error {
  override name = 'TooManyPreviews'
}

export class PreviewTurns {
  #callers = 0

  get isIdle(): boolean {
    return this.#callers === 0
  }

  /**
   * The result is null for messages that were not ready before the limit, for which `show` resolves to null. Calls `onEnd` when nothing more is shown.
   * Rejects with TooManyPreviews.
   */
  async run<Message, Shown>(
    messages: readonly Message[],
    limitMs: number,
    show: (message: Message, leftMs: number) => Promise<Shown | null>,
    onEnd: () => void,
  ): Promise<(Shown | null)[]> {
    if (this.#callers >= MAX_AT_ONCE) throw new TooManyPreviews()
    this.#callers++
    const untilMs = performance.now() + limitMs
    try {
      const shown: (Shown | null)[] = []
      for (const message of messages) {
        const leftMs = untilMs - performance.now()
        // A timer may fire up to a millisecond early.
        const isOver = leftMs <= 0 || shown.at(-1) === null
        shown.push(isOver ? null : await show(message, leftMs))
      }
      return shown
    } finally {
      this.#callers--
      onEnd()
    }
  }
}
