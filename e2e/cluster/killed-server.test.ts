// The database is killed and restarted, or its standby takes over: the nodes answer 503 meanwhile, recover by themselves, and
// no acknowledged message is lost.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { IS_LONG, watchDelays } from '../system/long-tests.ts'
import { track } from '../system/service.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { compareLedgers, describe } from './compare-ledgers.ts'
import { enough, holdMessage, startLoad } from './traffic.ts'

const AWAY_MS = IS_LONG ? 20_000 : 5_000
const QUICK_KILLS = IS_LONG ? 20 : 3
const BEHIND_MS = 1_500
/** While the server is down, a call is answered within this time. */
const ANSWERED_MS = IS_LONG ? 15_000 : 60_000
/** Counted from when the server is available again. */
const BACK_MS = IS_LONG ? 10_000 : 60_000

test('kill -9 of PostgreSQL: 503 with Retry-After meanwhile, and the nodes recover by themselves with nothing lost', async (t) => {
  await using cluster = await startCluster()
  await using load = await startLoad(cluster, { perSecond: IS_LONG ? 1_000 : 100 })
  const holders = await holdersOf(cluster)
  using quiet = watchDelays()
  const fromMs = performance.now()
  // Killed at arbitrary moments of commits, and restarted at once.
  for (let kill = 1; kill <= QUICK_KILLS; kill++) {
    await load.traffic.more(enough(200 + 37 * kill))
    await cluster.killServer()
    await cluster.server.run()
  }
  await load.traffic.more(enough(300))
  // One node may accept messages before the others are ready.
  await areReady(cluster)
  await using held = await holdMessage(cluster, cluster.node(2).url, 'through the outage')

  const awayFromMs = performance.now()
  const away = sleep(AWAY_MS)
  await cluster.killServer()
  // The attempt in flight ends while its outcome cannot be recorded.
  held.answerHolder()
  await areUnavailable(cluster)
  await away
  const refused = load.traffic.calls.filter(({ status, startMs }) => status === 503 && startMs > awayFromMs)
  assert.ok(refused.length > 0)
  for (const { retryAfter } of refused) assert.match(retryAfter ?? '', /^[1-9]\d*$/)

  await cluster.server.run()
  const backMs = await areReady(cluster)
  t.diagnostic(`all nodes were ready ${Math.round(backMs)} ms after the server`)
  await load.traffic.more(enough(300))
  const comparison = await compareLedgers(cluster, load, { faults: [{ fromMs, toMs: performance.now() }] })
  t.diagnostic(describe(comparison))
  assert.equal(held.arrivals().length, 1, 'a delivery that ended during the outage is recorded afterwards, and not sent again')
  const ledger = await cluster.ledger()
  assert.equal(ledger.find(({ destinationId }) => destinationId === held.destinationId)?.delivered, 1)
  if (quiet.isSo()) assert.deepEqual(await holdersOf(cluster), holders, 'no node was declared dead')
})

test('the primary is killed and its synchronous standby promoted: the nodes fail over by themselves with nothing lost', async (t) => {
  await using cluster = await startCluster({ standby: true })
  await using load = await startLoad(cluster, { perSecond: IS_LONG ? 1_000 : 100 })
  await load.traffic.more(enough(300))
  const holders = await holdersOf(cluster)
  using quiet = watchDelays()

  const fromMs = performance.now()
  // Commits of the primary no longer reach the standby, so none of them may be acknowledged.
  cluster.replication.cut()
  await sleep(BEHIND_MS)
  await cluster.killServer()
  await areUnavailable(cluster)
  await cluster.promote()
  const backMs = await areReady(cluster)
  t.diagnostic(`all nodes were ready ${Math.round(backMs)} ms after the promotion`)
  await load.traffic.more(enough(300))
  const comparison = await compareLedgers(cluster, load, { faults: [{ fromMs, toMs: performance.now() }] })
  t.diagnostic(describe(comparison))
  if (quiet.isSo()) assert.deepEqual(await holdersOf(cluster), holders, 'no node was declared dead, although all of them lost their locks')
})

async function holdersOf(cluster: Cluster): Promise<string[]> {
  const rows = await cluster.query<{ holder: string }>('SELECT holder::text AS holder FROM switchyard.nodes ORDER BY num')
  return rows.map(({ holder }) => holder)
}

async function areUnavailable({ nodes, writeKey }: Cluster): Promise<void> {
  const answers = nodes.map(async (node) => {
    const since = performance.now()
    const response = await fetch(`${node.url}/v1/track`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${writeKey}:`)}`, 'content-type': 'application/json' },
      body: JSON.stringify(track(`refused by ${node.name}`)),
      signal: AbortSignal.timeout(ANSWERED_MS),
    })
    const body = (await response.json()) as { code?: string }
    assert.deepEqual(
      [response.status, body.code],
      [503, 'store_unavailable'],
      `${node.name} answered after ${performance.now() - since} ms`,
    )
    assert.match(response.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
    const ready = await node.readyz(ANSWERED_MS)
    assert.deepEqual([ready.status, ready.retryAfter], [503, '1'])
    // The node is healthy, so /healthz must not ask for a restart.
    assert.equal((await fetch(`${node.url}/healthz`)).status, 200)
  })
  await Promise.all(answers)
}

/** Returns the milliseconds until all of them are ready. */
async function areReady({ nodes }: Cluster): Promise<number> {
  return Math.max(...(await Promise.all(nodes.map((node) => node.becomes(200, { deadlineMs: BACK_MS })))))
}
