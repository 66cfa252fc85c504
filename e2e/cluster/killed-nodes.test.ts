// Nodes die at any moment, one after another, while messages come in: nothing that was acknowledged is lost, and what a node held
// when it died is brought by the others as soon as its lease has ended.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG } from '../long-tests.ts'
import { RESUME_MS, startCluster } from './cluster.ts'
import { compareLedgers, describe, type Fault } from './compare-ledgers.ts'
import { holdMessage, startLoad } from './traffic.ts'

const KILLS = IS_LONG ? 20 : 2

test('kill -9 of one of three nodes, again and again: nothing is lost, and others go on with what it held within its lease + 5 s', async (t) => {
  await using cluster = await startCluster()
  await using load = await startLoad(cluster, { perSecond: IS_LONG ? 500 : 100 })
  const faults: Fault[] = []

  // One that stays away: only the others can bring what it held.
  await load.traffic.more(200)
  await using held = await holdMessage(cluster, cluster.node(1).url, 'killed')
  const killedMs = performance.now()
  await cluster.node(1).kill()
  held.take()
  const resumedMs = await held.broughtAgain(killedMs, RESUME_MS)
  t.diagnostic(`what a killed node held was brought by another after ${(resumedMs / 1_000).toFixed(1)} s`)
  await cluster.node(1).start()
  faults.push({ fromMs: killedMs, toMs: performance.now() })

  // And those that come back at once.
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
