// Which sources or destinations have series of their own in the metrics. A destination with all of them is 73 lines, and Prometheus
// stores every one, so beyond a limit only those that had traffic lately or need attention are named; the others are added up as
// one, `other`. A name is kept until its place is needed, so that series do not come and go.

import type { Sample } from './histogram.ts'

/** The label of all those without series of their own. */
export const OTHER = 'other'

const LATELY_MS = 15 * 60 * 1_000

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

  /** Records activity: gives it its own series if there is room. Returns the label under which it is counted. */
  keyOf(id: string, nowMs: number): string {
    this.#activeMs.set(id, nowMs)
    if (this.#names.size < this.#most) this.#names.add(id)
    return this.#names.has(id) ? id : OTHER
  }

  /** Chooses again among all. Those that need attention come first, then those with the latest traffic. */
  choose(known: Pick<ReadonlySet<string>, 'has' | 'size' | 'keys'>, attention: ReadonlySet<string>, nowMs: number): void {
    for (const id of this.#names) if (!known.has(id)) this.#names.delete(id)
    for (const id of this.#activeMs.keys()) if (!known.has(id)) this.#activeMs.delete(id)
    if (known.size <= this.#most) {
      for (const id of known.keys()) this.#names.add(id)
      return
    }
    for (const id of attention) this.#activeMs.set(id, nowMs)
    const isActive = (id: string): boolean => (this.#activeMs.get(id) ?? Number.NEGATIVE_INFINITY) > nowMs - LATELY_MS
    const latestFirst = (a: string, b: string): number => (this.#activeMs.get(b) ?? 0) - (this.#activeMs.get(a) ?? 0)
    const wanting = [...attention].filter((id) => known.has(id) && !this.#names.has(id))
    const active = [...this.#activeMs.keys()].filter((id) => isActive(id) && !attention.has(id) && !this.#names.has(id))
    // The idle ones that were named longest ago are the last in this list, and give up their places first.
    const leaving = [...this.#names].filter((id) => !attention.has(id)).sort(latestFirst)
    for (const id of [...wanting, ...active.sort(latestFirst)]) {
      if (this.#names.size >= this.#most) {
        const last = leaving.at(-1)
        // An active one does not lose its series to another that is merely active.
        if (last === undefined || (isActive(last) && !attention.has(id))) continue
        leaving.pop()
        this.#names.delete(last)
      }
      this.#names.add(id)
    }
  }
}

/**
 * A counter of the store, with one series for each name and one for all others. A sum over others would fall when one of them gets
 * its own series, which Prometheus takes for a restart: so `other` adds up what each counted while it had none.
 */
export class CounterOfAll {
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
      // Counts from before the first scrape are not known.
      if (before !== null && !(last?.isNamed ?? isNamed)) this.#other += Math.max(0, value - (last?.value ?? 0))
      seen.set(id, { value, isNamed })
    }
    this.#seen = seen
    if (others > 0) samples.push({ labels: { [label]: OTHER }, value: this.#other })
    return samples
  }
}
