// Routes for the counts: the ledger (deliveries per destination, by state), rejected messages, and messages per source.

import { queryBoolean } from '../../api/query-values.ts'
import { array, boolean, integer, nullable, object, string, time, withDefault } from '../../api/schema.ts'
import type { LedgerRow, SourceCounts } from '../../store/store.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

export const LEDGER_FIELDS = {
  owed: integer({ description: 'All deliveries so far, in any state.' }),
  delivered: integer(),
  pending: integer(),
  failed: integer(),
  expired: integer(),
  cancelled: integer(),
}

/** The ledger of a destination without deliveries. */
export function emptyLedger(destinationId: string): LedgerRow {
  return { destinationId, owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }
}

/** These lists have at most one entry per configured resource, so they have no pages. */
const NEXT = nullable(string({ description: 'Always null: the list is complete.' }))

const LEDGER_ANSWER = object({
  data: array(
    object({
      destinationId: string(),
      ...LEDGER_FIELDS,
      quarantined: integer({
        description:
          'Messages in quarantine now, of the sources that the destination is attached to. They are not part of `owed` until they are released.',
      }),
    }),
  ),
  next: NEXT,
  consistent: boolean({ description: 'Whether owed = delivered + pending + failed + expired + cancelled for each destination.' }),
})
const LEDGER_QUERY = object({
  recount: withDefault(
    queryBoolean({ description: 'If true, counts the stored rows instead of reading the ledger. This takes a long time.' }),
    false,
  ),
})

const REJECTIONS_ANSWER = object({
  data: array(
    object({
      sourceId: nullable(string({ description: 'The source; null if the write key is unknown.' })),
      code: string({ description: 'The error code.' }),
      count: integer({ description: 'The number of rejected messages.' }),
      lastAt: time({ description: 'When the last one was rejected.' }),
      lastSample: string({ description: 'The start of the last rejected message or request.' }),
    }),
  ),
  next: NEXT,
})

const COUNT_FIELDS = {
  accepted: integer({ description: 'Messages that were stored.' }),
  duplicates: integer({ description: 'Messages that were dropped because their messageId had been accepted before.' }),
  rejected: integer({ description: 'Messages that were rejected with an error.' }),
  suppressed: integer({ description: 'Messages that were dropped because their user is suppressed.' }),
  quarantined: integer({ description: 'Messages that are in quarantine now, because they violate a tracking plan.' }),
  released: integer({ description: 'Messages that were released from quarantine.' }),
  deleted: integer({ description: 'Messages that were deleted from quarantine.' }),
}
const TOTALS_ANSWER = object({ data: array(object({ sourceId: string(), ...COUNT_FIELDS })), next: NEXT })

export function ledgerRoutes({ store }: ControlParts): Route[] {
  return [
    route('GET', '/ledger', {
      compressed: true,
      summary: 'Retrieve the ledger',
      access: { role: 'viewer', sources: 'limited' },
      description:
        'For each destination, the number of deliveries in each state. Every delivery is in exactly one state, so the counts must add up to `owed`. Messages in quarantine are counted separately.',
      query: LEDGER_QUERY,
      answer: LEDGER_ANSWER,
      async handle({ query, isWhole }) {
        const counted = query.recount ? await store.books.recount() : await store.books.ledger()
        const known = new Set(counted.map(({ destinationId }) => destinationId))
        const untouched = [...store.configuration().destinations.keys()].filter((id) => !known.has(id) && isWhole(id))
        const rows = [...counted, ...untouched.map(emptyLedger)]
        const held = new Map((await store.books.sourceCounts()).map(({ sourceId, quarantined }) => [sourceId, quarantined]))
        const { destinations } = store.configuration()
        const data = rows.map((row) => {
          const sourceIds = destinations.get(row.destinationId)?.sourceIds ?? []
          return Object.assign({}, row, { quarantined: sourceIds.reduce((sum, id) => sum + (held.get(id) ?? 0), 0) })
        })
        return { data, next: null, consistent: data.every(balances) }
      },
    }),
    route('GET', '/rejections', {
      summary: 'List rejected messages and requests, by source and error code',
      access: { role: 'viewer', sources: 'limited' },
      answer: REJECTIONS_ANSWER,
      handle: async () => ({ data: await store.books.rejections(), next: null }),
    }),
    route('GET', '/stats/totals', {
      summary: 'Retrieve the total counts of messages per source',
      access: { role: 'viewer', sources: 'limited' },
      answer: TOTALS_ANSWER,
      async handle() {
        const counted = await store.books.sourceCounts()
        const known = new Set(counted.map(({ sourceId }) => sourceId))
        const silent = [...store.configuration().sources.keys()].filter((id) => !known.has(id))
        return { data: [...counted, ...silent.map(emptyCounts)], next: null }
      },
    }),
  ]
}

function balances({ owed, delivered, pending, failed, expired, cancelled }: LedgerRow): boolean {
  return owed === delivered + pending + failed + expired + cancelled
}

/** The counts of a source without messages. */
function emptyCounts(sourceId: string): SourceCounts {
  return { sourceId, accepted: 0, duplicates: 0, rejected: 0, suppressed: 0, quarantined: 0, released: 0, deleted: 0 }
}
