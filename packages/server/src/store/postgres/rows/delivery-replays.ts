// What a delivery repeats, and what repeats it.

import type { DeliveryRow } from '../../store.ts'
import { NEWEST, SKEW } from '../schema/ids.ts'
import type { Ask } from '../session/database.ts'

export interface NamedDelivery {
  origin: string
  index: number
  segment: string
  /** Its `num`. */
  destination: string
}

/** A delivery as a list finds it, before what only a look elsewhere can tell. */
export interface FoundDelivery extends NamedDelivery {
  state: DeliveryRow['state']
  reason: string | null
  attempts: number
  replay: boolean
  atMs: number | null
}

export type Replays = Pick<DeliveryRow, 'replayOf' | 'replayJobId' | 'replayedBy'>

/** Of each delivery, in order. A replay was made after the message came: so older days are not looked at. */
export async function replaysOf(ask: Ask, deliveries: readonly NamedDelivery[]): Promise<Replays[]> {
  if (deliveries.length === 0) return []
  const oldest = deliveries.reduce((least, { segment }) => (segment < least ? segment : least), NEWEST)
  const { rows } = await ask<{ newest: string | null; replay_of: string | null; job: string | null }>(
    `SELECT newest.origin AS newest, own.replay_of, j.id AS job
     FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS d(segment, idx, destination, origin, place)
     LEFT JOIN LATERAL (
       SELECT r.origin FROM replays r
       WHERE r.segment = d.segment AND r.idx = d.idx AND r.destination = d.destination AND r.origin > $5::bigint - ${SKEW}
       ORDER BY r.origin DESC LIMIT 1
     ) newest ON true
     LEFT JOIN LATERAL (
       SELECT r.replay_of, r.job FROM replays r WHERE r.origin = d.origin AND r.idx = d.idx AND newest.origin IS NOT NULL
     ) own ON true
     LEFT JOIN replay_jobs j ON j.num = own.job
     ORDER BY d.place`,
    [
      deliveries.map(({ segment }) => segment),
      deliveries.map(({ index }) => index),
      deliveries.map(({ destination }) => destination),
      deliveries.map(({ origin }) => origin),
      oldest,
    ],
  )
  return rows.map(({ newest, replay_of: replayOf, job: replayJobId }, at) => {
    const { origin, index } = deliveries[at] as NamedDelivery
    return { replayOf, replayJobId, replayedBy: newest !== null && newest > origin ? `${newest}-${index}` : null }
  })
}
