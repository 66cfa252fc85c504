// The row port of segments, for SQLite. Lists of messages and of deliveries use it.

import type { Seed } from '../../encoding/fingerprint.ts'
import type { SegmentHead, SegmentRow, SegmentRows } from '../../history/segment-rows.ts'
import { absentIndexes } from '../messages/read-claims.ts'
import { rowAndIndex, SQLITE_ROW_ORDER } from '../schema/row-ids.ts'
import { readSetting } from '../schema/settings.ts'
import type { Rows } from './rows.ts'

export type StoredHead = Omit<SegmentHead<number>, 'absent'> & { absent: string | null }
type StoredSegment = StoredHead & Omit<SegmentRow<number>, 'absent' | 'browser' | 'sourceId'> & { browser: number }

export function headColumns(withKeys: boolean): string {
  return `seq, source, received_at AS receivedAtMs, count, absent${withKeys ? ', keys' : ''}`
}

export function headOf<Head extends StoredHead>(row: Head): Omit<Head, 'absent'> & { absent: number[] } {
  return Object.assign(row, { absent: absentIndexes(row.absent) })
}

export function segmentRows(rows: Rows): SegmentRows<number> {
  return {
    order: SQLITE_ROW_ORDER,
    parseId: rowAndIndex,
    seed: () => JSON.parse(readSetting(rows.database, 'dedup_seed') as string) as Seed,
    sources: () => rows.all('SELECT num, id FROM sources'),
    destinationIds: () => (num) => rows.destinations.id(num),
    heads: (ids, withKeys) =>
      rows
        .all<StoredHead>(`SELECT ${headColumns(withKeys)} FROM segments WHERE seq IN (SELECT value FROM json_each(?))`, JSON.stringify(ids))
        .map(headOf),
    *segments(ids) {
      const sql = `SELECT ${headColumns(true)}, ip, browser, routes, body, trace, violations FROM segments WHERE seq = ?`
      for (const id of ids) {
        for (const row of rows.all<StoredSegment>(sql, id))
          yield Object.assign(headOf(row), { sourceId: rows.sources.id(row.source), browser: row.browser === 1 })
      }
    },
  }
}
