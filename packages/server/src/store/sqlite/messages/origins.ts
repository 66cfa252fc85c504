// From the name of a delivery to what it stands for. A shipment's number follows its segment's, so the segment is the last
// one before it; replays have rows of their own. Nothing has to be indexed by delivery.

import type { DatabaseSync } from 'node:sqlite'
import { type OriginState, originStateOf } from '../../replays/origin-state.ts'
import type { Routes } from './write-accept.ts'

export interface Origin {
  destination: number
  segment: number
  /** 0: all of the segment. */
  indexes: readonly number[] | 0
  replay: boolean
}

export function resolveOrigin(database: DatabaseSync, origin: number): Origin | undefined {
  const replays = database.prepare('SELECT destination, segment, idx FROM replays WHERE origin = ? ORDER BY idx').all(origin) as {
    destination: number
    segment: number
    idx: number
  }[]
  if (replays[0]) {
    const { destination, segment } = replays[0]
    return { destination, segment, indexes: replays.map(({ idx }) => idx), replay: true }
  }
  const row = database.prepare('SELECT seq, routes FROM segments WHERE seq < ? ORDER BY seq DESC LIMIT 1').get(origin) as
    | { seq: number; routes: string }
    | undefined
  const route = row && (JSON.parse(row.routes) as Routes).s.find(([, id]) => id === origin)
  return row && route ? { destination: route[0], segment: row.seq, indexes: route[2], replay: false } : undefined
}

export function stateOf(database: DatabaseSync, origin: number, index: number): OriginState {
  const rows = database.prepare('SELECT at, attempt, doc FROM attempts WHERE origin = ? ORDER BY id').all(origin) as {
    at: number
    attempt: number
    doc: string
  }[]
  return originStateOf(rows, index)
}
