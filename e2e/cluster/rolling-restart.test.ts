// Every node is restarted, one after the other, as in an upgrade, while messages arrive: every failed call succeeds when retried,
// and nothing is sent twice, because no outcome was uncertain.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG, STOPPED_WITHIN_MS, watchDelays } from '../system/long-tests.ts'
import { startCluster } from './cluster.ts'
import { compareLedgers, describe } from './compare-ledgers.ts'
import { enough, startLoad } from './traffic.ts'

const ROUNDS = IS_LONG ? 5 : 1
/** The most tries of one call, including the first. */
const MOST_TRIES = 8

test('every node is restarted one by one under load: every failed call succeeds when retried, and nothing arrives twice', async (t) => {
  await using cluster = await startCluster()
  await using load = await startLoad(cluster)
  using quiet = watchDelays()
  const fromMs = performance.now()
  let slowestShutdownMs = 0
  for (let round = 1; round <= ROUNDS; round++) {
    for (const node of cluster.nodes) {
      await load.traffic.more(enough(200))
      const { code, signal, ms, stderr } = await node.stop()
      assert.deepEqual([code, signal], [0, null], stderr)
      slowestShutdownMs = Math.max(slowestShutdownMs, ms)
      assert.ok(ms < STOPPED_WITHIN_MS, `${node.name} ended after ${ms} ms`)
      await node.start()
      await node.becomes(200)
    }
  }
  await load.traffic.more(enough(200))
  // If a node gets no CPU time for as long as its lease, others send what it held.
  const comparison = await compareLedgers(cluster, load, { faults: quiet.isSo() ? [] : [{ fromMs, toMs: performance.now() }] })
  const tries = Math.max(...load.traffic.calls.map(({ nth }) => nth))
  t.diagnostic(`${describe(comparison)}; at most ${tries} tries; the slowest shutdown took ${Math.round(slowestShutdownMs)} ms`)
  assert.ok(tries <= MOST_TRIES, `a call was made ${tries} times`)
})
