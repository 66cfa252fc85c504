// Nodes are killed at any moment, one after another, while messages arrive: no acknowledged message is lost, and the other nodes deliver what a
// node held when it died as soon as its lease has expired.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG } from '../long-tests.ts'
import { RESUME_MS, startCluster } from './cluster.ts'
import { compareLedgers, describe, type Fault } from './compare-ledgers.ts'
import { holdMessage, startLoad } from './traffic.ts'

const KILLS = IS_LONG ? 20 : 2

test('repeated kill -9 of one of three nodes: nothing is lost, and others take over what it held within its lease + 5 s', async (t) => {
  await using cluster = await startCluster()
  await using load = await startLoad(cluster, { perSecond: IS_LONG ? 500 : 100 })
  const faults: Fault[] = []

  // A node that does not come back: only the others can deliver what it held.
  await load.traffic.more(200)
  await using held = await holdMessage(cluster, cluster.node(1).url, 'killed')
  const killedMs = performance.now()
  await cluster.node(1).kill()
  held.acceptRequests()
  const resumedMs = await held.deliveredAgain(killedMs, RESUME_MS)
  t.diagnostic(`another node delivered what the killed node held after ${(resumedMs / 1_000).toFixed(1)} s`)
  await cluster.node(1).start()
  faults.push({ fromMs: killedMs, toMs: performance.now() })

  // Nodes that are restarted at once.
  for (let kill = 1; kill <= KILLS; kill++) {
    await load.traffic.more(150 + 137 * (kill % 7))
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
