// What integrations keep between messages, in a host. Actions read it without waiting, so all entries of a destination are here, as they were stored a
// second ago at most, with what the runs of this host have set since. The service stores them with the outcomes.

import { once } from 'node:events'
import type { ActionState, Integration } from '@switchyard/integrations/runner'
import { MAX_ENTRIES, type StateEntry } from '../../store/port/integration-state.ts'
import type { IntegrationDestination } from '../../store/store.ts'
import type { RunWork } from '../sender/integration-runs.ts'

/** How old the stored entries may be that a run reads: other nodes may have added some. With many entries reading them costs more. */
const MAX_AGE_MS = 1_000
const MAX_AGE_OF_MANY_MS = 5_000
const MANY = 1_000
/** How long an entry of this host counts although it is not stored: until its outcome is recorded. Afterwards it was deleted, or was never recorded. */
const UNRECORDED_MS = 60_000

interface Waiting {
  resolve: () => void
  reject: (error: Error) => void
}

class DestinationState {
  /** By subscription and key. */
  readonly entries = new Map<string, StateEntry & { isOwn: boolean }>()
  readAtMs = Number.NEGATIVE_INFINITY
  waiting: Waiting[] = []
}

export class HostedStates {
  readonly #ask: (destinationId: string) => void
  readonly #nowMs: () => number
  /** Kept until the host ends, which is ten minutes after its last work. */
  readonly #byDestination = new Map<string, DestinationState>()

  /** `ask`: asks the service for the entries of a destination. It answers with `receive`. */
  constructor(ask: (destinationId: string) => void, nowMs: () => number = Date.now) {
    this.#ask = ask
    this.#nowMs = nowMs
  }

  /** Returns what the action of a subscription keeps between messages; null if it keeps nothing. Previews and tests read it, and change nothing. */
  async forRun(
    { id, subscriptions }: IntegrationDestination,
    { messages, isPreview, keepsRequests }: RunWork,
    { stateful = new Set() }: Integration,
    signal: AbortSignal,
  ): Promise<(subscriptionId: string) => ActionState | null> {
    const ids = new Set(subscriptions.filter(({ action }) => stateful.has(action)).map((subscription) => subscription.id))
    if (!messages.some(({ steps }) => steps.some((step) => ids.has(step)))) return () => null
    const reading = this.read(id)
    reading.catch(() => undefined)
    // After the deadline, nothing is run.
    await Promise.race([reading, signal.aborted ? null : once(signal, 'abort')])
    return (subscriptionId) => (ids.has(subscriptionId) ? this.of(id, subscriptionId, isPreview || keepsRequests) : null)
  }

  /** Resolves when the stored entries are known. Rejects if they cannot be read. */
  async read(destinationId: string): Promise<void> {
    const state = this.#of(destinationId)
    const maxAgeMs = state.entries.size > MANY ? MAX_AGE_OF_MANY_MS : MAX_AGE_MS
    if (performance.now() - state.readAtMs < maxAgeMs) return
    await new Promise<void>((resolve, reject) => {
      state.waiting.push({ resolve, reject })
      if (state.waiting.length === 1) this.#ask(destinationId)
    })
  }

  /** Null if they could not be read. */
  receive(destinationId: string, stored: readonly StateEntry[] | null): void {
    const state = this.#of(destinationId)
    const waiting = state.waiting.splice(0)
    if (stored === null) {
      for (const { reject } of waiting) reject(new Error('the values that the integration keeps between messages could not be read'))
      return
    }
    state.readAtMs = performance.now()
    const recentMs = this.#nowMs() - UNRECORDED_MS
    for (const [place, { isOwn, setAtMs }] of state.entries) if (!isOwn || setAtMs < recentMs) state.entries.delete(place)
    for (const entry of stored) {
      const place = placeOf(entry)
      // The same key may be stored for several users.
      if ((state.entries.get(place)?.setAtMs ?? 0) <= entry.setAtMs) state.entries.set(place, { ...entry, isOwn: false })
    }
    for (const { resolve } of waiting) resolve()
  }

  /** The entries of a subscription, for its action. `isTrial`: what it sets is forgotten with the object, for previews and tests. */
  of(destinationId: string, subscriptionId: string, isTrial: boolean): ActionState {
    const { entries } = this.#of(destinationId)
    const own = isTrial ? new Map<string, StateEntry & { isOwn: boolean }>() : entries
    const current = (place: string): (StateEntry & { isOwn: boolean }) | undefined => {
      const entry = own.get(place) ?? entries.get(place)
      return entry === undefined || entry.expiresAtMs <= this.#nowMs() ? undefined : entry
    }
    return {
      get: (key) => current(placeOf({ subscriptionId, key }))?.value,
      set: (key, value, ttlMs) => {
        const setAtMs = this.#nowMs()
        const entry = { subscriptionId, key, value, setAtMs, expiresAtMs: setAtMs + ttlMs, isOwn: true }
        const place = placeOf(entry)
        const before = current(place)
        own.set(place, entry)
        if (own.size > MAX_ENTRIES) this.#dropSome(own, place)
        const undo = (): void => {
          if (own.get(place) !== entry) return
          if (before === undefined) own.delete(place)
          else own.set(place, before)
        }
        return { entry, undo }
      },
    }
  }

  /** As in the store: those that have expired, or else those that expire first; a tenth, so that this is rare. */
  #dropSome(entries: Map<string, StateEntry>, keep: string): void {
    const byExpiry = [...entries].sort(([, one], [, other]) => one.expiresAtMs - other.expiresAtMs)
    for (const [place] of byExpiry.slice(0, MAX_ENTRIES / 10)) if (place !== keep) entries.delete(place)
  }

  #of(destinationId: string): DestinationState {
    let state = this.#byDestination.get(destinationId)
    if (state === undefined) {
      state = new DestinationState()
      this.#byDestination.set(destinationId, state)
    }
    return state
  }
}

function placeOf({ subscriptionId, key }: Pick<StateEntry, 'subscriptionId' | 'key'>): string {
  return `${subscriptionId} ${key}`
}
