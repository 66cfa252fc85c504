// Waiting without sleeping: code that changes something calls notify(), and waiting code then checks its condition again. Every wait has a deadline,
// generous enough for a loaded machine, and says what it waited for when that passes.

export const DEADLINE_MS = 60_000

export interface Waiting {
  deadlineMs?: number
  /** What the wait is for, for the error message. */
  what?: string
  /** The present state, for the error message. */
  state?: () => string
}

export class Signals {
  readonly #watchers = new Set<() => void>()

  /** Called when something has changed. */
  notify(): void {
    for (const watcher of this.#watchers) watcher()
  }

  /** Resolves as soon as the condition holds. Rejects if it throws, or at the deadline. */
  until(condition: () => boolean, { deadlineMs = DEADLINE_MS, what = String(condition), state }: Waiting = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (act: () => void): void => {
        clearTimeout(deadline)
        this.#watchers.delete(look)
        act()
      }
      const deadline = setTimeout(() => end(() => reject(new Error(lateMessage(what, deadlineMs, state)))), deadlineMs)
      const look = (): void => {
        try {
          if (condition()) end(resolve)
        } catch (error) {
          end(() => reject(error instanceof Error ? error : new Error(String(error))))
        }
      }
      this.#watchers.add(look)
      look()
    })
  }
}

/** A promise that a test resolves, for example to let a receiver answer. */
export function gate(): { open: () => void; opened: Promise<void> } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

const POLL_MS = 25
const MOST_POLL_MS = 250

/** Polls, for example the control API, until the answer meets the condition, and returns the answer. */
export async function eventually<T>(
  ask: () => Promise<T>,
  passes: (answer: T) => boolean,
  { deadlineMs = DEADLINE_MS, what = String(passes), state }: Waiting = {},
): Promise<T> {
  const started = performance.now()
  for (;;) {
    const answer = await ask()
    if (passes(answer)) return answer
    const waitedMs = performance.now() - started
    if (waitedMs > deadlineMs)
      throw new Error(lateMessage(what, deadlineMs, () => `${JSON.stringify(answer, null, 1).slice(0, 4_000)}\n${state?.() ?? ''}`))
    // Polls less and less often, because each poll costs CPU time that other tests need.
    await new Promise((resolve) => setTimeout(resolve, Math.min(POLL_MS + waitedMs / 10, MOST_POLL_MS)))
  }
}

function lateMessage(what: string, deadlineMs: number, state: (() => string) | undefined): string {
  return `not within ${deadlineMs / 1_000} s: ${what}${state === undefined ? '' : `\n${state()}`}`
}
