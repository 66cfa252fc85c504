// The network between one node and the database drops every packet: nothing is refused, and no connection is closed. The node answers 503
// within a bounded time, the others are unaffected, and they take over what it held when its lease has expired. After the network recovers, the node
// works again, and packets that arrive late change nothing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG, STOPPED_WITHIN_MS } from '../system/long-tests.ts'
import { track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { LEASE_MS, type Node, RESUME_DEADLINE_MS, RESUME_KILLED_MS, startCluster } from './cluster.ts'
import { compareLedgers, describe } from './compare-ledgers.ts'
import { enough, holdMessage, startLoad } from './traffic.ts'

/** What a busy machine may add. */
const BUSY_MS = IS_LONG ? 0 : 5_000
/** How long a call to a disconnected node may take before the node has noticed that it is disconnected. */
const BOUND_MS = 15_000 + BUSY_MS
/** How long a call may take afterwards. */
const KNOWN_MS = 7_000 + BUSY_MS
const READY_MS = 10_000 + BUSY_MS
const CUT_MS = IS_LONG ? 60_000 : LEASE_MS + 3_000
/** If the others waited for the disconnected node, it would be until its lease expires. */
const OTHERS_P99_MS = IS_LONG ? 2_000 : LEASE_MS / 2
/** Longer than the timeout of any statement. */
const ANSWERS_LOST_MS = 14_000

test('a node that is disconnected from the database answers 503 in time, others are unaffected, and it recovers afterwards', async (t) => {
  await using cluster = await startCluster({ proxied: true })
  const node = cluster.node(1)
  const others = [cluster.node(2), cluster.node(3)]
  // The disconnected node is called separately, so that a retry on another node cannot hide an error of the others.
  await using load = await startLoad(cluster, { targets: () => others.map(({ url }) => url), timeoutMs: 30_000 })
  await load.traffic.more(enough(200))
  // On a very busy machine, the store may refuse a call.
  const accepted = (name: string) =>
    eventually(
      () => ask(node, name),
      ({ status }) => status === 200,
    )
  for (let nth = 1; nth <= 20; nth++) await accepted(`before-${nth}`)

  await using held = await holdMessage(cluster, node.url, 'cut off')

  const fromMs = performance.now()
  node.proxy.cut()
  // The disconnected node delivers this message. It tries to record that as long as it runs, and must not succeed when it can connect again.
  held.acceptRequests()
  held.answerHolder()
  const first = await ask(node, 'first')
  assert.equal(first.status, 503)
  assert.ok(first.ms < BOUND_MS, `the first call was answered after ${first.ms} ms`)
  const again = await ask(node, 'again')
  assert.equal(again.status, 503)
  assert.match(again.retryAfter ?? '', /^[1-9]\d*$/)
  assert.ok(again.ms < KNOWN_MS, `the next call was answered after ${again.ms} ms`)
  const ready = await node.readyz()
  assert.equal(ready.status, 503)
  assert.ok(ready.ms < READY_MS, `/readyz was answered after ${ready.ms} ms`)
  t.diagnostic(`503 after ${Math.round(first.ms)} ms, then after ${Math.round(again.ms)} ms; /readyz after ${Math.round(ready.ms)} ms`)

  const resumedMs = await held.deliveredAgain(fromMs, RESUME_DEADLINE_MS)
  t.diagnostic(`another node delivered what it held after ${(resumedMs / 1_000).toFixed(1)} s`)
  assert.ok(resumedMs > RESUME_KILLED_MS, 'the server still has its sessions, so the other nodes wait until its lease has expired')
  await load.traffic.until(() => performance.now() - fromMs > CUT_MS)
  node.proxy.heal()
  const backMs = await node.becomes(200, { deadlineMs: RESUME_DEADLINE_MS })
  t.diagnostic(`ready ${Math.round(backMs)} ms after the network recovered`)
  const toMs = performance.now()
  const late = ['first', 'again', 'after']
  for (const name of late) await accepted(name)
  for (const { receiver } of load.receivers) await receiver.until(() => late.every((name) => receiver.byMessageId.has(name)))

  // On the other nodes, no call failed or was slow.
  const during = load.traffic.calls.filter(({ startMs }) => startMs > fromMs && startMs < toMs)
  assert.deepEqual(during.filter(({ status }) => status !== 200).slice(0, 5), [])
  const slow = during.map(({ ms }) => ms).sort((a, b) => a - b)
  const p99 = slow[Math.floor(slow.length * 0.99)] ?? Number.NaN
  t.diagnostic(`the others answered ${during.length} calls meanwhile, p99 ${Math.round(p99)} ms`)
  assert.ok(p99 < OTHERS_P99_MS, `p99 of the others was ${p99} ms`)

  for (const name of ['first', 'again', 'after', ...Array.from({ length: 20 }, (_, at) => `before-${at + 1}`)]) {
    load.traffic.sent.add(name)
    load.traffic.acknowledged.add(name)
  }
  const comparison = await compareLedgers(cluster, load, { faults: [{ fromMs, toMs }] })
  t.diagnostic(describe(comparison))
  const row = (await cluster.ledger()).find(({ destinationId }) => destinationId === held.destinationId)
  assert.deepEqual([row?.owed, row?.delivered], [1, 1])

  async function ask({ url }: Node, messageId: string): Promise<{ status: number; ms: number; retryAfter: string | null }> {
    const since = performance.now()
    const response = await fetch(`${url}/v1/track`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${cluster.writeKey}:`)}`, 'content-type': 'application/json' },
      body: JSON.stringify(track(messageId)),
      signal: AbortSignal.timeout(60_000),
    })
    await response.text()
    return { status: response.status, ms: performance.now() - since, retryAfter: response.headers.get('retry-after') }
  }
})

