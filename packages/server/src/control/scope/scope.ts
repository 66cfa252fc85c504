// The sources that a caller is limited to, and what of the configuration exists for it. Everything else in this folder asks here, so that what
// belongs to which sources is decided once. Pure functions of the configuration.

import { servedSources } from '../../model/served-sources.ts'
import { type Configuration, type Destination, type StoredPlan, SYSTEM_SOURCE } from '../../store/store.ts'

export interface Scope {
  readonly sourceIds: readonly string[]
  has: (sourceId: string) => boolean
  /** Whether there are sources, and all are in scope. */
  hasAll(sourceIds: Iterable<string>): boolean
  /** The configuration as if nothing out of scope existed. */
  limit(configuration: Configuration): Configuration
  /** Whether the destination serves sources in scope and no others. Only then may the caller change it, and see what counts all its deliveries. */
  isWhole(configuration: Configuration, destination: Pick<Destination, 'id' | 'sourceIds'>): boolean
  /** The same for a destination of the configuration. False if it has none with this id. */
  hasWhole(configuration: Configuration, destinationId: string): boolean
}

/** The source of messages about the service itself is for callers with all sources. */
export function createScope(given: readonly string[]): Scope {
  const ids = new Set(given.filter((id) => id !== SYSTEM_SOURCE))
  const limited = new WeakMap<Configuration, Configuration>()
  const hasAll = (sourceIds: Iterable<string>): boolean => {
    const all = [...sourceIds]
    return all.length > 0 && all.every((id) => ids.has(id))
  }
  return {
    sourceIds: [...ids],
    has: (sourceId) => ids.has(sourceId),
    hasAll,
    limit(configuration) {
      const known = limited.get(configuration)
      if (known !== undefined) return known
      const made = limitedConfiguration(configuration, ids, hasAll)
      limited.set(configuration, made)
      return made
    },
    hasWhole: (configuration, destinationId) => hasAll(servedSources(configuration).get(destinationId) ?? []),
    isWhole: (configuration, { id, sourceIds }) => hasAll(new Set([...sourceIds, ...(servedSources(configuration).get(id) ?? [])])),
  }
}

function limitedConfiguration(
  configuration: Configuration,
  ids: ReadonlySet<string>,
  hasAll: (sourceIds: Iterable<string>) => boolean,
): Configuration {
  const served = servedSources(configuration)
  const exists = (destinationId: string): boolean => [...(served.get(destinationId) ?? [])].some((id) => ids.has(id))
  const shown = (destination: Destination): Destination => ({
    ...destination,
    sourceIds: destination.sourceIds.filter((id) => ids.has(id)),
    deadLetter: destination.deadLetter !== null && exists(destination.deadLetter) ? destination.deadLetter : null,
  })
  const ofSources = ({ sourceIds }: { sourceIds: readonly string[] }): boolean => hasAll(sourceIds)
  return {
    sources: only(configuration.sources, ({ id }) => ids.has(id)),
    destinations: new Map([...configuration.destinations].flatMap(([id, one]) => (exists(id) ? [[id, shown(one)]] : []))),
    suppressions: new Map([...configuration.suppressions].filter(([sourceId]) => ids.has(sourceId))),
    oauthApps: only(configuration.oauthApps, ofSources),
    // A token belongs to no source.
    tokens: new Map(),
    plans: only(configuration.plans, (plan: StoredPlan) => ofSources(plan)),
  }
}

function only<T>(things: ReadonlyMap<string, T>, isIn: (thing: T) => boolean): ReadonlyMap<string, T> {
  return new Map([...things].filter(([, thing]) => isIn(thing)))
}
