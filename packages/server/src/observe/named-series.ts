// Decides which sources or destinations have their own series in the metrics. All series of a destination are 73 lines, and Prometheus
// stores each of them. So beyond a limit, only those with recent traffic or with problems have their own series; all others are added
// up under `other`. An id keeps its series until another id needs the slot, so that series do not come and go.

import type { Sample } from './histogram.ts'

/** The label value for all ids without their own series. */
export const OTHER = 'other'

const RECENT_MS = 15 * 60 * 1_000

export class NamedSeries {
  readonly #most: number
  readonly #names = new Set<string>()
  readonly #activeMs = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  has(id: string): boolean {
    return this.#names.has(id)
  }

  /** Records activity of an id and gives it its own series if a slot is free. Returns the label value under which it is counted. */
  labelFor(id: string, nowMs: number): string {
    this.#activeMs.set(id, nowMs)
    if (this.#names.size < this.#most) this.#names.add(id)
    return this.#names.has(id) ? id : OTHER
  }

  /** Reassigns the slots: first to the ids that need attention, then to those with the most recent traffic. */
  reassign(known: Pick<ReadonlySet<string>, 'has' | 'size' | 'keys'>, attention: ReadonlySet<string>, nowMs: number): void {
    for (const id of this.#names) if (!known.has(id)) this.#names.delete(id)
    for (const id of this.#activeMs.keys()) if (!known.has(id)) this.#activeMs.delete(id)
    if (known.size <= this.#most) {
      for (const id of known.keys()) this.#names.add(id)
      return
    }
    for (const id of attention) this.#activeMs.set(id, nowMs)
    const isActive = (id: string): boolean => (this.#activeMs.get(id) ?? Number.NEGATIVE_INFINITY) > nowMs - RECENT_MS
    const latestFirst = (a: string, b: string): number => (this.#activeMs.get(b) ?? 0) - (this.#activeMs.get(a) ?? 0)
    const urgent = [...attention].filter((id) => known.has(id) && !this.#names.has(id))
    const active = [...this.#activeMs.keys()].filter((id) => isActive(id) && !attention.has(id) && !this.#names.has(id))
    // Sorted by activity: the ids that have been idle the longest are last and lose their series first.
    const replaceable = [...this.#names].filter((id) => !attention.has(id)).sort(latestFirst)
    for (const id of [...urgent, ...active.sort(latestFirst)]) {
      if (this.#names.size >= this.#most) {
        const last = replaceable.at(-1)
        // An active id loses its series only to an id that needs attention.
        if (last === undefined || (isActive(last) && !attention.has(id))) continue
        replaceable.pop()
        this.#names.delete(last)
      }
      this.#names.add(id)
    }
  }
}

/**
 * A counter from the store, with one series for each id that has its own and one for all others. The sum over the others would decrease
 * when one of them gets its own series, and Prometheus would interpret that as a restart. So `other` adds up what each id counted while it
 * had no series of its own.
 */
export class CounterWithOther {
  #seen: Map<string, { value: number; isNamed: boolean }> | null = null
  #other = 0

  samples(label: string, rows: Iterable<readonly [id: string, value: number]>, names: Pick<NamedSeries, 'has'>): Sample[] {
    const samples: Sample[] = []
    const before = this.#seen
    const seen = new Map<string, { value: number; isNamed: boolean }>()
    let others = 0
    for (const [id, value] of rows) {
      const isNamed = names.has(id)
      if (isNamed) samples.push({ labels: { [label]: id }, value })
      else others += 1
      const last = before?.get(id)
      // Increments before the first scrape are unknown and not counted.
      if (before !== null && !(last?.isNamed ?? isNamed)) this.#other += Math.max(0, value - (last?.value ?? 0))
      seen.set(id, { value, isNamed })
    }
    this.#seen = seen
    if (others > 0) samples.push({ labels: { [label]: OTHER }, value: this.#other })
    return samples
  }
}
