// Hosts with the test integration, on a real store: what a fault of one integration costs, and whom.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { subscriptionOf } from '../../destinations/fixtures/integration.ts'
import type { Destination, NewDestination, SegmentContent } from '../../store/store.ts'
import type { Receiver } from '../fixtures/receiver.ts'
import { type Rig, startRig } from '../fixtures/rig.ts'
import { hostProcesses, type TestHosts, testHosts } from '../fixtures/test-hosts.ts'

interface Setup extends TestHosts {
  rig: Rig
  receiver: Receiver
  tool: (name: string, change?: Partial<NewDestination>) => Promise<Destination>
}

async function setUp(t: TestContext, options: Parameters<typeof testHosts>[0] = {}): Promise<Setup> {
  const made = testHosts(options)
  const rig = await startRig(t, { hosts: made.hosts })
  const receiver = await rig.receiver()
  const tool = (name: string, change: Partial<NewDestination> = {}): Promise<Destination> => {
    return rig.destination(name, {
      type: 'integration',
      integration: { slug: 'tool', name: 'Tool' },
      settings: { url: receiver.url, apiKey: `secret of ${name}` },
      subscriptions: [subscriptionOf('all')],
      timeoutMs: 30_000,
      ...change,
    })
  }
  return { ...made, rig, receiver, tool }
}

