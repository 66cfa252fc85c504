// What a claim changes about ordered shipments before it takes any: messages whose keys are not free are moved behind those that wait, shipments that may
// have messages of any partition are divided, and messages that would go back at once are set apart. They keep their place in the order of acceptance.

import { type OrderKey, partitionOf } from '../../../model/order/order-key.ts'
import { byPartition, splitWaiting } from '../../delivery/ordered-shipments.ts'
import { countOf } from '../../encoding/settlement.ts'
import { owedPart, type StoredPart, storedParts } from '../../encoding/stored-parts.ts'
import type { Part } from '../../store.ts'
import { int8s } from '../session/binary-arrays.ts'
import type { Ask } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'
import type { RowIds } from '../tables/ids.ts'
import type { OrderedRow } from './taking.ts'

const LOCK_KEYS = {
  name: 'order-lock-keys',
  // Settlements lock keys in the same order.
  text: 'SELECT key FROM order_keys WHERE destination = $1 AND key = ANY ($2::bigint[]) ORDER BY key FOR UPDATE',
}

/** Waits for other nodes that divide the same shipments, or cancel them. */
const LOCK_ROWS = {
  name: 'order-lock-rows',
  text: 'SELECT id::text AS id FROM shipments WHERE holder = 0 AND id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE',
}

const MOVED = plainColumns({
  id: 'bigint',
  count: 'integer',
  bytes: 'integer',
  parts: 'text',
  ord: 'bigint',
  partition: 'integer',
  key: 'bigint',
})

const MOVE = statement({
  name: 'order-move',
  parameters: { destination: 'value', moved: MOVED, kept: plainColumns({ id: 'bigint', count: 'integer', parts: 'text' }), gone: 'value' },
  text: ({ destination, moved, kept, gone }) => `
WITH added AS (
  INSERT INTO shipments (destination, attempt, ${moved.names}) SELECT ${destination}, -1, m.* FROM ${moved.as('m')} RETURNING key, count
), kept AS (
  UPDATE shipments s SET count = k.count, parts = k.parts FROM ${kept.as('k')} WHERE s.holder = 0 AND s.id = k.id RETURNING s.id
), gone AS (
  DELETE FROM shipments WHERE holder = 0 AND id = ANY (${gone}::bigint[]) RETURNING id
), keys AS (
  UPDATE order_keys k SET waiting = k.waiting + a.count FROM (SELECT key, sum(count) AS count FROM added GROUP BY key) a
  WHERE k.destination = ${destination} AND k.key = a.key RETURNING k.key
)
SELECT CASE WHEN (SELECT count(*) FROM kept) + (SELECT count(*) FROM gone) <> cardinality(${kept.array('id')}) + cardinality(${gone}::bigint[])
  THEN refuse('changed meanwhile') END AS refused`,
})

interface Moved {
  id: string
  count: number
  bytes: number
  parts: string
  ord: number
  partition: number
  key: OrderKey | null
}

/** Moves messages whose keys are not free behind those that wait. Returns what is left of the rows, by row id. */
export async function moveWaiting(
  ask: Ask,
  ids: RowIds,
  destination: string,
  rows: readonly OrderedRow[],
): Promise<Map<string, OrderedRow>> {
  const stored = rows.map((row) => ({ row, parts: JSON.parse(row.parts) as StoredPart<string>[] }))
  const keys = [...new Set(stored.flatMap(({ parts }) => parts.flatMap(([, , , own = []]) => own)))]
  const { rows: locked } = await ask<{ key: OrderKey }>(LOCK_KEYS, [destination, int8s(keys)])
  const waits = new Set(locked.map(({ key }) => key))
  const left = new Map(rows.map((row) => [row.id, row]))
  if (waits.size === 0) return left
  const parsed = await owedParts(ask, stored)
  const split = separated(ids, parsed, (key) => !waits.has(key))
  for (const { id, parts } of split.kept) left.set(id, { ...(left.get(id) as OrderedRow), parts })
  for (const id of split.gone) left.delete(id)
  await move(ask, destination, split)
  return left
}

