// Ordered destinations on several nodes: partitions move when nodes are killed, frozen and started, and the receivers still get the messages of each
// user in the order in which they were accepted. See docs/decisions/0110-order.md.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { IS_LONG } from '../system/long-tests.ts'
import { type Arrival, type Receiver, startReceiver } from '../system/receiver.ts'
import { callControl, TOKEN } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { acceptedOf, assertOrdered, Users } from '../system/user-order.ts'
import { type Cluster, LEASE_MS, type Node, startCluster } from './cluster.ts'

const USERS = 20
const RETRY = { initialMs: 100, maxMs: 1_000, factor: 2 }
/** What a dead node held is attempted again after its last request has ended. */
const TIMEOUT_MS = 2_000
/** On a busy machine, requests reach their timeout, and keys wait for the next attempt. */
const DEADLINE_MS = 300_000

interface Ordered extends AsyncDisposable {
  receivers: readonly Receiver[]
  users: Users
  /** Sends messages until it is stopped: of each user the next one after the one before was acknowledged, to any node. */
  stop: () => Promise<void>
  /** Resolves when so many more messages were acknowledged. */
  more(count: number): Promise<void>
}

async function startOrdered(cluster: Cluster): Promise<Ordered> {
  await using started = new AsyncDisposableStack()
  const receivers: Receiver[] = []
  for (const settings of [{}, { batch: { size: 10, lingerMs: 20 } }]) {
    let count = 0
    // Slow enough that something is always in flight.
    const receiver = started.use(await startReceiver(() => ({ after: sleep(20), status: ++count % 10 === 0 ? 500 : 200 })))
    const body = {
      name: `ordered ${receivers.length}`,
      sourceIds: [cluster.sourceId],
      urls: [receiver.url],
      order: {},
      retry: RETRY,
      timeoutMs: TIMEOUT_MS,
      ...settings,
    }
    const { id } = await cluster.api<{ id: string }>('/destinations', { method: 'POST', body })
    await cluster.known(`/destinations/${id}`)
    receivers.push(receiver)
  }
  const users = new Users()
  const sending = { isStopped: false }
  let acknowledged = 0
  const sendAll = async (user: string, seed: number): Promise<void> => {
    for (let nth = seed; !sending.isStopped; nth++) {
      const batch = Array.from({ length: 1 + (nth % 3) }, () => users.message(user))
      // The same request again until it is acknowledged: what was stored is a duplicate then.
      for (let at = nth; !(await send(cluster, at, batch)); at++) await sleep(50)
      acknowledged += batch.length
      await sleep(30)
    }
  }
  const senders = Promise.all(Array.from({ length: USERS }, (_, at) => sendAll(`u${at}`, at)))
  const everything = started.move()
  const stop = async (): Promise<void> => {
    sending.isStopped = true
    await senders
  }
  return {
    receivers,
    users,
    stop,
    async more(count) {
      const from = acknowledged
      await eventually(
        async () => acknowledged - from,
        (more) => more >= count,
        { what: `${count} more messages are acknowledged`, deadlineMs: DEADLINE_MS },
      )
    },
    async [Symbol.asyncDispose]() {
      sending.isStopped = true
      await everything.disposeAsync()
    },
  }
}

