// Ranks the features that separate failed messages from delivered ones. Pure. A feature counts if it is much more frequent in one of the two
// groups, and if that is unlikely to be chance. Each field is listed once, with the feature of it that separates best.

import { type Feature, type Features } from './message-features.ts'

export interface Difference {
  feature: Feature
  /** In how many messages of each group the feature occurs. */
  failed: number
  delivered: number
  /** From -1 (only in delivered messages) to 1 (only in failed messages). */
  share: number
}

/** Fewer messages in a group show nothing. */
export const LEAST_MESSAGES = 3
/** The difference of the two shares, and by how many standard deviations it must exceed chance. */
const LEAST_SHARE = 0.25
const LEAST_DEVIATIONS = 2.4
/** Features in memory. What comes after them is not counted. */
const MAX_FEATURES = 50_000
/** A value that fewer messages share is not shown: it may identify one of them. */
const LEAST_SHARED = 3
/** If features separate equally well, the first of these is listed. */
const KINDS: readonly Feature['kind'][] = ['version', 'source', 'presence', 'type', 'value', 'size']

export class DifferenceCounts {
  readonly #counts = new Map<string, { feature: Feature; failed: number; delivered: number }>()
  readonly totals = { failed: 0, delivered: 0 }

  add(group: 'failed' | 'delivered', features: Features): void {
    this.totals[group]++
    for (const [key, feature] of features) {
      let entry = this.#counts.get(key)
      if (entry === undefined) {
        if (this.#counts.size >= MAX_FEATURES) continue
        this.#counts.set(key, (entry = { feature, failed: 0, delivered: 0 }))
      }
      entry[group]++
    }
  }

  /** The best first. */
  ranked(limit: number): Difference[] {
    const { failed: allFailed, delivered: allDelivered } = this.totals
    if (allFailed < LEAST_MESSAGES || allDelivered < LEAST_MESSAGES) return []
    const found: Difference[] = []
    for (const { feature, failed, delivered } of this.#counts.values()) {
      const share = failed / allFailed - delivered / allDelivered
      if (Math.abs(share) < LEAST_SHARE || failed + delivered < LEAST_SHARED) continue
      const pooled = (failed + delivered) / (allFailed + allDelivered)
      const deviation = Math.sqrt(pooled * (1 - pooled) * (1 / allFailed + 1 / allDelivered))
      if (Math.abs(share) >= LEAST_DEVIATIONS * deviation) found.push({ feature, failed, delivered, share })
    }
    return withoutRepeats(found.sort(better)).slice(0, limit)
  }
}

function better(a: Difference, b: Difference): number {
  return (
    Math.abs(b.share) - Math.abs(a.share) ||
    KINDS.indexOf(a.feature.kind) - KINDS.indexOf(b.feature.kind) ||
    // What failed messages have says more than what they lack, and an object more than each of its fields.
    b.share - a.share ||
    a.feature.path.length - b.feature.path.length
  )
}

/** Each field once, and without the fields of a field that separates as well as they do. */
function withoutRepeats(sorted: readonly Difference[]): Difference[] {
  const listed = new Map<string, Difference>()
  for (const difference of sorted) {
    const { path, kind } = difference.feature
    const key = path.length === 0 ? kind : JSON.stringify(path)
    const above = path.slice(0, -1).map((_, at) => listed.get(JSON.stringify(path.slice(0, at + 1))))
    const isRepeated = above.some((other) => other !== undefined && Math.abs(other.share) >= Math.abs(difference.share))
    if (!listed.has(key) && !isRepeated) listed.set(key, difference)
  }
  return [...listed.values()]
}