/** Replaces shipments by one for each partition, at the same place. */
export async function divide(ask: Ask, ids: RowIds, destination: string, undivided: readonly OrderedRow[]): Promise<void> {
  const parsed = await lockedParts(ask, undivided)
  if (parsed.length === 0) return
  const divided = parsed.flatMap(({ row: { bytes, ord }, parts }) =>
    Array.from(byPartition(parts), ([partition, own]) => {
      return { id: ids.next(), count: countOf({ parts: own }), bytes, parts: storedParts(own), ord, partition, key: null }
    }),
  )
  await move(ask, destination, { moved: divided, kept: [], gone: parsed.map(({ row: { id } }) => id) })
}

/** Puts the messages of some keys into shipments of their own, one for each key, at the same place. */
export async function setApart(
  ask: Ask,
  ids: RowIds,
  destination: string,
  mixed: readonly OrderedRow[],
  keys: ReadonlySet<OrderKey>,
): Promise<void> {
  const { moved, kept, gone } = separated(ids, await lockedParts(ask, mixed), (key) => !keys.has(key))
  // They wait behind nothing, so their rows have no key.
  await move(ask, destination, { moved: moved.map((row) => Object.assign(row, { key: null })), kept, gone })
}

interface Parsed {
  row: OrderedRow
  parts: Part[]
}

interface Separated {
  moved: Moved[]
  kept: { id: string; count: number; parts: string }[]
  /** The rows of which nothing is left. */
  gone: string[]
}

/** Moves what is not free out of shipments, into a row for each key at the same place. */
function separated(ids: RowIds, shipments: readonly Parsed[], isFree: (key: OrderKey) => boolean): Separated {
  const split: Separated = { moved: [], kept: [], gone: [] }
  for (const { row, parts } of shipments) {
    const { free, waiting } = splitWaiting(parts, isFree)
    if (waiting.size === 0) continue
    const { id, bytes, ord } = row
    for (const [key, own] of waiting) {
      const what = { count: countOf({ parts: own }), bytes, parts: storedParts(own) }
      split.moved.push({ id: ids.next(), ...what, ord, partition: partitionOf(key), key })
    }
    if (free.length === 0) split.gone.push(id)
    else split.kept.push({ id, count: countOf({ parts: free }), parts: storedParts(free) })
  }
  return split
}

async function move(ask: Ask, destination: string, { moved, kept, gone }: Separated): Promise<void> {
  if (moved.length > 0) await ask(MOVE, MOVE.values({ destination, moved, kept, gone: int8s(gone) }))
}

/** Locks the rows and reads their parts, without rows that were claimed or cancelled meanwhile. */
async function lockedParts(ask: Ask, rows: readonly OrderedRow[]): Promise<Parsed[]> {
  const { rows: locked } = await ask<{ id: string }>(LOCK_ROWS, [int8s(rows.map(({ id }) => id))])
  const found = new Set(locked.map(({ id }) => id))
  const left = rows.filter(({ id }) => found.has(id))
  if (left.length === 0) return []
  return owedParts(
    ask,
    left.map((row) => ({ row, parts: JSON.parse(row.parts) as StoredPart<string>[] })),
  )
}

/** Without duplicates, which are absent from the segment. */
async function owedParts(ask: Ask, stored: readonly { row: OrderedRow; parts: StoredPart<string>[] }[]): Promise<Parsed[]> {
  const seqs = [...new Set(stored.flatMap(({ parts }) => parts.map(([, segment]) => segment)))]
  const { rows } = await ask<{ seq: string; absent: number[] | null }>(
    { name: 'order-absent', text: 'SELECT seq, absent FROM segments WHERE seq = ANY ($1::bigint[])' },
    [int8s(seqs)],
  )
  const absent = new Map(rows.map((segment) => [segment.seq, segment.absent]))
  return stored.map(({ row, parts }) => ({ row, parts: parts.map((part) => owedPart(part, 0, absent.get(part[1]) ?? null)) }))
}
