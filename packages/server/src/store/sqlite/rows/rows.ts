// The rows as the reading thread sees them: one connection, the names behind numbers, and the segments of the question at
// hand, which the rows of a list often share. What is asked of the rows is in the files named read-….

import type { DatabaseSync } from 'node:sqlite'
import { unpackBody } from '../../encoding/body-bytes.ts'
import { readTrace } from '../../encoding/trace-column.ts'
import { readStoredBody } from '../../port/stored-messages.ts'
import type { SegmentContent } from '../../store.ts'
import { absentIndexes } from '../messages/read-claims.ts'
import { Names } from '../schema/names.ts'

export interface SegmentRow {
  seq: number
  source: number
  received_at: number
  ip: string | null
  browser: number
  count: number
  absent: string | null
  routes: string
  keys: Uint8Array
  body: Uint8Array
  trace: string | null
}

const KEPT_SEGMENTS = 64

export class Rows {
  readonly database: DatabaseSync
  readonly sources: Names
  readonly destinations: Names
  readonly #contents = new Map<number, SegmentContent | null>()

  constructor(database: DatabaseSync) {
    this.database = database
    this.sources = new Names(database, 'sources')
    this.destinations = new Names(database, 'destinations')
  }

  segment(seq: number): SegmentRow | undefined {
    const row = this.get('SELECT * FROM segments WHERE seq = ?', seq) as SegmentRow | undefined
    return row && { ...row, body: unpackBody(row.body) }
  }

  /** Null when it is no longer stored. Kept for the rows of one list, which often share a segment. */
  content(seq: number): SegmentContent | null {
    const known = this.#contents.get(seq)
    if (known !== undefined) return known
    const row = this.segment(seq)
    const content = row ? this.contentOf(row) : null
    if (this.#contents.size >= KEPT_SEGMENTS) this.#contents.clear()
    this.#contents.set(seq, content)
    return content
  }

  /** A purge rewrites segments, so nothing is kept from one question to the next. */
  forget(): void {
    this.#contents.clear()
  }

  contentOf(row: SegmentRow): SegmentContent {
    const { received_at: receivedAtMs, ip, browser, trace } = row
    const about = { sourceId: this.sources.id(row.source), receivedAtMs, ip, browser: browser === 1, trace: readTrace(trace) }
    return readStoredBody(row.body, about, absentIndexes(row.absent))
  }

  setting(name: string): string | undefined {
    return (this.get('SELECT value FROM settings WHERE name = ?', name) as { value: string } | undefined)?.value
  }

  all(sql: string, ...values: (number | string)[]): unknown[] {
    return this.database.prepare(sql).all(...values)
  }

  get(sql: string, ...values: (number | string)[]): unknown {
    return this.database.prepare(sql).get(...values)
  }
}
