// What settlements change about the keys of ordered destinations that are not free, in the transaction of the settlements: see
// model/order/key-states.ts. The rows of the keys are locked first, so that a claim that puts messages behind those that wait comes before or after.

import { type KeyState, nextKeyState } from '../../../model/order/key-states.ts'
import type { OrderKey } from '../../../model/order/order-key.ts'
import { keyChanges, withoutSkipped } from '../../delivery/key-changes.ts'
import { countOf } from '../../encoding/settlement.ts'
import type { KeyChange, RowId, Settlement, ShipmentDraft } from '../../store.ts'
import type { Ask } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'

interface Settled {
  settlement: Settlement
  /** The destination's `num`. */
  destination: string
}

interface KeyRow {
  destination: string
  key: OrderKey
  state: KeyState
  since: number
  segment: RowId | null
  origin: RowId | null
  idx: number | null
  due: number | null
  attempts: number
  ended: 'failed' | 'expired' | null
  skip: boolean
  waiting: number
}

const NO_HEAD: Omit<KeyRow, 'destination' | 'key' | 'state' | 'since' | 'waiting'> = {
  segment: null,
  origin: null,
  idx: null,
  due: null,
  attempts: 0,
  ended: null,
  skip: false,
}

/** By destination and key. */
export type LockedKeys = Map<string, KeyRow>

type Changed = Map<string, KeyRow | { destination: string; key: OrderKey; state: 'free' }>

const KEYS = plainColumns({ destination: 'bigint', key: 'bigint' })

const LOCK = statement({
  name: 'order-lock',
  parameters: { keys: KEYS },
  text: ({
    keys,
  }) => `SELECT k.destination::text AS destination, k.key, k.state, k.since, k.segment::text AS segment, k.origin::text AS origin, k.idx,
      k.due, k.attempts, k.ended, k.skip, k.waiting
    FROM order_keys k WHERE (k.destination, k.key) IN (SELECT * FROM ${keys.unnest}) ORDER BY k.destination, k.key FOR UPDATE`,
})

const WRITE = statement({
  name: 'order-write',
  parameters: {
    gone: KEYS,
    rows: plainColumns({
      destination: 'bigint',
      key: 'bigint',
      state: 'text',
      since: 'bigint',
      segment: 'bigint',
      origin: 'bigint',
      idx: 'bigint',
      due: 'bigint',
      attempts: 'integer',
      ended: 'text',
      skip: 'boolean',
      waiting: 'bigint',
    }),
  },
  text: ({ gone, rows }) => `
WITH deleted AS (DELETE FROM order_keys WHERE (destination, key) IN (SELECT * FROM ${gone.unnest}))
INSERT INTO order_keys (${rows.names}) SELECT * FROM ${rows.unnest}
ON CONFLICT (destination, key) DO UPDATE SET state = excluded.state, since = excluded.since, segment = excluded.segment, origin = excluded.origin,
  idx = excluded.idx, due = excluded.due, attempts = excluded.attempts, ended = excluded.ended, skip = excluded.skip, waiting = excluded.waiting`,
})

/** Whether anything about keys changes. Nearly always false: messages that were never attempted before are delivered. */
export function hasKeyChanges({ done, kept, remaining, holds = [] }: Settlement): boolean {
  if (holds.length > 0 || remaining.some(({ order }) => order !== undefined)) return true
  const isBehind = (row: string | undefined): boolean => row === 'waiting' || row === 'head'
  return done.some(({ order }) => isBehind(order?.row)) || kept.some(({ shipment }) => isBehind(shipment.order?.row))
}

export async function lockKeys(ask: Ask, settled: readonly Settled[]): Promise<LockedKeys> {
  const wanted = new Map<string, { destination: string; key: OrderKey }>()
  for (const { settlement, destination } of settled) {
    for (const key of [...keyChanges(settlement).map((change) => change.key), ...endedOf(settlement).keys()])
      wanted.set(nameOf(destination, key), { destination, key })
  }
  const { rows } = await ask<KeyRow>(LOCK, LOCK.values({ keys: [...wanted.values()] }))
  return new Map(rows.map((row) => [nameOf(row.destination, row.key), row]))
}

