// Segments in the file, for lists of messages and of deliveries.

import type { Seed } from '../../encoding/fingerprint.ts'
import type { SegmentRow, SegmentRows } from '../../history/segment-rows.ts'
import { absentIndexes } from '../messages/read-claims.ts'
import { rowAndIndex, SQLITE_ROWS } from '../schema/ids.ts'
import type { Rows } from './rows.ts'

type StoredSegment = Omit<SegmentRow<number>, 'sourceId' | 'browser' | 'absent'> & {
  source: number
  browser: number
  absent: string | null
}

export function segmentRows(rows: Rows): SegmentRows<number> {
  return {
    order: SQLITE_ROWS,
    named: rowAndIndex,
    seed: () => JSON.parse(rows.setting('dedup_seed') as string) as Seed,
    sources: () => rows.select('SELECT num, id FROM sources'),
    destinationIds: () => (num) => rows.destinations.id(num),
    *segments(names) {
      const statement = rows.database.prepare(
        `SELECT seq, source, received_at AS receivedAtMs, ip, browser, count, absent, routes, keys, body, trace FROM segments WHERE seq = ?`,
      )
      for (const name of names) {
        const row = statement.get(name) as StoredSegment | undefined
        if (row === undefined) continue
        yield { ...row, sourceId: rows.sources.id(row.source), browser: row.browser === 1, absent: absentIndexes(row.absent) }
      }
    },
  }
}
