// Which sources a destination serves. Pure functions of the configuration.

import type { Configuration } from './configuration.ts'

const served = new WeakMap<Configuration['destinations'], ReadonlyMap<string, ReadonlySet<string>>>()

/**
 * The sources whose messages a destination gets: those that it is attached to, and those of the destinations whose dead letters it gets, directly
 * or through others. Whoever changes its URL reads messages of all of them.
 */
export function servedSources({ destinations }: Pick<Configuration, 'destinations'>): ReadonlyMap<string, ReadonlySet<string>> {
  const known = served.get(destinations)
  if (known !== undefined) return known
  const sources = new Map([...destinations].map(([id, { sourceIds }]) => [id, new Set(sourceIds)]))
  for (const { id, sourceIds, deadLetter } of destinations.values()) {
    const seen = new Set([id])
    for (let next = deadLetter; next !== null && !seen.has(next); next = destinations.get(next)?.deadLetter ?? null) {
      seen.add(next)
      for (const sourceId of sourceIds) sources.get(next)?.add(sourceId)
    }
  }
  served.set(destinations, sources)
  return sources
}
