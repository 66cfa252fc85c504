// How many integrations there are, and how many of them can work: the numbers that `npm run coverage:integrations` prints first, and the
// documentation repeats.

import type { CatalogEntry } from '@switchyard/integrations/catalog'

export interface Counts {
  all: number
  working: number
  /** Of those that can work: they need ordinary messages only. */
  ordinary: number
  /** The others: messages have to say who is in an audience. */
  ofAudiences: number
}

export function countsOf(entries: readonly Pick<CatalogEntry, 'problem' | 'needs'>[]): Counts {
  const working = entries.filter(({ problem }) => problem === null)
  const ofAudiences = working.filter(({ needs }) => needs !== null).length
  return { all: entries.length, working: working.length, ordinary: working.length - ofAudiences, ofAudiences }
}
