// Nodes are killed at any moment, one after another, while messages arrive: no acknowledged message is lost. What a node held when it died is
// delivered by another node, or by the same node after a restart, without waiting for its lease.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG } from '../system/long-tests.ts'
import { eventually } from '../system/signals.ts'
import { type Cluster, RESUME_KILLED_DEADLINE_MS, startCluster } from './cluster.ts'
import { compareLedgers, describe, type Fault } from './compare-ledgers.ts'
import { enough, holdMessage, startLoad } from './traffic.ts'

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
  const resumedMs = await held.deliveredAgain(killedMs, RESUME_KILLED_DEADLINE_MS)
  t.diagnostic(`another node delivered what the killed node held after ${(resumedMs / 1_000).toFixed(1)} s`)
  await cluster.node(1).start()
  faults.push({ fromMs: killedMs, toMs: performance.now() })

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
  assert.equal(held.arrivals().length, 2)
})

test('kill -9 of the only node, and a restart: it delivers what it held without waiting for its own lease', async (t) => {
  await using cluster = await startCluster({ nodes: 1 })
  const node = cluster.node(1)
  await using held = await holdMessage(cluster, node.url, 'restarted')
  await announced(cluster)
  const killedMs = performance.now()
  await node.kill()
  held.acceptRequests()
  await node.start()
  const readyMs = performance.now()
  const fromKillMs = await held.deliveredAgain(killedMs, RESUME_KILLED_DEADLINE_MS)
  t.diagnostic(
    `delivered ${Math.round(fromKillMs)} ms after the kill, ${Math.round(fromKillMs - (readyMs - killedMs))} ms after it was ready`,
  )
  const [row] = await eventually(
    async () => (await cluster.ledger()).filter(({ destinationId }) => destinationId === held.destinationId),
    ([one]) => one?.pending === 0,
    { what: 'the delivery is recorded' },
  )
  assert.deepEqual([row?.owed, row?.delivered], [1, 1])
  assert.equal(held.arrivals().length, 2)
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
