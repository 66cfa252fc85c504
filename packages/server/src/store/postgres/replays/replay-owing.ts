// Owes deliveries once more, inside the transaction that has found they can be: the replays, their shipments and what the books
// are told, each in one statement however many there are. A delete message that is owed again opens its request again.

import type { OwedAgain } from '../../replays/replay-rows.ts'
import { LEDGER } from '../messages/owing.ts'
import { storedParts } from '../rows/rows.ts'
import { type RowIds, SKEW } from '../schema/ids.ts'
import type { Ask } from '../session/database.ts'

interface NewReplay {
  origin: string
  destination: string
  segment: string
  index: number
  replayOf: string
}

export async function oweAgain(
  ask: Ask,
  ids: RowIds,
  all: readonly OwedAgain<string>[],
  { job, atMs }: { job: string | null; atMs: number },
): Promise<string[]> {
  const replays: NewReplay[] = []
  const shipments: { id: string; destination: string; bytes: number; count: number; parts: string }[] = []
  const owed = new Map<string, number>()
  for (const { destination, segment, bytes, entries } of all) {
    const origin = ids.next()
    for (const { index, replayOf } of entries) replays.push({ origin, destination, segment, index, replayOf })
    const parts = storedParts([{ origin, segment, indexes: entries.map(({ index }) => index) }])
    shipments.push({ id: origin, destination, bytes, count: entries.length, parts })
    owed.set(destination, (owed.get(destination) ?? 0) + entries.length)
  }
  await ask(INSERT_REPLAYS, [
    replays.map(({ origin }) => origin),
    replays.map(({ index }) => index),
    replays.map(({ destination }) => destination),
    replays.map(({ segment }) => segment),
    replays.map(({ replayOf }) => replayOf),
    atMs,
    job,
  ])
  await ask(INSERT_SHIPMENTS, [
    shipments.map(({ id }) => id),
    shipments.map(({ destination }) => destination),
    shipments.map(({ count }) => count),
    shipments.map(({ bytes }) => bytes),
    shipments.map(({ parts }) => parts),
  ])
  await ask(INSERT_DELTAS, [[...owed].map(() => ids.next()), [...owed.keys()], [...owed.values()], LEDGER])
  await followDeletions(ask, replays)
  return shipments.map(({ id }) => id)
}

/** The target of a delete message follows its newest replay, whichever delivery that repeats, unless it was delivered before. */
async function followDeletions(ask: Ask, replays: readonly NewReplay[]): Promise<void> {
  // A delete message is alone in its segment.
  const first = replays.filter(({ index }) => index === 0)
  if (first.length === 0 || (await ask('SELECT 1 FROM deletion_targets LIMIT 1')).rows.length === 0) return
  const { rows } = await ask<{ deletion: string }>(FOLLOW, [
    first.map(({ origin }) => origin),
    first.map(({ replayOf }) => replayOf.split('-')[0] as string),
    first.map(({ segment }) => segment),
    first.map(({ destination }) => destination),
  ])
  if (rows.length === 0) return
  await ask('UPDATE deletions SET ended = NULL WHERE num = ANY($1::bigint[])', [rows.map(({ deletion }) => deletion)])
}

const FOLLOW = `
  WITH n AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS n (origin, repeated, segment, destination)
  ), before AS (
    SELECT n.origin AS newest, n.repeated AS origin FROM n
    UNION
    SELECT n.origin, r.origin FROM n JOIN replays r
      ON r.segment = n.segment AND r.idx = 0 AND r.destination = n.destination AND r.origin > n.segment - ${SKEW} AND r.origin <> n.origin
  )
  UPDATE deletion_targets t SET origin = before.newest, final = NULL FROM before
  WHERE t.origin = before.origin AND coalesce(t.final, 'failed') <> 'delivered'
    AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.origin = before.origin AND a.id > before.origin - ${SKEW} AND a.delivered > 0)
  RETURNING t.deletion`

const INSERT_REPLAYS = {
  name: 'replay_insert',
  text: `INSERT INTO replays (origin, idx, destination, segment, replay_of, at, job)
    SELECT n.*, $6, $7 FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::text[]) AS n`,
}

const INSERT_SHIPMENTS = {
  name: 'replay_insert_shipments',
  text: `INSERT INTO shipments (id, destination, count, bytes, parts, replay)
    SELECT n.*, true FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::integer[], $5::text[]) AS n`,
}

const INSERT_DELTAS = {
  name: 'replay_insert_deltas',
  text: `INSERT INTO deltas (id, kind, subject, counts)
    SELECT n.id, $4, n.destination, ARRAY[n.count, 0, n.count, 0, 0, 0]
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS n (id, destination, count)`,
}
