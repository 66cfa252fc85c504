// Every node is restarted, one after the other, as in an upgrade, while messages come in: whatever call fails is mended by a retry,
// and nothing is sent twice, for nothing was in doubt.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG } from '../long-tests.ts'
import { startCluster } from './cluster.ts'
import { compareLedgers, describe } from './compare-ledgers.ts'
import { startLoad } from './traffic.ts'

const ROUNDS = IS_LONG ? 5 : 1
/** What an orderly end may take, and some more on a busy machine. */
const END_MS = 12_000
/** Tries of one call, the first among them. */
const MOST_TRIES = 8

test('every node is restarted one by one under load: no call fails that a retry does not mend, and nothing arrives twice', async (t) => {
  await using cluster = await startCluster()
  await using load = await startLoad(cluster)
  let longestEndMs = 0
  for (let round = 1; round <= ROUNDS; round++) {
    for (const node of cluster.nodes) {
      await load.traffic.more(200)
      const { code, signal, ms, stderr } = await node.stop()
      assert.deepEqual([code, signal], [0, null], stderr)
      longestEndMs = Math.max(longestEndMs, ms)
      assert.ok(ms < END_MS, `${node.name} ended after ${ms} ms`)
      await node.start()
      await node.becomes(200)
    }
  }
  await load.traffic.more(200)
  const comparison = await compareLedgers(cluster, load)
  const tries = Math.max(...load.traffic.calls.map(({ nth }) => nth))
  t.diagnostic(`${describe(comparison)}; at most ${tries} tries; the longest end took ${Math.round(longestEndMs)} ms`)
  assert.ok(tries <= MOST_TRIES, `a call was made ${tries} times`)
})
