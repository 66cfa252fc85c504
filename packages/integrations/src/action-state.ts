// What an action keeps for later messages, by keys that it chooses: the library's `stateContext`. An entry is visible to other runs as soon as it is set,
// and is kept only if its run succeeded: a run that failed is repeated, and must not find its own entries.

import type { ActionState, KeptEntry, StateEntry } from './integration.ts'
import { runLogger } from './recording/log-capture.ts'

/** If the action gives none: it may keep an id that it has looked up. */
const DEFAULT_TTL_MS = 24 * 3_600_000
const MAX_TTL_MS = 30 * 24 * 3_600_000
const MAX_KEY_CHARS = 500
const MAX_VALUE_CHARS = 2_000
/** Of one message or batch. */
const MAX_ENTRIES = 20

/** Comes from the code of an integration, so it can be anything. */
interface Ttl {
  hour?: unknown
  minute?: unknown
  second?: unknown
}

/** The entries of one run of an action, for one message or a batch. */
export class StateDraft {
  readonly #state: ActionState
  readonly #entries: { entry: StateEntry; undo: () => void }[] = []
  #isOver = false

  constructor(state: ActionState) {
    this.#state = state
  }

  /** What the library hands to the action. */
  get context(): object {
    return {
      getRequestContext: (key: unknown, callback?: (value?: string) => unknown): unknown => {
        const value = this.#state.get(String(key))
        return callback === undefined ? value : callback(value)
      },
      setResponseContext: (key: unknown, value: unknown, ttl?: Ttl): void => this.#set(String(key), String(value), ttlOf(ttl)),
    }
  }

  #set(key: string, value: string, ttlMs: number): void {
    // The deadline is over, and its result was returned.
    if (this.#isOver) return
    if (key.length > MAX_KEY_CHARS || value.length > MAX_VALUE_CHARS || this.#entries.length >= MAX_ENTRIES) {
      runLogger.warn(
        `A value that the action keeps for later messages was not stored. The limits are ${MAX_ENTRIES} values per run, ${MAX_KEY_CHARS} characters per key and ${MAX_VALUE_CHARS} per value.`,
      )
      return
    }
    this.#entries.push(this.#state.set(key, value, ttlMs))
  }

  /** `position`: the message that it was for; null for a batch. */
  keep(position: number | null): KeptEntry[] {
    if (this.#isOver) return []
    this.#isOver = true
    return this.#entries.map(({ entry }) => ({ ...entry, position }))
  }

  discard(): void {
    if (this.#isOver) return
    this.#isOver = true
    for (let last = this.#entries.pop(); last !== undefined; last = this.#entries.pop()) last.undo()
  }
}

/** From one second to 30 days. Zero and negative times count as one second. */
function ttlOf({ hour, minute, second }: Ttl = {}): number {
  if (hour === undefined && minute === undefined && second === undefined) return DEFAULT_TTL_MS
  const ms = (Number(hour ?? 0) * 3_600 + Number(minute ?? 0) * 60 + Number(second ?? 0)) * 1_000
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 1_000), MAX_TTL_MS) : DEFAULT_TTL_MS
}
