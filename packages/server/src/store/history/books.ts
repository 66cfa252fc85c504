// The reads of the books: the ledger, rejections, counts over time, and the inspection of the store.

import { groupBy } from '../encoding/group-by.ts'
import type { BooksStore, LedgerRow, QuarantinedCount, SourceCounts, StoreInspection } from '../port/books.ts'
import type { BookRows, InspectedRows } from './book-rows.ts'
import { seriesOf, storedRanges } from './stats.ts'

const NO_COUNTS = { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }

export function booksOf(rows: BookRows): Omit<BooksStore, 'inspect' | 'addStats'> {
  /** A destination that was never owed anything has a row of zeros. */
  const withAll = async (counted: readonly LedgerRow[]): Promise<LedgerRow[]> => {
    const known = new Set(counted.map(({ destinationId }) => destinationId))
    const missing = (await rows.destinations()).filter((id) => !known.has(id))
    return [...counted, ...missing.map((destinationId) => Object.assign({ destinationId }, NO_COUNTS))]
  }
  return {
    ledger: async () => withAll(await rows.ledger()),
    recount: async () => withAll(await rows.recount()),
    oldestPendingOf: async (destinationId) => (await rows.oldestOf([destinationId]))[0],
    oldestPending: async () => {
      const owed = (await rows.ledger()).filter(({ pending }) => pending > 0)
      return [...(await rows.oldestOf(owed.map(({ destinationId }) => destinationId)))]
    },
    rejections: async () => rows.rejections(),
    sourceCounts: async () => rows.sourceCounts(),
    recountQuarantined: async () => rows.recountQuarantined(),
    stats: async (query) => seriesOf(await rows.stats(query.kind, [query.subject], storedRanges(query)), query),
    statsOf: async ({ subjects, ...query }) => {
      const found = await rows.stats(query.kind, subjects, storedRanges(query))
      const bySubject = groupBy(found, ({ subject }) => subject)
      return Array.from(bySubject, ([subject, own]) => ({ subject, points: seriesOf(own, query) }))
    },
  }
}

export async function inspectRows(rows: InspectedRows): Promise<StoreInspection> {
  const problems = await rows.problems()
  const storedBytes = await rows.storedBytes()
  // The rows of a damaged database may not be readable, so only the problems are reported.
  if (problems.length > 0) {
    const none = { ledger: [], recount: [], quarantined: [], quarantineRecount: [], oldestMessageAtMs: null, secretKeyIds: [] }
    return { problems, ...none, storedBytes }
  }
  const hasQuarantine = await rows.hasTable('quarantine')
  return {
    problems,
    ledger: [...(await rows.ledger())],
    recount: [...(await rows.recount())],
    quarantined: hasQuarantine ? quarantinedOf(await rows.sourceCounts()) : [],
    quarantineRecount: hasQuarantine ? await rows.recountQuarantined() : [],
    oldestMessageAtMs: await rows.oldestMessageAtMs(),
    secretKeyIds: encryptionKeyIds(await rows.textsWithSecrets()),
    storedBytes,
  }
}

function quarantinedOf(counts: readonly SourceCounts[]): QuarantinedCount[] {
  return counts.filter(({ quarantined }) => quarantined !== 0).map(({ sourceId, quarantined }) => ({ sourceId, quarantined }))
}

/** The ids of the keys with which secrets in these texts are encrypted. See secret-box.ts for the format. */
export function encryptionKeyIds(texts: Iterable<string>): string[] {
  const found = new Set<string>()
  for (const text of texts)
    for (const [, id] of text.matchAll(/(?<![\w-])v1\.([A-Za-z0-9_-]{8})\.[A-Za-z0-9_-]{38,}/g)) found.add(id as string)
  return [...found]
}
