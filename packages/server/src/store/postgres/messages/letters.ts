// Stores dead letters, in the transaction that ends the original deliveries.

import { type LetterContent, letterContent, letterRows } from '../../delivery/dead-letters.ts'
import type { Seed } from '../../encoding/fingerprint.ts'
import { KEY_WORDS } from '../../encoding/segment-keys.ts'
import type { DeadLetters } from '../../store.ts'
import type { MessageContext } from '../cluster/store-context.ts'
import type { Value } from '../session/connection.ts'
import { Columns, plainColumns, statement } from '../session/row-parameters.ts'
import { LEDGER } from '../tables/ledger-deltas.ts'
import { keyBytes } from '../tables/message-keys.ts'

const DAY_MS = 86_400_000

interface LetterRow extends LetterContent {
  segment: string
  origin: string
  delta: string
  /** Row ids. */
  source: string
  destination: string
  routes: string
  parts: string
}

const ROWS = new Columns<LetterRow>({
  seq: ['bigint', ({ segment }) => segment],
  id: ['bigint', ({ origin }) => origin],
  delta: ['bigint', ({ delta }) => delta],
  source: ['bigint', ({ source }) => source],
  destination: ['bigint', ({ destination }) => destination],
  received_at: ['bigint', ({ atMs }) => atMs],
  count: ['integer', ({ count }) => count],
  trace: ['text', ({ trace }) => trace],
  routes: ['text', ({ routes }) => routes],
  parts: ['text', ({ parts }) => parts],
  keys: ['bytea', ({ keys }) => new Uint8Array(keys.buffer, keys.byteOffset, keys.byteLength)],
  body: ['bytea', ({ body }) => body],
})

/** Stores nothing for a destination that was deleted. One that is deleted at this moment has its deliveries cancelled: see cancelling.ts. */
export const INSERT_LETTERS = statement({
  name: 'insert-letters',
  parameters: { letters: ROWS, keys: plainColumns({ key: 'uuid', segment: 'bigint' }), day: 'value' },
  text: ({ letters, keys, day }) => `
WITH l AS MATERIALIZED (
  SELECT l.* FROM ${letters.as('l')} JOIN destinations d ON d.num = l.destination AND NOT d.deleted
), seg AS (
  INSERT INTO segments (seq, source, received_at, count, browser, trace, routes, keys, body)
  SELECT seq, source, received_at, count, false, trace, routes, keys, body FROM l
), k AS (
  INSERT INTO message_keys (day, key, segment)
  SELECT ${day}::integer, k.key, k.segment FROM ${keys.as('k')} WHERE k.segment IN (SELECT seq FROM l) ORDER BY k.key ON CONFLICT DO NOTHING
), ship AS (
  INSERT INTO shipments (id, destination, count, bytes, parts) SELECT id, destination, count, octet_length(body), parts FROM l
)
INSERT INTO deltas (id, kind, subject, counts) SELECT delta, ${LEDGER}, destination, ARRAY[count, 0, count, 0, 0, 0]::bigint[] FROM l`,
})

/** Returns the values of INSERT_LETTERS; null if there is nothing to store. */
export function letterValues(letters: readonly DeadLetters[], { ids, idMap, membership }: MessageContext, seed: Seed): Value[] | null {
  const rows = letters.flatMap((some): LetterRow[] => {
    const source = idMap.num('sources', some.sourceId)
    const destination = idMap.num('destinations', some.destinationId)
    if (source === undefined || destination === undefined) return []
    const content = letterContent(some, seed)
    return [{ ...content, source, destination, ...letterRows(() => ids.next(), destination, content.count), delta: ids.next() }]
  })
  if (rows.length === 0) return null
  const keys = rows.flatMap((row) =>
    Array.from({ length: row.count }, (_, index) => ({ key: keyBytes(row.keys, index * KEY_WORDS), segment: row.segment })),
  )
  return INSERT_LETTERS.values({ letters: rows, keys, day: Math.floor(membership.serverMs() / DAY_MS) })
}
