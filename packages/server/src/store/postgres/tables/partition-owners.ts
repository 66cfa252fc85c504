// The lock on the owners of partitions of ordered destinations, and what happens to the partitions of a node that was declared dead: see
// cluster/order-partitions.ts.

import { PARTITIONS } from '../../../model/order/order-key.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Ask } from '../session/database.ts'
import { UNDIVIDED } from './ordered-rows.ts'

/** How long after the last heartbeat a node may start ordered requests. Less than the lease, and more than two heartbeats that are late. */
export const START_ORDERED_MS = 3_000

/** Begins a claim. No node gets partitions, or takes or gives back any, while a claim is in progress. */
export const LOCK_FOR_CLAIM = `SELECT pg_advisory_xact_lock_shared(${ADVISORY_LOCKS.order})`

/** Waits for claims in progress, also those whose answer was lost. */
export async function lockOwners(ask: Ask): Promise<void> {
  await ask('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.order])
}

/** Takes the partitions from a node, which may start requests for some time. Must be called in the transaction that releases what it held, before that. */
export async function freePartitions(ask: Ask, holder: string, startsForMs: number): Promise<void> {
  await lockOwners(ask)
  const { count } = await ask('UPDATE order_partitions SET owner = 0 WHERE owner = $1', [holder])
  if (count === 0) return
  // Each partition once: the clock goes on while the rows are read, and an upsert with the same partition twice fails.
  await ask(
    `INSERT INTO order_waits (destination, part, started_until)
     SELECT h.destination, h.partition, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2::integer
     FROM (SELECT DISTINCT s.destination, p.partition FROM shipments s CROSS JOIN LATERAL (
         SELECT s.partition WHERE s.partition <> ${UNDIVIDED}
         UNION ALL SELECT (k.key::text::bigint % ${PARTITIONS})::integer FROM jsonb_path_query(s.parts::jsonb, '$[*][3][*]') AS k (key)
           WHERE s.partition = ${UNDIVIDED}) p
       WHERE s.holder = $1 AND s.attempt < 0) h
     ON CONFLICT (destination, part) DO UPDATE SET started_until = greatest(order_waits.started_until, excluded.started_until)`,
    [holder, startsForMs],
  )
}