async function send(cluster: Cluster, nth: number, batch: readonly object[]): Promise<boolean> {
  const urls = cluster.urls()
  try {
    const response = await fetch(`${urls[nth % urls.length]}/v1/batch`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${cluster.writeKey}:`)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ batch }),
      signal: AbortSignal.timeout(5_000),
    })
    await response.arrayBuffer()
    return response.status === 200
  } catch {
    return false
  }
}

async function assertAllInOrder(cluster: Cluster, { receivers, users, stop }: Ordered): Promise<void> {
  await stop()
  for (const receiver of receivers) {
    try {
      await receiver.until(() => acceptedOf(receiver) === users.total, { deadlineMs: DEADLINE_MS })
    } catch (error) {
      assertOrdered(receiver.arrivals, { afterDeath: true })
      throw new Error(`${users.total} messages were acknowledged. ${await pendingOf(cluster)}`, { cause: error })
    }
    assertOrdered(receiver.arrivals, { afterDeath: true })
  }
}

/** What is pending in the database, for the message of a failed test. */
async function pendingOf(cluster: Cluster): Promise<string> {
  const rows = await cluster.query(
    `SELECT s.destination::text, s.partition, s.attempt, s.holder::text, s.key::text, s.due::text, s.ord::text, s.count, p.owner::text, k.state, k.waiting::text
     FROM switchyard.shipments s LEFT JOIN switchyard.order_partitions p ON p.part = s.partition
     LEFT JOIN switchyard.order_keys k ON k.destination = s.destination AND k.key = coalesce(s.key, (s.parts::json->0->3->>0)::bigint) ORDER BY s.ord LIMIT 20`,
  )
  const keys = await cluster.query('SELECT destination::text, key::text, state, waiting::text FROM switchyard.order_keys LIMIT 20')
  const nodes = await cluster.query('SELECT num, holder::text FROM switchyard.nodes')
  return `Pending: ${JSON.stringify(rows)}. Keys: ${JSON.stringify(keys)}. Nodes: ${JSON.stringify(nodes)}`
}

/** How many partitions each node owns, most first. */
async function owners(cluster: Cluster): Promise<number[]> {
  const rows = await cluster.query<{ count: number }>(
    'SELECT count(*)::integer AS count FROM switchyard.order_partitions WHERE owner <> 0 GROUP BY owner ORDER BY 1 DESC',
  )
  return rows.map(({ count }) => count)
}

async function balanced(cluster: Cluster, wanted: readonly number[]): Promise<number> {
  const since = performance.now()
  await eventually(
    () => owners(cluster),
    (found) => found.join() === wanted.join(),
    { what: `the partitions are owned by ${wanted.join(' and ')}`, deadlineMs: DEADLINE_MS },
  )
  return performance.now() - since
}

test('kill -9 of a node, again and again: its partitions move, and every user is in order', async (t) => {
  await using cluster = await startCluster({ nodes: 2 })
  await using ordered = await startOrdered(cluster)
  await balanced(cluster, [8, 8])
  for (let kill = 0; kill < (IS_LONG ? 20 : 2); kill++) {
    await ordered.more(200)
    const node = cluster.node(1 + (kill % 2))
    await node.kill()
    t.diagnostic(`after a kill, the other node owned all partitions after ${Math.round(await balanced(cluster, [16]))} ms`)
    await node.start()
    t.diagnostic(`after a start, both nodes owned partitions after ${Math.round(await balanced(cluster, [8, 8]))} ms`)
  }
  await assertAllInOrder(cluster, ordered)
})

test('a node that is frozen for longer than its lease starts nothing of partitions that have moved', async (t) => {
  await using cluster = await startCluster({ nodes: 2 })
  await using ordered = await startOrdered(cluster)
  await balanced(cluster, [8, 8])
  await ordered.more(200)
  const node = cluster.node(1)
  node.freeze()
  t.diagnostic(`the other node owned all partitions after ${Math.round(await balanced(cluster, [16]))} ms`)
  await sleep(IS_LONG ? 3 * LEASE_MS : TIMEOUT_MS + 4_000)
  node.thaw()
  await balanced(cluster, [8, 8])
  await ordered.more(100)
  await assertAllInOrder(cluster, ordered)
})

/** The node that holds ordered work. */
async function holderOf(cluster: Cluster): Promise<Node> {
  const [row] = await cluster.query<{ started: string }>(
    `SELECT (extract(epoch FROM n.started_at) * 1000)::bigint::text AS started
     FROM switchyard.nodes n JOIN switchyard.shipments s ON s.holder = n.holder WHERE s.attempt < 0 ORDER BY s.ord LIMIT 1`,
  )
  for (const node of cluster.nodes) {
    const { data } = await callControl<{ data: { current: boolean; startedAt: string }[] }>(node.url, TOKEN, '/nodes')
    if (data.some(({ current, startedAt }) => current && Date.parse(startedAt) === Number(row?.started))) return node
  }
  throw new Error('no node holds ordered work')
}

test('a request that a killed node had started may arrive late, but before what the next owner starts', async () => {
  await using cluster = await startCluster({ nodes: 2 })
  let isSlow = true
  // The first request of each message is answered only after its node has died, as if it had arrived late.
  let answer = (): void => {}
  const late = new Promise<void>((resolve) => {
    answer = resolve
  })
  await using receiver = await startReceiver(() => (isSlow ? { after: late } : undefined))
  const body = { name: 'late', sourceIds: [cluster.sourceId], urls: [receiver.url], order: { by: 'source' }, timeoutMs: 5_000 }
  const { id } = await cluster.api<{ id: string }>('/destinations', { method: 'POST', body })
  await cluster.known(`/destinations/${id}`)
  const users = new Users()
  while (!(await send(cluster, 0, [users.message('a')]))) await sleep(50)
  await receiver.until(() => receiver.arrivals.length === 1, { deadlineMs: DEADLINE_MS })
  while (!(await send(cluster, 1, [users.message('a')]))) await sleep(50)
  const node = await holderOf(cluster)
  const killedMs = performance.now()
  await node.kill()
  isSlow = false
  await receiver.until(() => acceptedOf(receiver) === 2, { deadlineMs: DEADLINE_MS })
  const second = receiver.arrivals[1] as Arrival
  assert.ok(second.atMs - killedMs >= 4_500, `what was in flight was attempted again after ${Math.round(second.atMs - killedMs)} ms`)
  assert.deepEqual(
    receiver.arrivals.map(({ messages }) => messages[0]?.messageId),
    [users.id('a', 1), users.id('a', 1), users.id('a', 2)],
  )
  answer()
})

test('the number of messages without a key that every node shows is the sum of all nodes', async () => {
  await using cluster = await startCluster({ nodes: 2 })
  await using receiver = await startReceiver()
  const body = { name: 'keyless', sourceIds: [cluster.sourceId], urls: [receiver.url], order: { by: 'properties.account' } }
  const { id } = await cluster.api<{ id: string }>('/destinations', { method: 'POST', body })
  await cluster.known(`/destinations/${id}`)
  const users = new Users()
  const keyed = (): object => ({ ...users.message('a'), properties: { account: 'acme' } })
  for (const [nth, keyless] of [3, 5].entries()) {
    const batch = [keyed(), ...Array.from({ length: keyless }, () => users.message('a')), keyed()]
    while (!(await send(cluster, nth, batch))) await sleep(50)
  }
  for (const { name, url } of cluster.nodes) {
    const { keylessMessages } = await eventually(
      () => callControl<{ keylessMessages: number }>(url, TOKEN, `/destinations/${id}/order`),
      (order) => order.keylessMessages >= 3 + 5,
      { what: `${name} shows the messages without a key that both nodes accepted`, deadlineMs: DEADLINE_MS },
    )
    assert.equal(keylessMessages, 3 + 5)
  }
  await receiver.until(() => acceptedOf(receiver) === users.total, { deadlineMs: DEADLINE_MS })
})
