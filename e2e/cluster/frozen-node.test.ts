// A node is frozen for longer than its lease, as when its machine is paused, and then continues as if nothing had
// happened: the other nodes have taken over its work, and it cannot settle any of it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { IS_LONG } from '../system/long-tests.ts'
import { eventually } from '../system/signals.ts'
import { LEASE_MS, RESUME_DEADLINE_MS, startCluster } from './cluster.ts'
import { compareLedgers, describe, timedOut } from './compare-ledgers.ts'
import { enough, holdMessage, startLoad } from './traffic.ts'

const FROZEN_MS = IS_LONG ? 60_000 : LEASE_MS + 4_000

test('SIGSTOP of a node for longer than its lease, then SIGCONT: it cannot settle what others have taken over, and continues to work', async (t) => {
  await using cluster = await startCluster()
  await using load = await startLoad(cluster)
  const node = cluster.node(1)
  await load.traffic.more(enough(300))
  await using held = await holdMessage(cluster, node.url, 'frozen')

  const fromMs = performance.now()
  const frozen = sleep(FROZEN_MS)
  node.freeze()
  held.acceptRequests()
  const resumedMs = await held.deliveredAgain(fromMs, RESUME_DEADLINE_MS)
  t.diagnostic(`another node delivered what the frozen node held after ${(resumedMs / 1_000).toFixed(1)} s`)
  const settled = await eventually(
    async () => await outcomesOf(held.destinationId),
    (rows) => rows.length === 1,
    { what: 'the other node has settled it' },
  )
  await frozen
  // After it wakes up, its attempt ends by this answer or by its own timeout. It must not record that any more.
  held.answerHolder()
  await held.receiver.until(() => held.receiver.arrivals[0]?.status === 200)
  // Several requests arrive at the moment in which it learns that it was declared dead. It must join again only once.
  const asked = Array.from({ length: 5 }, () => node.readyz())
  node.thaw()
  await Promise.all(asked)
  await node.becomes(200)
  const nodes = await cluster.query<{ num: number }>('SELECT num FROM switchyard.nodes ORDER BY num')
  assert.equal(nodes.length, cluster.nodes.length, `the numbers in use are ${nodes.map(({ num }) => num).join()}`)
  const toMs = performance.now()
  await load.traffic.until(
    () => load.traffic.calls.filter(({ target, status, startMs }) => target === node.url && status === 200 && startMs > toMs).length >= 20,
    { what: 'the node acknowledges messages again' },
  )

  const comparison = await compareLedgers(cluster, load, { faults: [{ fromMs, toMs }] })
  t.diagnostic(describe(comparison))
  assert.deepEqual(await outcomesOf(held.destinationId), settled, 'the outcome is still the one that the other node recorded')
  assert.equal(held.arrivals().length, 2 + (await timedOut(cluster, held.destinationId, held.messageId)))

  function outcomesOf(destinationId: string): Promise<{ id: string; delivered: number }[]> {
    return cluster.query(
      `SELECT a.id::text AS id, a.delivered FROM switchyard.attempts a JOIN switchyard.destinations d ON d.num = a.destination
       WHERE d.id = $1 ORDER BY a.id`,
      [destinationId],
    )
  }
})
