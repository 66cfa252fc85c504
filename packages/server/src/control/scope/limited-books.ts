// Counts for a caller that is limited to sources: those of its sources, and those of destinations that serve no other source. The counts of a
// shared destination include deliveries of other sources, so they are left out.

import { ApiError } from '../../errors.ts'
import { addSubject } from '../../store/port/stat-counts.ts'
import type { BooksStore, StatPoint, StatQuery, Store } from '../../store/store.ts'
import { unreachable } from './out-of-reach.ts'
import type { Scope } from './scope.ts'

export function limitedBooks(store: Store, scope: Scope): BooksStore {
  const { books } = store

  const isWhole = (destinationId: string): boolean => scope.hasWhole(store.configuration(), destinationId)

  /** Throws if the destination exists for the caller, but serves other sources, too. */
  function rejectShared(destinationId: string): void {
    if (scope.limit(store.configuration()).destinations.has(destinationId) && !isWhole(destinationId))
      throw new ApiError('shared_destination')
  }

  const ofWhole = <Row extends { destinationId: string }>(rows: readonly Row[]): Row[] => rows.filter((row) => isWhole(row.destinationId))
  const ofSources = <Row extends { sourceId: string | null }>(rows: readonly Row[]): Row[] =>
    rows.filter(({ sourceId }) => sourceId !== null && scope.has(sourceId))

  async function sumOfAll(query: StatQuery): Promise<StatPoint[]> {
    const { subject: _, ...period } = query
    const destinationIds = [...store.configuration().destinations.keys()].filter(isWhole)
    const found = await Promise.all([
      books.statsOf({ ...period, kind: 'source', subjects: scope.sourceIds }),
      books.statsOf({ ...period, kind: 'destination', subjects: destinationIds }),
    ])
    return summed(found.flat().flatMap(({ points }) => points))
  }

  return {
    ledger: async () => ofWhole(await books.ledger()),
    recount: async () => ofWhole(await books.recount()),
    async oldestPendingOf(destinationId) {
      rejectShared(destinationId)
      return isWhole(destinationId) ? books.oldestPendingOf(destinationId) : undefined
    },
    oldestPending: async () => ofWhole(await books.oldestPending()),
    inspect: unreachable('the inspection of the store'),
    rejections: async () => ofSources(await books.rejections()),
    sourceCounts: async () => ofSources(await books.sourceCounts()),
    recountQuarantined: async () => ofSources(await books.recountQuarantined()),
    addStats: unreachable('adding counts'),
    async stats(query) {
      if (query.kind === 'all') return sumOfAll(query)
      if (query.kind === 'source') return scope.has(query.subject) ? books.stats(query) : []
      rejectShared(query.subject)
      return isWhole(query.subject) ? books.stats(query) : []
    },
    statsOf: async ({ subjects, ...query }) => {
      const isIn = query.kind === 'source' ? scope.has : isWhole
      return query.kind === 'all' ? [] : books.statsOf({ ...query, subjects: subjects.filter(isIn) })
    },
  }
}

function summed(points: readonly StatPoint[]): StatPoint[] {
  const steps = new Map<number, Record<string, number>>()
  for (const { atMs, counts } of points) {
    const sum = steps.get(atMs) ?? {}
    addSubject(sum, counts)
    steps.set(atMs, sum)
  }
  return [...steps].sort(([a], [b]) => a - b).map(([atMs, counts]) => ({ atMs, counts }))
}