/** The settlement without heads that an operator has ended while they were attempted: these end instead of being attempted again. */
export function withoutSkippedHeads(settlement: Settlement, destination: string, keys: LockedKeys): Settlement {
  if (![...keys.values()].some(({ skip }) => skip)) return settlement
  const remaining: ShipmentDraft[] = []
  const records = [...settlement.records]
  for (const draft of settlement.remaining) {
    const atMs = settlement.records[0]?.atMs ?? 0
    const isHead = draft.order?.row === 'head'
    const left = withoutSkipped(draft, atMs, (key) => isHead && keys.get(nameOf(destination, key))?.skip === true)
    if (left.draft !== null) remaining.push(left.draft)
    records.push(...left.records)
  }
  return { ...settlement, remaining, records }
}

/** What an operator changes about a key, in a transaction that has locked its row. */
export async function changeKey(ask: Ask, destination: string, change: KeyChange, atMs: number): Promise<void> {
  const { rows } = await ask<KeyRow>(LOCK, LOCK.values({ keys: [{ destination, key: change.key }] }))
  const changed: Changed = new Map()
  apply(new Map(rows.map((row) => [nameOf(row.destination, row.key), row])), changed, destination, change, Math.floor(atMs))
  await write(ask, changed)
}

/** Called after the rows of the shipments were written. */
export async function changeKeys(ask: Ask, settled: readonly Settled[], keys: LockedKeys): Promise<void> {
  const changed: Changed = new Map()
  for (const { settlement, destination } of settled) {
    const atMs = Math.floor(settlement.records[0]?.atMs ?? 0)
    for (const [key, count] of endedOf(settlement)) {
      const row = keys.get(nameOf(destination, key))
      if (row === undefined) continue
      row.waiting -= count
      changed.set(nameOf(destination, key), row)
    }
    for (const change of keyChanges(settlement)) apply(keys, changed, destination, change, atMs)
  }
  await write(ask, changed)
}

async function write(ask: Ask, changed: Changed): Promise<void> {
  const rows = [...changed.values()]
  const gone = rows.filter(({ state }) => state === 'free')
  await ask(WRITE, WRITE.values({ gone, rows: rows.filter((row): row is KeyRow => row.state !== 'free') }))
}

function apply(
  keys: LockedKeys,
  changed: Changed,
  destination: string,
  { key, event: asked, segment, origin, index, dueAtMs, attempts = 0, ended }: KeyChange,
  atMs: number,
): void {
  const name = nameOf(destination, key)
  const row = keys.get(name)
  const event = asked === 'retry' && row?.skip ? 'skipped' : asked
  const before = row?.state ?? 'free'
  let state = nextKeyState(before, event)
  if ((row?.waiting ?? 0) === 0) state = nextKeyState(state, 'emptied')
  if (state === 'free') {
    keys.delete(name)
    if (before !== 'free') changed.set(name, { destination, key, state })
    return
  }
  const since = row === undefined || row.state === 'draining' ? atMs : row.since
  const isHead = event === 'retry' || event === 'hold' || event === 'resumed'
  const due = dueAtMs === undefined ? null : Math.ceil(dueAtMs)
  const after: KeyRow = { destination, key, ...NO_HEAD, waiting: 0, ...row, state, since }
  if (isHead) Object.assign(after, { segment, origin, idx: index, due, attempts, ended: ended ?? null, skip: false })
  else if (state !== before) Object.assign(after, NO_HEAD)
  keys.set(name, after)
  changed.set(name, after)
}

/** How many messages that waited have ended, or are attempted as a head now, by key. */
function endedOf({ done, kept }: Settlement): Map<OrderKey, number> {
  const ended = new Map<OrderKey, number>()
  const add = (key: OrderKey | undefined, count: number): void => {
    if (key !== undefined) ended.set(key, (ended.get(key) ?? 0) + count)
  }
  for (const { order, parts } of done) add(order?.key, countOf({ parts }))
  for (const { shipment, parts } of kept) add(shipment.order?.key, countOf(shipment) - countOf({ parts }))
  return ended
}

function nameOf(destination: string, key: OrderKey): string {
  return `${destination} ${key}`
}
