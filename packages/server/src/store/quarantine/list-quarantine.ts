// Lists the messages in quarantine, with their content.

import { withOnly } from '../history/message-content.ts'
import { rowCursorOf } from '../history/paging.ts'
import { type ReadSegment, readSegments } from '../history/segment-rows.ts'
import type { RowId } from '../port/model.ts'
import type { Page, PageRequest } from '../port/pages.ts'
import type { QuarantinedMessage, QuarantineFilter } from '../port/quarantine.ts'
import type { QuarantineReadRows, QuarantineRow } from './quarantine-rows.ts'

/** The maximum size of the bodies that one page reads: about 100 ms of parsing. */
const BYTES_PER_PAGE = 8 * 1024 * 1024
/** Greater than every index in a segment. */
const LAST_INDEX = 2 ** 31 - 1

/** The methods of the port that only read. They may run in another thread. */
export interface QuarantineReads {
  list(filter: QuarantineFilter, page: PageRequest & { oldestFirst?: boolean }): Promise<Page<QuarantinedMessage>>
  find(ids: readonly string[]): Promise<readonly QuarantinedMessage[]>
}

export function quarantineReads<Id extends RowId>(
  inSnapshot: <T>(work: (rows: QuarantineReadRows<Id>) => Promise<T>) => Promise<T>,
): QuarantineReads {
  return {
    list: ({ sourceId, planId, rule }, { limit, cursor, oldestFirst = false }) =>
      inSnapshot(async (rows) => {
        const { order } = rows
        const first = oldestFirst ? ([order.oldest, 0] as const) : ([order.newest, LAST_INDEX] as const)
        const [segment, index] = rowCursorOf(order, oldestFirst ? 'a' : 'q', cursor, first)
        const source = sourceId === undefined ? undefined : await rows.source(sourceId)
        if (sourceId !== undefined && source === undefined) return { data: [], next: null }
        const held = await rows.held({ source, planId, rule, from: { segment, index }, oldestFirst, limit: limit + 1 })
        const data = await withContent(rows, held.slice(0, limit))
        const next = held[data.length]
        return { data, next: next === undefined ? null : JSON.stringify([oldestFirst ? 'a' : 'q', next.segment, next.index]) }
      }),
    find: (ids) =>
      inSnapshot(async (rows) => {
        const parsed = [...new Set(ids)].flatMap((id) => rows.parseId(id) ?? [])
        return withContent(rows, await rows.heldAt(parsed.map(({ row, index }) => ({ segment: row, index }))), Number.POSITIVE_INFINITY)
      }),
  }
}

/** Stops when it has read `maxBytes`, but not before the first message. */
async function withContent<Id extends RowId>(
  rows: QuarantineReadRows<Id>,
  held: readonly QuarantineRow<Id>[],
  maxBytes = BYTES_PER_PAGE,
): Promise<QuarantinedMessage[]> {
  const wanted = new Map<Id, number[]>()
  for (const { segment, index } of held) wanted.set(segment, [...(wanted.get(segment) ?? []), index])
  const read = new Map<Id, ReadSegment<Id>>()
  let bytes = 0
  for await (const segment of readSegments(rows, [...wanted.keys()], ({ seq }) => wanted.get(seq))) {
    read.set(segment.seq, segment)
    bytes += segment.bytes
    if (bytes > maxBytes) break
  }
  const messages: QuarantinedMessage[] = []
  for (const { segment, index, planId, rule } of held) {
    const found = read.get(segment)
    if (found === undefined) break
    messages.push({ id: `${segment}-${index}`, segment, index, planId, rule, content: withOnly(found.content, [index]) })
  }
  return messages
}
