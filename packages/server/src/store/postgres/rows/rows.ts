// What columns hold that is more than a value: parts of shipments and routes of segments, as JSON in which rows are named by
// their digits. Read and written by all files of this folder.

import { unpackBody } from '../../encoding/body-bytes.ts'
import { readTrace } from '../../encoding/trace-column.ts'
import { readStoredBody } from '../../port/stored-messages.ts'
import type { Part, SegmentContent } from '../../store.ts'

/** Parts as stored: 0 for all messages of the segment. Whoever reads leaves out what is absent from the segment. */
export type StoredPart = [origin: string, segment: string, indexes: readonly number[] | 0]

/**
 * Where messages were to go, as the segment keeps it: `s` shipments with how many were planned, `k` what was kept back and
 * why, which of a filter is followed by its rule. Destinations by `num`; '0' for none. What is absent has to be left out.
 */
export interface Routes {
  s: [destination: string, origin: string, indexes: readonly number[] | 0, planned: number][]
  k?: [destination: string, reason: string, indexes: readonly number[] | 0][]
}

/** A row of segments without `keys` and `routes`. */
export interface SegmentRow {
  seq: string
  source: string
  /** Joined from sources. */
  source_id: string
  received_at: number
  count: number
  browser: boolean
  absent: number[] | null
  ip: string | null
  trace: string | null
  body: Buffer
}

export const SEGMENT_COLUMNS = 'g.seq, g.source, s.id AS source_id, g.received_at, g.count, g.browser, g.absent, g.ip, g.trace, g.body'
export const SEGMENT_TABLES = 'segments g JOIN sources s ON s.num = g.source'

export function contentOf(row: SegmentRow): SegmentContent {
  const about = {
    sourceId: row.source_id,
    receivedAtMs: row.received_at,
    ip: row.ip,
    browser: row.browser,
    trace: readTrace(row.trace),
  }
  return readStoredBody(unpackBody(row.body), about, row.absent ?? [])
}

export function storedParts(parts: readonly Part[]): string {
  return JSON.stringify(parts.map(({ origin, segment, indexes }) => [origin, segment, indexes]))
}

/** Which of a segment's messages a part or a route stands for. A purged message is still owed until its delivery is cancelled. */
export function owedIndexes(stored: readonly number[] | 0, count: number, absent: readonly number[] | null): number[] {
  const all = stored === 0 ? Array.from({ length: count }, (_, index) => index) : [...stored]
  if (absent === null || absent.length === 0) return all
  const isAbsent = new Set(absent)
  return all.filter((index) => !isAbsent.has(index))
}
