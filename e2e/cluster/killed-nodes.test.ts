// Nodes are killed at any moment, one after another, while messages arrive: no acknowledged message is lost. What a node held when it died is
// delivered by another node, or by the same node after a restart, without waiting for its lease.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG } from '../system/long-tests.ts'
import { eventually } from '../system/signals.ts'
import { type Cluster, RESUME_DEADLINE_MS, RESUME_KILLED_MS, startCluster } from './cluster.ts'
import { compareLedgers, describe, type Fault, timedOut } from './compare-ledgers.ts'
import { enough, type HeldMessage, holdMessage, startLoad } from './traffic.ts'

const KILLS = IS_LONG ? 20 : 2
const ENDED_SESSIONS = IS_LONG ? 20 : 4

test('repeated kill -9 of one of three nodes: nothing is lost, and others take over what it held long before its lease expires', async (t) => {
  await using cluster = await startCluster()
  await using load = await startLoad(cluster, { perSecond: IS_LONG ? 500 : 100 })
  const faults: Fault[] = []

  // A node that does not come back: only the others can deliver what it held.
  await load.traffic.more(enough(200))
  await using held = await holdMessage(cluster, cluster.node(1).url, 'killed')
  const killedMs = performance.now()
  await cluster.node(1).kill()
  held.acceptRequests()
  await extendLease(cluster, held)
  const resumedMs = await held.deliveredAgain(killedMs, RESUME_DEADLINE_MS)
  assert.ok(resumedMs < RESUME_KILLED_MS || !IS_LONG, `another node delivered what it held after ${resumedMs} ms`)
  t.diagnostic(`another node delivered what the killed node held after ${(resumedMs / 1_000).toFixed(1)} s`)
  await cluster.node(1).start()
  faults.push({ fromMs: killedMs, toMs: performance.now() })
  // Before the next kill: if a node is killed before it has recorded a delivery, the delivery is sent again.
  await isRecorded(cluster, held)

  // Nodes that are restarted at once.
  for (let kill = 1; kill <= KILLS; kill++) {
    await load.traffic.more(enough(150 + 137 * (kill % 7)))
    const node = cluster.node(1 + (kill % 3))
    const fromMs = performance.now()
    await node.kill()
    await node.start()
    faults.push({ fromMs, toMs: performance.now() })
  }
  const comparison = await compareLedgers(cluster, load, { faults })
  t.diagnostic(describe(comparison))
  assert.equal(held.arrivals().length, 2 + (await timedOut(cluster, held.destinationId, held.messageId)))
})

test('kill -9 of the only node, and a restart: it delivers what it held without waiting for its own lease', async (t) => {
  await using cluster = await startCluster({ nodes: 1 })
  const node = cluster.node(1)
  await using held = await holdMessage(cluster, node.url, 'restarted')
  await announced(cluster)
  const killedMs = performance.now()
  await node.kill()
  held.acceptRequests()
  await extendLease(cluster, held)
  await node.start()
  const readyMs = performance.now()
  const fromKillMs = await held.deliveredAgain(killedMs, RESUME_DEADLINE_MS)
  assert.ok(fromKillMs < RESUME_KILLED_MS || !IS_LONG, `it delivered what it held after ${fromKillMs} ms`)
  t.diagnostic(
    `delivered ${Math.round(fromKillMs)} ms after the kill, ${Math.round(fromKillMs - (readyMs - killedMs))} ms after it was ready`,
  )
  const row = await isRecorded(cluster, held)
  assert.deepEqual([row?.owed, row?.delivered], [1, 1])
  assert.equal(held.arrivals().length, 2 + (await timedOut(cluster, held.destinationId, held.messageId)))
})

test('the sessions by which nodes notice that another has ended are terminated again and again: nothing is lost or recorded twice', async (t) => {
  await using cluster = await startCluster()
  await using load = await startLoad(cluster)
  await announced(cluster)
  const fromMs = performance.now()
  for (let time = 1; time <= ENDED_SESSIONS; time++) {
    await load.traffic.more(enough(100))
    // Those of all nodes at once, every second time.
    const ended = await cluster.query<{ pid: number }>(
      `SELECT pid, pg_terminate_backend(pid) FROM pg_locks l JOIN switchyard.nodes n ON (l.classid::bigint << 32) | l.objid::bigint = n.holder
       WHERE locktype = 'advisory' ORDER BY num LIMIT $1`,
      [time % 2 === 0 ? null : 1],
    )
    t.diagnostic(`terminated ${ended.length} sessions`)
    await announced(cluster)
  }
  const comparison = await compareLedgers(cluster, load, { faults: [{ fromMs, toMs: performance.now() }] })
  t.diagnostic(describe(comparison))
  assert.equal((await cluster.api<{ data: unknown[] }>('/nodes')).data.length, 3)
})

/** The ledger of the held message's destination, once nothing is pending. */
async function isRecorded(cluster: Cluster, { destinationId }: HeldMessage) {
  const own = async () => (await cluster.ledger()).filter((row) => row.destinationId === destinationId)
  const [row] = await eventually(own, ([one]) => one?.pending === 0, { what: 'the delivery is recorded' })
  return row
}

/** Extends the lease of the killed node far beyond the test's patience: others can take over what it held only because it has no lock any more. */
async function extendLease(cluster: Cluster, { destinationId }: HeldMessage): Promise<void> {
  await cluster.query(
    `UPDATE switchyard.nodes SET expires_at = now() + interval '10 minutes' WHERE holder IN
       (SELECT holder FROM switchyard.shipments WHERE destination = (SELECT num FROM switchyard.destinations WHERE id = $1))`,
    [destinationId],
  )
}

/** Every node holds its lock, and the others know that. */
async function announced(cluster: Cluster): Promise<void> {
  await eventually(
    () =>
      cluster.query(
        `SELECT FROM switchyard.nodes n JOIN pg_locks l ON l.locktype = 'advisory' AND (l.classid::bigint << 32) | l.objid::bigint = n.holder
         WHERE n.doc LIKE '%lockedIn%'`,
      ),
    (rows) => rows.length === cluster.nodes.length,
    { what: 'every node holds its lock' },
  )
}
