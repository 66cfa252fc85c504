// Inserts replays, and deliveries of messages that are released from quarantine, inside the transaction that has checked that the deliveries can be replayed: the replays, their shipments and the deltas of
// the ledger, each in one statement however many there are. Replaying a delete message reopens its deletion request.

import { storedParts } from '../../encoding/stored-parts.ts'
import { RELEASED } from '../../replays/replay-job-row.ts'
import type { OwedAgain } from '../../replays/replay-rows.ts'
import type { Ask } from '../session/database.ts'
import { plainColumns, type RowOf, statement } from '../session/row-parameters.ts'
import { type RowIds, SKEW } from '../tables/ids.ts'
import { LEDGER } from '../tables/ledger-deltas.ts'

const REPLAYS = plainColumns({
  origin: 'bigint',
  idx: 'integer',
  destination: 'bigint',
  segment: 'bigint',
  replay_of: 'text',
  state: 'text',
})

type NewReplay = RowOf<typeof REPLAYS>

export async function insertReplays(
  ask: Ask,
  ids: RowIds,
  all: readonly OwedAgain<string>[],
  { job, atMs }: { job: string | null; atMs: number },
): Promise<string[]> {
  const replays: NewReplay[] = []
  const shipments: { id: string; destination: string; bytes: number; count: number; parts: string; replay: boolean }[] = []
  const owed = new Map<string, number>()
  for (const { destination, segment, bytes, entries } of all) {
    const origin = ids.next()
    for (const { index, replayOf } of entries)
      replays.push({ origin, idx: index, destination, segment, replay_of: replayOf ?? '', state: replayOf === null ? RELEASED : null })
    const parts = storedParts([{ origin, segment, indexes: entries.map(({ index }) => index) }])
    shipments.push({ id: origin, destination, bytes, count: entries.length, parts, replay: entries[0]?.replayOf !== null })
    owed.set(destination, (owed.get(destination) ?? 0) + entries.length)
  }
  await ask(INSERT_REPLAYS, INSERT_REPLAYS.values({ replays, atMs, job }))
  await ask(INSERT_SHIPMENTS, INSERT_SHIPMENTS.values({ shipments }))
  const deltas = Array.from(owed, ([destination, count]) => ({ id: ids.next(), destination, count }))
  await ask(INSERT_DELTAS, INSERT_DELTAS.values({ deltas }))
  await followDeletions(ask, replays)
  return shipments.map(({ id }) => id)
}

/** Points the target of a delete message to its newest replay, whichever delivery that repeats, unless an earlier one was delivered. */
async function followDeletions(ask: Ask, replays: readonly NewReplay[]): Promise<void> {
  // A delete message is alone in its segment.
  const first = replays.filter(({ idx, state }) => idx === 0 && state !== RELEASED)
  if (first.length === 0 || (await ask('SELECT 1 FROM deletion_targets LIMIT 1')).rows.length === 0) return
  const { rows } = await ask<{ deletion: string }>(FOLLOW, FOLLOW.values({ first }))
  if (rows.length === 0) return
  await ask('UPDATE deletions SET ended = NULL WHERE num = ANY($1::bigint[])', [rows.map(({ deletion }) => deletion)])
}

const FOLLOW = statement({
  parameters: { first: REPLAYS },
  text: ({ first }) => `
  WITH n AS (
    SELECT * FROM ${first.as('n')}
  ), before AS (
    SELECT n.origin AS newest, split_part(n.replay_of, '-', 1)::bigint AS origin FROM n
    UNION
    SELECT n.origin, r.origin FROM n JOIN replays r
      ON r.segment = n.segment AND r.idx = 0 AND r.destination = n.destination AND r.origin > n.segment - ${SKEW} AND r.origin <> n.origin
  )
  UPDATE deletion_targets t SET origin = before.newest, final = NULL FROM before
  WHERE t.origin = before.origin AND coalesce(t.final, 'failed') <> 'delivered'
    AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.origin = before.origin AND a.id > before.origin - ${SKEW} AND a.delivered > 0)
  RETURNING t.deletion`,
})

const INSERT_REPLAYS = statement({
  name: 'replay_insert',
  parameters: { replays: REPLAYS, atMs: 'value', job: 'value' },
  text: ({ replays, atMs, job }) => `INSERT INTO replays (${replays.names}, at, job) SELECT n.*, ${atMs}, ${job} FROM ${replays.as('n')}`,
})

const INSERT_SHIPMENTS = statement({
  name: 'replay_insert_shipments',
  parameters: {
    shipments: plainColumns({ id: 'bigint', destination: 'bigint', bytes: 'integer', count: 'integer', parts: 'text', replay: 'boolean' }),
  },
  text: ({ shipments }) => `INSERT INTO shipments (${shipments.names}) SELECT * FROM ${shipments.as('n')}`,
})

const INSERT_DELTAS = statement({
  name: 'replay_insert_deltas',
  parameters: { deltas: plainColumns({ id: 'bigint', destination: 'bigint', count: 'bigint' }) },
  text: ({ deltas }) => `INSERT INTO deltas (id, kind, subject, counts)
    SELECT n.id, ${LEDGER}, n.destination, ARRAY[n.count, 0, n.count, 0, 0, 0] FROM ${deltas.as('n')}`,
})
