// What happened to the messages of one part of a shipment since its last settlement. Pure, like the task that fills these records.

import type { OrderKey } from '../../model/order/order-key.ts'
import type { SegmentBody } from '../../store/port/stored-messages.ts'
import type { AttemptRecord, FinalState, HeldKey, Part, RequestRecord, RowId, Shipment } from '../../store/store.ts'
import type { Outcome } from '../link/outcome.ts'
import type { Member } from './member.ts'
import { byPart } from './unit.ts'

/** The tables of a load in the records of all its parts but the first. */
const MAX_TABLES = 20

export interface PartRecord {
  shipment: Shipment
  /** Undefined if all of it was purged. */
  body: SegmentBody | undefined
  origin: RowId
  segment: RowId
  requests: RequestRecord[]
  delivered: number[]
  /** Deliveries that ended in another state, by state and reason. */
  ended: Map<string, FinalState & { indexes: number[] }>
  /** Messages that were purged before they were sent. */
  purged: number[]
  /** Messages that the store could not read. */
  unreadable: number[]
  /** By index, if the messages are delivered in order. */
  keys?: Map<number, OrderKey>
}

export function newRecord(shipment: Shipment, origin: RowId, segment: RowId, body: SegmentBody | undefined): PartRecord {
  return { shipment, body, origin, segment, requests: [], delivered: [], ended: new Map(), purged: [], unreadable: [] }
}

export interface UnitOutcome {
  url: string
  startedAtMs: number
  outcome: Outcome
  /** The version of the destination's content. */
  version: number
}

/** The given messages, grouped by part. */
export function partsOf(records: readonly PartRecord[], members: readonly Member[]): Part[] {
  return byPart(members).map(([part, indexes]) => {
    const { origin, segment, keys } = records[part] as PartRecord
    if (keys === undefined) return { origin, segment, indexes }
    return { origin, segment, indexes, keys: indexes.map((index) => keys.get(index) as OrderKey) }
  })
}

/** A message that the settings exclude did not fail. */
export function endOf(reason: string | null): 'cancelled' | 'failed' {
  return reason === 'dropped_by_transformation' || reason === 'no_subscription' ? 'cancelled' : 'failed'
}

export function end(record: PartRecord, state: FinalState['state'], reason: string, indexes: readonly number[]): void {
  const key = `${state} ${reason}`
  const ended = record.ended.get(key)
  if (ended) ended.indexes.push(...indexes)
  else record.ended.set(key, { state, reason, indexes: [...indexes] })
}

/** Returns what happened to the messages of a part since the last call, and clears it. */
export function takeRecords(record: PartRecord, atMs: number): AttemptRecord[] {
  const { shipment, origin, segment, requests, delivered, ended, purged, unreadable } = record
  const { attempt, replay } = shipment
  const records: AttemptRecord[] = []
  if (requests.length > 0 || delivered.length > 0 || ended.size > 0) {
    const finals: FinalState[] = [...ended.values()]
    if (delivered.length > 0) finals.unshift({ state: 'delivered', reason: null, indexes: delivered })
    records.push({ origin, segment, attempt: attempt + 1, replay, atMs, requests, finals })
  }
  // These messages were not attempted this time, so they have records of their own.
  const unsent = (state: FinalState['state'], reason: string, indexes: number[]): void => {
    if (indexes.length > 0) records.push({ origin, segment, attempt, replay, atMs, requests: [], finals: [{ state, reason, indexes }] })
  }
  unsent('cancelled', 'message_deleted', purged)
  unsent('failed', 'message_unreadable', unreadable)
  if (records.length > 0) Object.assign(record, { requests: [], delivered: [], ended: new Map(), purged: [], unreadable: [] })
  return records
}

/** `isFirst`: a load of many segments has many records, and only the first has more than its largest tables. */
export function requestRecord(
  { url, startedAtMs, outcome, version }: UnitOutcome,
  indexes: readonly number[],
  isFirst = true,
): RequestRecord {
  const { status, reason, error, address, timings, responseStart, logs = null, load } = outcome
  const { dnsMs, connectMs, tlsMs, firstByteMs, totalMs } = timings
  return {
    url,
    startedAtMs,
    status,
    reason,
    error,
    address,
    dnsMs,
    connectMs,
    tlsMs,
    firstByteMs,
    totalMs,
    responseStart,
    indexes,
    version,
    logs,
    ...(load !== undefined && { load: isFirst ? load : { ...load, tables: load.tables.slice(0, MAX_TABLES) } }),
  }
}

/** The keys that messages of these records hold: those that failed or expired. */
export function holdsOf({ keys, origin, segment }: PartRecord, records: readonly AttemptRecord[]): HeldKey[] {
  if (keys === undefined) return []
  return records.flatMap(({ attempt, finals }) =>
    finals.flatMap(({ state: ended, indexes }) => {
      if (ended !== 'failed' && ended !== 'expired') return []
      return indexes.map((index) => ({ key: keys.get(index) as OrderKey, origin, segment, index, attempts: attempt, ended }))
    }),
  )
}
