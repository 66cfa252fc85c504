// A segment as it is claimed, and the content in its row.

import { unpackBody } from '../../encoding/body-bytes.ts'
import { readTrace } from '../../encoding/trace-column.ts'
import { readStoredBody } from '../../port/stored-messages.ts'
import type { SegmentContent } from '../../store.ts'

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
