// Segments as they are read for lists: many by name, a few at a time, so that what is in memory at once is bounded whatever
// they hold.

import { namesOf } from '../../history/content.ts'
import type { MessageNames } from '../../store.ts'
import type { Ask } from '../session/database.ts'
import { contentOf, SEGMENT_COLUMNS, SEGMENT_TABLES, type SegmentRow } from './rows.ts'

export interface FullSegment extends SegmentRow {
  routes: string
  keys: Buffer
}

const FIRST_READ = 16
const LONGEST_READ = 128
const BYTES_PER_READ = 4 * 1024 * 1024

/** In the order of the names; those that are no longer stored are left out. Reads little ahead: who has enough stops. */
export async function* readSegments(ask: Ask, names: readonly string[]): AsyncGenerator<FullSegment> {
  if (names.length === 0) return
  const { rows: sizes } = await ask<{ seq: string; bytes: number }>(
    'SELECT seq, octet_length(body) AS bytes FROM segments WHERE seq = ANY($1::bigint[])',
    [[...new Set(names)]],
  )
  const bytesOf = new Map(sizes.map(({ seq, bytes }) => [seq, bytes]))
  const stored = names.filter((name) => bytesOf.has(name))
  let longest = FIRST_READ
  for (let at = 0; at < stored.length; longest = Math.min(longest * 2, LONGEST_READ)) {
    const some: string[] = []
    for (let bytes = 0; at < stored.length && some.length < longest && bytes < BYTES_PER_READ; at++) {
      const name = stored[at] as string
      some.push(name)
      bytes += bytesOf.get(name) as number
    }
    const { rows } = await ask<FullSegment>(
      `SELECT ${SEGMENT_COLUMNS}, g.routes, g.keys FROM ${SEGMENT_TABLES} WHERE g.seq = ANY($1::bigint[])`,
      [some],
    )
    const found = new Map(rows.map((row) => [row.seq, row]))
    for (const name of some) {
      const row = found.get(name)
      if (row !== undefined) yield row
    }
  }
}

export async function readSegment(ask: Ask, name: string): Promise<FullSegment | undefined> {
  for await (const row of readSegments(ask, [name])) return row
  return undefined
}

export interface Place {
  segment: string
  index: number
}

/** What messages say of themselves. */
export async function messageNamesOf(ask: Ask, places: readonly Place[]): Promise<MessageNames[]> {
  const bySegment = new Map<string, number[]>()
  for (const [at, { segment }] of places.entries()) {
    const known = bySegment.get(segment)
    if (known === undefined) bySegment.set(segment, [at])
    else known.push(at)
  }
  const found = places.map(({ index }) => namesOf(null, index))
  for await (const row of readSegments(ask, [...bySegment.keys()])) {
    const content = contentOf(row)
    for (const at of bySegment.get(row.seq) ?? []) found[at] = namesOf(content, (places[at] as Place).index)
  }
  return found
}
