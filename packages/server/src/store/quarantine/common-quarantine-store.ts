// The part of the quarantine's port that is the same for both adapters, and the lists of messages in quarantine, with their content.

import { groupBy } from '../encoding/group-by.ts'
import { withOnly } from '../history/message-content.ts'
import { rowCursorOf } from '../history/paging.ts'
import { readSegments } from '../history/segment-rows.ts'
import type { NewAuditEntry, QuarantinedMessage, QuarantineStore, ReleasedMessage, RowId } from '../store.ts'
import type { ReleaseReply } from './end-quarantine.ts'
import type { QuarantineReadRows, QuarantineRow } from './quarantine-rows.ts'

const EXPIRED_AT_ONCE = 500

/** `release` and `delete` run the functions of end-quarantine.ts in a transaction, and write the audit entry if a message left the quarantine. */
export interface QuarantineEngine extends QuarantineReads {
  release(messages: readonly ReleasedMessage[], atMs: number, audit: NewAuditEntry | undefined): Promise<ReleaseReply>
  delete(ids: readonly string[], atMs: number, outcome: 'deleted' | 'expired', audit?: NewAuditEntry): Promise<readonly string[]>
  nowMs(): number
  /** Tells delivery that the store has new work for the destination. */
  wake(destinationId: string): void
}

export function commonQuarantineStore(engine: QuarantineEngine): QuarantineStore {
  const nowMs = (): number => Math.floor(engine.nowMs())
  return {
    list: (filter, page) => engine.list(filter, page),
    find: (ids) => engine.find(ids),
    release: async (messages, audit) => {
      const ids = messages.map(({ id }) => id)
      const reply = await engine.release(messages, nowMs(), audit?.({ ids }, null))
      for (const destinationId of reply.destinationIds) engine.wake(destinationId)
      return reply.ids
    },
    delete: (ids, audit) => engine.delete(ids, nowMs(), 'deleted', audit?.(null, { ids })),
    expire: async (beforeMs) => {
      const ids = await engine.idsBefore(beforeMs, EXPIRED_AT_ONCE)
      return ids.length === 0 ? 0 : (await engine.delete(ids, nowMs(), 'expired')).length
    },
  }
}

/** The maximum size of the bodies that one page reads: about 100 ms of parsing. */
const BYTES_PER_PAGE = 8 * 1024 * 1024
/** Greater than every index in a segment. */
const LAST_INDEX = 2 ** 31 - 1

/** The methods of the port that only read. They may run in another thread. */
export interface QuarantineReads extends Pick<QuarantineStore, 'list' | 'find'> {
  /** The ids of the oldest messages, of those that were received before a time. */
  idsBefore(beforeMs: number, limit: number): Promise<string[]>
}

export function quarantineReads<Id extends RowId>(
  inSnapshot: <T>(work: (rows: QuarantineReadRows<Id>) => Promise<T>) => Promise<T>,
): QuarantineReads {
  return {
    list: ({ sourceId, sourceIds, planId, rule }, { limit, cursor, oldestFirst = false }) =>
      inSnapshot(async (rows) => {
        const { order } = rows
        const first = oldestFirst ? ([order.oldest, 0] as const) : ([order.newest, LAST_INDEX] as const)
        const [segment, index] = rowCursorOf(order, oldestFirst ? 'a' : 'q', cursor, first)
        const source = sourceId === undefined ? undefined : await rows.source(sourceId)
        if (sourceId !== undefined && source === undefined) return { data: [], next: null }
        const all = sourceIds && (await Promise.all(sourceIds.map(async (id) => rows.source(id))))
        const sources = all?.filter((num) => num !== undefined)
        const held = await rows.held({ source, sources, planId, rule, from: { segment, index }, oldestFirst, limit: limit + 1 })
        const { messages: data, used } = await withContent(rows, held.slice(0, limit))
        const next = held[used]
        return { data, next: next === undefined ? null : JSON.stringify([oldestFirst ? 'a' : 'q', next.segment, next.index]) }
      }),
    find: (ids) =>
      inSnapshot(async (rows) => {
        const parsed = [...new Set(ids)].flatMap((id) => rows.parseId(id) ?? [])
        const held = await rows.heldAt(parsed.map(({ row, index }) => ({ segment: row, index })))
        return (await withContent(rows, held, Number.POSITIVE_INFINITY)).messages
      }),
    idsBefore: (beforeMs, limit) =>
      inSnapshot(async (rows) => {
        const held = await rows.held({ from: { segment: rows.order.oldest, index: 0 }, oldestFirst: true, limit })
        return held.filter(({ segment }) => rows.order.msOf(segment) < beforeMs).map(({ segment, index }) => `${segment}-${index}`)
      }),
  }
}

/** In the order of `held`, whose rows are sorted by segment. Stops after the segment with which it has read `maxBytes`. `used`: how many of the rows it has read. */
async function withContent<Id extends RowId>(
  rows: QuarantineReadRows<Id>,
  held: readonly QuarantineRow<Id>[],
  maxBytes = BYTES_PER_PAGE,
): Promise<{ messages: QuarantinedMessage[]; used: number }> {
  const bySegment = groupBy(held, ({ segment }) => segment)
  const messages: QuarantinedMessage[] = []
  let bytes = 0
  for await (const found of readSegments(rows, [...bySegment.keys()], ({ seq }) => bySegment.get(seq)?.map(({ index }) => index))) {
    // Only the messages themselves stay in memory, because a segment may be large.
    for (const { segment, index, planId, rule } of bySegment.get(found.seq) ?? [])
      messages.push({ id: `${segment}-${index}`, segment, index, planId, rule, content: withOnly(found.content, [index]) })
    bytes += found.bytes
    if (bytes > maxBytes) return { messages, used: held.map(({ segment }) => segment).lastIndexOf(found.seq) + 1 }
  }
  return { messages, used: held.length }
}
