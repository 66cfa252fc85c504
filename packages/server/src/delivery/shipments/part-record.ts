// What happened to the messages of one part of a shipment since its last settlement. Pure, like the task that fills these records.

import type { SegmentBody } from '../../store/port/stored-messages.ts'
import type { AttemptRecord, FinalState, RequestRecord, RowId, Shipment } from '../../store/store.ts'
import type { Outcome } from '../link/outcome.ts'

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
}

export interface UnitOutcome {
  url: string
  startedAtMs: number
  outcome: Outcome
  /** The version of the destination's content. */
  version: number
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

export function requestRecord({ url, startedAtMs, outcome, version }: UnitOutcome, indexes: readonly number[]): RequestRecord {
  const { status, reason, error, address, timings, responseStart, logs = null } = outcome
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
  }
}
