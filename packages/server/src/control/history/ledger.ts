// The books: what each destination is owed and what became of it, what each source sent, and what was refused at the door.

import { isoTime } from '@switchyard/protocol'
import { array, boolean, integer, nullable, object, string, time, withDefault } from '../../api/schema.ts'
import type { LedgerRow, SourceCounts } from '../../store/store.ts'
import { queryBoolean } from '../query.ts'
import { type ControlParts, type Route, route } from '../route.ts'

export const LEDGER_FIELDS = {
  owed: integer(),
  delivered: integer(),
  pending: integer(),
  failed: integer(),
  expired: integer(),
  cancelled: integer(),
}

/** Of a destination that was never owed anything. */
export function emptyLedger(destinationId: string): LedgerRow {
  return { destinationId, owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }
}

/** These lists are as short as the configuration and come whole. */
const NEXT = nullable(string({ description: 'Always null: the list is complete.' }))

const LEDGER_ANSWER = object({
  data: array(object({ destinationId: string(), ...LEDGER_FIELDS })),
  next: NEXT,
  consistent: boolean({ description: 'Whether owed = delivered + pending + failed + expired + cancelled for each.' }),
})
const LEDGER_QUERY = object({ recount: withDefault(queryBoolean({ description: 'Counts the rows themselves, which takes long.' }), false) })

const REJECTIONS_ANSWER = object({
  data: array(
    object({
      sourceId: nullable(string({ description: 'Null: the write key was not known.' })),
      code: string(),
      count: integer(),
      lastAt: time(),
      lastSample: string({ description: 'The start of what was rejected last.' }),
    }),
  ),
  next: NEXT,
})

const COUNT_FIELDS = { accepted: integer(), duplicates: integer(), rejected: integer(), suppressed: integer() }
const TOTALS_ANSWER = object({ data: array(object({ sourceId: string(), ...COUNT_FIELDS })), next: NEXT })

export function ledgerRoutes({ store }: ControlParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/ledger',
      summary: 'The ledger: the deliveries of each destination, by state',
      query: LEDGER_QUERY,
      status: 200,
      answer: LEDGER_ANSWER,
      async handle({ query }) {
        const counted = query.recount ? await store.books.recount() : await store.books.ledger()
        const known = new Set(counted.map(({ destinationId }) => destinationId))
        const untouched = [...store.configuration().destinations.keys()].filter((id) => !known.has(id))
        const data = [...counted.map(ledgerView), ...untouched.map(emptyLedger)]
        return { data, next: null, consistent: data.every(balances) }
      },
    }),
    route({
      method: 'GET',
      path: '/rejections',
      summary: 'Messages and requests that were rejected, by source and code',
      status: 200,
      answer: REJECTIONS_ANSWER,
      async handle() {
        const rows = await store.books.rejections()
        return {
          data: rows.map(({ sourceId, code, count, lastAtMs, lastSample }) => ({
            sourceId,
            code,
            count,
            lastAt: isoTime(lastAtMs),
            lastSample,
          })),
          next: null,
        }
      },
    }),
    route({
      method: 'GET',
      path: '/stats/totals',
      summary: 'Total counts of messages per source',
      status: 200,
      answer: TOTALS_ANSWER,
      async handle() {
        const counted = await store.books.sourceCounts()
        const known = new Set(counted.map(({ sourceId }) => sourceId))
        const silent = [...store.configuration().sources.keys()].filter((id) => !known.has(id))
        return { data: [...counted.map(countsView), ...silent.map(emptyCounts)], next: null }
      },
    }),
  ]
}

function ledgerView({ destinationId, owed, delivered, pending, failed, expired, cancelled }: LedgerRow): LedgerRow {
  return { destinationId, owed, delivered, pending, failed, expired, cancelled }
}

function balances({ owed, delivered, pending, failed, expired, cancelled }: LedgerRow): boolean {
  return owed === delivered + pending + failed + expired + cancelled
}

function countsView({ sourceId, accepted, duplicates, rejected, suppressed }: SourceCounts): SourceCounts {
  return { sourceId, accepted, duplicates, rejected, suppressed }
}

/** Of a source that was never sent anything. */
function emptyCounts(sourceId: string): SourceCounts {
  return { sourceId, accepted: 0, duplicates: 0, rejected: 0, suppressed: 0 }
}
