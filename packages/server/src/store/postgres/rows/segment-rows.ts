// The row port of segments, for PostgreSQL. Lists of messages and of deliveries use it.

import type { Seed } from '../../encoding/fingerprint.ts'
import type { SegmentRow, SegmentRows } from '../../history/segment-rows.ts'
import type { IdMap } from '../schema/id-map.ts'
import { POSTGRES_ROWS, rowAndIndex } from '../schema/ids.ts'
import { type Ask, type AskRows, rowsOf } from '../session/database.ts'

const FIRST_READ = 16
const LONGEST_READ = 128
const BYTES_PER_READ = 4 * 1024 * 1024

export function segmentRows(ask: Ask, idMap: IdMap, seed: Seed): SegmentRows<string> {
  const all = rowsOf(ask)
  return {
    order: POSTGRES_ROWS,
    parseId: rowAndIndex,
    seed: () => seed,
    sources: () => all('SELECT num, id FROM sources'),
    destinationIds: (nums) => idMap.idsOf(ask, 'destinations', nums),
    heads: async (wanted, withKeys) =>
      wanted.length === 0 ? [] : all(`SELECT ${headColumns(withKeys)} FROM segments g WHERE seq = ANY($1::bigint[])`, [wanted]),
    segments: (wanted) => segments(all, wanted),
  }
}

/** Reads a few segments at a time, so that memory is bounded however large they are. */
async function* segments(all: AskRows, seqs: readonly string[]): AsyncGenerator<SegmentRow<string>> {
  if (seqs.length === 0) return
  const sizes = await all<{ seq: string; bytes: number }>(
    'SELECT seq, octet_length(body) AS bytes FROM segments WHERE seq = ANY($1::bigint[])',
    [[...new Set(seqs)]],
  )
  const bytesOf = new Map(sizes.map(({ seq, bytes }) => [seq, bytes]))
  const stored = seqs.filter((seq) => bytesOf.has(seq))
  let longest = FIRST_READ
  for (let at = 0; at < stored.length; longest = Math.min(longest * 2, LONGEST_READ)) {
    const some: string[] = []
    for (let bytes = 0; at < stored.length && some.length < longest && bytes < BYTES_PER_READ; at++) {
      const seq = stored[at] as string
      some.push(seq)
      bytes += bytesOf.get(seq) as number
    }
    const rows = await all<SegmentRow<string>>(
      `SELECT ${CONTENT_COLUMNS}, g.keys, g.routes FROM ${SEGMENT_TABLES} WHERE g.seq = ANY($1::bigint[])`,
      [some],
    )
    const found = new Map(rows.map((row) => [row.seq, row]))
    for (const seq of some) {
      const row = found.get(seq)
      if (row !== undefined) yield row
    }
  }
}

/** The columns of SegmentHead, from `segments` with the alias `g`. */
export function headColumns(withKeys: boolean): string {
  return `g.seq, g.source, g.received_at AS "receivedAtMs", g.count, coalesce(g.absent, '{}') AS absent${withKeys ? ', g.keys' : ''}`
}

/** The columns of StoredContent, from SEGMENT_TABLES. */
export const CONTENT_COLUMNS = `${headColumns(false)}, s.id AS "sourceId", g.ip, g.browser, g.trace, g.violations, g.body`
export const SEGMENT_TABLES = 'segments g JOIN sources s ON s.num = g.source'

/** The oldest segment; null if there are no rows. */
export function oldestOf(rows: readonly { segment: string }[]): string | null {
  return rows.reduce<string | null>((least, { segment }) => (least === null || segment < least ? segment : least), null)
}