/** Lets the time pass until nothing is pending. */
async function finish(rig: Rig, destination: Destination): Promise<void> {
  while ((await rig.ledger(destination)).pending > 0) {
    rig.clock.advance(10_000)
    await rig.untilStoreAnswered()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('integrations run in hosts, which are started when there is work', async (t) => {
  const { rig, receiver, tool } = await setUp(t)
  assert.deepEqual([...hostProcesses().keys()], [])
  const destination = await tool('one')
  await rig.until(() => rig.claims.length === 1)
  assert.deepEqual([...hostProcesses().keys()], [])
  await rig.accept([destination], 3)
  await rig.untilLedger(destination, { delivered: 3, pending: 0 })
  assert.equal(receiver.received.length, 3)
  assert.deepEqual([...hostProcesses().keys()], ['switchyard-host-1'])
  await rig.stop()
  assert.deepEqual([...hostProcesses().keys()], [])
})

test('a host that is killed in the middle of work is replaced: nothing is lost, and at most what was in flight is repeated', async (t) => {
  const { rig, receiver, tool, lost } = await setUp(t)
  const destination = await tool('one', { maxInFlight: 4 })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 10)
  await rig.untilLedger(destination, { delivered: 10 })
  receiver.answer = () => null
  await rig.accept([destination], 10)
  await rig.until(() => receiver.waiting === 4)
  const [pid] = hostProcesses().values()
  process.kill(pid as number, 'SIGKILL')
  receiver.answer = () => 200
  await finish(rig, destination)
  await rig.untilLedger(destination, { owed: 20, delivered: 20, pending: 0 })
  assert.deepEqual(lost, ['switchyard-host-1 ended unexpectedly, by the signal SIGKILL'])
  assert.ok(receiver.received.length <= 24, `${receiver.received.length} requests`)
  const failed = rig.attempts.flatMap(({ outcome }) => outcome.reason ?? [])
  assert.deepEqual(new Set(failed), new Set(['integration_crashed']))
})

test('deliveries that are in flight in a host when the service stops count as not started', async (t) => {
  const { rig, receiver, tool, lost } = await setUp(t)
  const destination = await tool('one', { maxInFlight: 4 })
  await rig.until(() => rig.claims.length === 1)
  receiver.answer = () => null
  await rig.accept([destination], 4)
  await rig.until(() => receiver.waiting === 4)
  await rig.stop(0)
  assert.deepEqual([rig.attempts.length, lost], [0, []])
  const { owed, pending } = await rig.ledger(destination)
  assert.deepEqual([owed, pending], [4, 4])
})

function reasonsOf(rig: Rig, { id }: Destination): (string | null)[] {
  return rig.attempts.filter(({ destination }) => destination.id === id).map(({ outcome }) => outcome.reason)
}

for (const fault of ['Exit', 'Throw', 'Bomb', 'Hang']) {
  test(`the fault of an integration (${fault}) costs another one at most one attempt, and webhooks nothing`, async (t) => {
    // All in one host. Only a fault that nothing else shows has to be noticed early, after 8 s: on a busy machine, a host that works may be silent for as long.
    const { rig, receiver, tool, lost } = await setUp(t, { count: 1, ...(fault === 'Hang' ? { silentChecks: 4 } : {}) })
    const webhook = await rig.destination('webhook', { urls: [receiver.url] })
    const [bad, good] = [await tool('bad'), await tool('good')]
    await rig.until(() => rig.claims.length === 3)
    receiver.answer = () => null
    await rig.accept([good], 1)
    await rig.until(() => receiver.waiting === 1)
    receiver.answer = () => 200
    await rig.accept([bad], 1, { event: fault })
    await rig.accept([webhook], 5)
    await rig.untilLedger(webhook, { delivered: 5 })
    await rig.until(() => lost.length === 1)
    await finish(rig, good)
    assert.deepEqual(reasonsOf(rig, good), ['sender_lost', null])
    // The culprit goes on in a host of its own, where it fails alone.
    while (lost.length < 2) {
      rig.clock.advance(10_000)
      await rig.untilStoreAnswered()
      await rig.accept([good, webhook], 1)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    await finish(rig, good)
    await finish(rig, webhook)
    assert.deepEqual(new Set(reasonsOf(rig, good).slice(1)), new Set([null]))
    assert.deepEqual(new Set(reasonsOf(rig, webhook)), new Set([null]))
    assert.deepEqual(reasonsOf(rig, bad).slice(0, 2), ['sender_lost', 'integration_crashed'])
    assert.match(lost[1] ?? '', /^switchyard-host-isolated-1 /)
    assert.equal((await rig.ledger(bad)).pending, 1)
  })
}

test('an unhandled rejection costs nothing, and what a host prints is logged without secrets', async (t) => {
  const { rig, tool, lost, printed } = await setUp(t)
  const destination = await tool('one')
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 1, { event: 'Reject' })
  await rig.accept([destination], 1, { event: 'Print' })
  await rig.untilLedger(destination, { delivered: 2, pending: 0 })
  await rig.stop()
  const all = printed.join('\n')
  assert.match(all, /rejected on purpose/)
  assert.match(all, /my settings are .*"apiKey":"\(hidden\)"/)
  assert.doesNotMatch(all, /secret of/)
  assert.deepEqual(lost, [])
})

test('a host that uses too much memory finishes its work and is replaced', async (t) => {
  const { rig, receiver, tool, lost } = await setUp(t, { maxRssBytes: 256 * 1024 * 1024 })
  const destination = await tool('one')
  await rig.until(() => rig.claims.length === 1)
  receiver.answer = () => null
  await rig.accept([destination], 4, { event: 'Leak' })
  await rig.until(() => receiver.waiting === 4)
  const [before] = hostProcesses().values()
  // Replaced at a check, every 2 s. The first one finishes what it has in flight.
  receiver.answer = () => 200
  let after = before
  while (after === before) {
    await rig.accept([destination], 1)
    await new Promise((resolve) => setTimeout(resolve, 100))
    after = [...hostProcesses().values()].find((pid) => pid !== before) ?? before
  }
  receiver.release()
  await finish(rig, destination)
  while (hostProcesses().size > 1) await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual([...hostProcesses().values()], [after])
  assert.deepEqual([new Set(reasonsOf(rig, destination)), lost], [new Set([null]), []])
})

test('a host without work ends after a while, and is started again when there is some', async (t) => {
  const { rig, tool, lost } = await setUp(t, { idleMs: 1 })
  const destination = await tool('one')
  await rig.until(() => rig.claims.length === 1)
  for (const delivered of [1, 2]) {
    await rig.accept([destination], 1)
    await rig.untilLedger(destination, { delivered })
    while (hostProcesses().size > 0) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.deepEqual(lost, [])
})

test('deliveries wait for the integrations package, and find it when it was installed', async (t) => {
  const installed = { is: false }
  const { rig, tool } = await setUp(t, { installed })
  const destination = await tool('one')
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 1)
  await rig.until(() => rig.attempts.length === 1)
  assert.match(rig.attempts[0]?.outcome.error ?? '', /not installed .* `switchyard catalog install`/)
  assert.deepEqual([...hostProcesses().keys()], [])
  installed.is = true
  await finish(rig, destination)
  await rig.untilLedger(destination, { delivered: 1 })
  assert.ok(
    reasonsOf(rig, destination)
      .slice(0, -1)
      .every((reason) => reason === 'integration_retry'),
  )
})

test('previews run in a host of their own: one that hangs delays no delivery', async (t) => {
  const { rig, tool } = await setUp(t, { count: 1 })
  const destination = await tool('one')
  await rig.until(() => rig.claims.length === 1)
  const hanging: SegmentContent = {
    sourceId: 's',
    receivedAtMs: 0,
    ip: null,
    browser: false,
    sentAt: null,
    context: null,
    integrations: null,
    trace: null,
    items: [{ type: 'track', event: 'Hang', messageId: 'm' }],
  }
  const previewed = rig.delivery.preview(destination, [hanging])
  await rig.until(() => hostProcesses().has('switchyard-host-preview-1'))
  await rig.accept([destination], 3)
  await rig.untilLedger(destination, { delivered: 3, pending: 0 })
  assert.deepEqual([...hostProcesses().keys()].sort(), ['switchyard-host-1', 'switchyard-host-preview-1'])
  assert.equal((await previewed)[0]?.kind, 'failed')
})
