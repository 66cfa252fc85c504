// Hosts with the test integration, on a real store: what a fault of one integration costs, and whom.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { subscriptionOf } from '../../destinations/fixtures/integration.ts'
import type { Destination, NewDestination } from '../../store/store.ts'
import type { Receiver } from '../fixtures/receiver.ts'
import { type Rig, startRig } from '../fixtures/rig.ts'
import { hostProcesses, type TestHosts, testHosts } from '../fixtures/test-hosts.ts'
import type { HostsOptions } from './hosts.ts'

interface Setup extends TestHosts {
  rig: Rig
  receiver: Receiver
  tool: (name: string, change?: Partial<NewDestination>) => Promise<Destination>
}

async function setUp(t: TestContext, options: Partial<HostsOptions> = {}): Promise<Setup> {
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