test('a node that gets SIGTERM while the database does not answer exits within 10 s, and another node sends what it held', async (t) => {
  await using cluster = await startCluster({ nodes: 2, proxied: true })
  const node = cluster.node(1)
  await using held = await holdMessage(cluster, node.url, 'not settled')
  node.proxy.cut()
  const { code, ms } = await node.stop()
  t.diagnostic(`ended after ${Math.round(ms)} ms`)
  // It could neither record outcomes nor release what it held.
  assert.equal(code, 6)
  assert.ok(ms < STOPPED_WITHIN_MS, `it took ${ms} ms`)
  held.acceptRequests()
  await held.deliveredAgain(performance.now(), RESUME_DEADLINE_MS)
})

test('the responses of the database are lost: what it committed anyway is neither lost, nor done twice, nor left pending', async (t) => {
  // A single node, so that no other node can take over its work.
  await using cluster = await startCluster({ nodes: 1, proxied: true })
  const node = cluster.node(1)
  const failed = new Set<string>()
  // One in four is attempted twice, so that there is always something to claim.
  await using load = await startLoad(cluster, { timeoutMs: 30_000 })
  for (const { receiver, name } of load.receivers) {
    receiver.answer = ({ messages }) => {
      const fresh = messages.filter(
        ({ messageId = '' }) => Number(messageId.slice('m-'.length)) % 4 === 0 && !failed.has(`${name} ${messageId}`),
      )
      for (const { messageId } of fresh) failed.add(`${name} ${messageId}`)
      return fresh.length > 0 ? { status: 503 } : undefined
    }
  }
  await load.traffic.more(enough(400))
  const fromMs = performance.now()
  node.proxy.cut('answers')
  await node.becomes(503)
  await load.traffic.until(() => performance.now() - fromMs > ANSWERS_LOST_MS, { what: 'time passes while calls are made' })
  node.proxy.heal()
  await node.becomes(200, { deadlineMs: RESUME_DEADLINE_MS })
  const toMs = performance.now()
  await load.traffic.more(enough(100))
  const comparison = await compareLedgers(cluster, load, { faults: [{ fromMs, toMs }], deadlineMs: 45_000 })
  t.diagnostic(describe(comparison))
})
