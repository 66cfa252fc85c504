// Takes nodes that have ended out of the table of nodes, and releases what they held. membership.ts decides which nodes have ended.

import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Ask, Database } from '../session/database.ts'
import { freePartitions, START_ORDERED_MS } from '../tables/partition-owners.ts'
import { WITH_HOLDERS } from '../tables/shipment-holders.ts'
import { HELD_LOCKS, type NodeLock } from './node-locks.ts'

/**
 * Releases what the node held, if its lock is still free and it has sent no heartbeat since. Its row stays until its lease expires:
 * if the process is still running after all, it may send until then, and deletion requests must wait for it.
 */
export async function releaseEnded(database: Database, { holder, expiresAtMs }: NodeLock): Promise<void> {
  await database.transaction(async (ask) => {
    await lockMembership(ask)
    const { count } = await ask(
      `UPDATE nodes SET holder = -holder WHERE holder = $1 AND (extract(epoch FROM expires_at) * 1000)::bigint = $2
         AND NOT EXISTS (SELECT FROM (${HELD_LOCKS}) l WHERE l.holder = $1)`,
      [holder, expiresAtMs],
    )
    if (count > 0) await release(ask, holder)
  })
}

export async function declareExpiredDead(database: Database): Promise<void> {
  await database.transaction(async (ask) => {
    await lockMembership(ask)
    const { rows } = await ask<{ num: number; holder: string }>('SELECT num, holder FROM nodes WHERE expires_at < now() FOR UPDATE')
    for (const { num, holder } of rows) await declareDead(ask, num, holder)
  })
}

/** `startsForMs`: for how long the node may still start ordered requests; 0 if it leaves by itself. */
export async function declareDead(ask: Ask, num: number, holder: string, startsForMs = START_ORDERED_MS): Promise<void> {
  await release(ask, holder, startsForMs)
  await ask('DELETE FROM nodes WHERE num = $1 AND holder = $2', [num, holder])
}

export async function releaseOrphans(database: Database): Promise<void> {
  const { rows } = await database.query<{ holder: string }>(
    `${WITH_HOLDERS} SELECT holder FROM holders h WHERE holder IS NOT NULL AND NOT EXISTS (SELECT FROM nodes n WHERE n.holder = h.holder)`,
  )
  // Partitions and the time until which the holder may have started requests change together.
  for (const { holder } of rows) await database.transaction((ask) => release(ask, holder))
}

/** No node joins or is declared dead until the transaction ends. */
export async function lockMembership(ask: Ask): Promise<void> {
  await ask('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.membership])
}

async function release(ask: Ask, holder: string, startsForMs = START_ORDERED_MS): Promise<void> {
  await freePartitions(ask, holder, startsForMs)
  await ask('UPDATE shipments SET holder = 0 WHERE holder = $1', [holder])
}
