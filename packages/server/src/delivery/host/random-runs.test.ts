// Random operations on integrations: their subscriptions fail, recover, hang and are changed, and destinations are paused, disabled and changed.
// Afterwards every delivery has ended, the books agree, and no subscription has run again for a message after it succeeded.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { Integration, StepResult } from '@switchyard/integrations/runner'
import { subscriptionOf } from '../../destinations/fixtures/integration.ts'
import type { Destination, NewDestination, Subscription } from '../../store/store.ts'
import { inlineHosts } from '../fixtures/inline-hosts.ts'
import { randomFrom } from '../fixtures/random.ts'
import { startRig, unavailable } from '../fixtures/rig.ts'

const RUNS = Number(process.env['SWITCHYARD_UPHEAVALS'] ?? 3)
const FIRST_SEED = Number(process.env['SWITCHYARD_UPHEAVAL_SEED'] ?? 1)
const STEPS = 80
const SUCCESS: StepResult = { kind: 'success' }
const RESULTS: readonly StepResult[] = [
  SUCCESS,
  SUCCESS,
  { kind: 'status', status: 503, retryAfter: null, message: 'Unavailable.' },
  { kind: 'status', status: 429, retryAfter: '30', message: 'Too many.' },
  { kind: 'network', code: 'ECONNRESET', message: 'Reset.' },
  { kind: 'failed', code: 'invalid_payload', message: 'No url.' },
  { kind: 'failed', code: 'timeout', message: 'Late.' },
]
/** Stands for hosts: runs integrations in this process. A message succeeds for a subscription at most once. */
function runsHere(resultOf: () => StepResult, held: (() => void)[], hangs: () => boolean) {
  const succeeded = new Set<string>()
  const repeated: string[] = []
  const open = async (_slug: string, settings: object): Promise<Integration> => ({
    erase: null,
    async run({ action }, messages) {
      if (hangs()) await new Promise<void>((resolve) => held.push(resolve))
      const results = messages.map(({ messageId }) => {
        const result = resultOf()
        const key = `${JSON.stringify(settings)} ${action} ${String(messageId)}`
        if (succeeded.has(key)) repeated.push(key)
        if (result.kind === 'success') succeeded.add(key)
        return result
      })
      return { results, requests: [], logs: null }
    },
  })
  const hosts = inlineHosts(open)
  return { hosts, repeated, succeeded }
}

async function runRandomOperations(t: TestContext, seed: number): Promise<void> {
  const random = randomFrom(seed)
  const upTo = (count: number): number => Math.floor(random() * count)
  const oneOf = <T>(all: readonly T[]): T => all[upTo(all.length)] as T
  let isWell = false
  const held: (() => void)[] = []
  const { hosts, repeated, succeeded } = runsHere(
    () => (isWell ? SUCCESS : oneOf(RESULTS)),
    held,
    () => !isWell && random() < 0.2,
  )
  const rig = await startRig(t, { random, slots: 6, memoryBytes: 60_000, hosts })
  const release = (): void => {
    for (const resolve of held.splice(0)) resolve()
  }
  // Runs that hang must not keep the test from ending.
  t.after(release)
  const batchOf = (): NewDestination['batch'] => ({ size: 1 + upTo(5), bytes: 5_000, lingerMs: oneOf([0, 700]) })
  let lastId = 0
  const subscriptions = (): Subscription[] => {
    const kept = ['a', 'b', 'c'].filter(() => random() < 0.7).map((id) => subscriptionOf(id, { enabled: random() < 0.9 }))
    return random() < 0.3 ? [...kept, subscriptionOf(`new-${++lastId}`)] : kept
  }
  const destinations: Destination[] = []
  for (const name of ['one', 'two']) {
    destinations.push(
      await rig.destination(name, {
        type: 'integration',
        integration: { slug: 'tool', name: 'Tool' },
        settings: { name },
        subscriptions: [subscriptionOf('a'), subscriptionOf('b'), subscriptionOf('c', { subscribe: 'event = "Other"' })],
        timeoutMs: 30_000,
        batch: batchOf(),
        maxInFlight: 1 + upTo(5),
        retryWindowMs: oneOf([60_000, 4 * 3_600_000]),
      }),
    )
  }
  const change = (fields: Partial<NewDestination>): unknown => rig.store.resources.updateDestination(oneOf(destinations).id, fields)
  const acts: (() => unknown)[] = [
    () => rig.accept(destinations, 1 + upTo(12), { userId: `user-${upTo(4)}`, event: oneOf(['Tested', 'Other']) }),
    () => rig.accept([oneOf(destinations)], 1 + upTo(30)),
    () => rig.accept(destinations, 1, { type: 'delete' }),
    release,
    release,
    () => change({ enabled: random() < 0.6 }),
    () => change({ paused: random() < 0.4 }),
    () => change({ batch: batchOf() }),
    () => change({ subscriptions: subscriptions() }),
    () => rig.store.deletions.create({ userIds: [`user-${upTo(4)}`], sourceIds: null, suppress: false }),
    () => {
      rig.storeErrors[oneOf(['claim', 'settle'] as const)] = unavailable()
    },
    () => {
      delete rig.storeErrors.claim
      delete rig.storeErrors.settle
    },
    () => rig.clock.advance(oneOf([100, 1_000, 5_000, 60_000])),
    () => rig.clock.advance(oneOf([100, 1_000, 5_000])),
    () => rig.untilStoreAnswered(),
  ]
  for (let step = 0; step < STEPS; step++) {
    await oneOf(acts)()
    if (random() < 0.3) await rig.untilStoreAnswered()
  }

  isWell = true
  delete rig.storeErrors.claim
  delete rig.storeErrors.settle
  for (const { id, enabled, paused } of rig.store.configuration().destinations.values()) {
    if (!enabled || paused) await rig.store.resources.updateDestination(id, { enabled: true, paused: false })
  }
  let pending = 1
  for (let nth = 0; nth < 300 && (pending > 0 || rig.memory.heldBytes > 0); nth++) {
    release()
    rig.clock.advance(5_000)
    await rig.untilStoreAnswered()
    pending = (await rig.store.books.ledger()).reduce((sum, row) => sum + row.pending, 0)
  }
  assert.equal(pending, 0)
  await rig.untilIdle()
  assert.deepEqual(repeated, [])
  assert.ok(succeeded.size > 0)
  assert.ok(
    rig.troubles.every((error) => error instanceof Error && error.name === 'StoreUnavailable'),
    String(rig.troubles),
  )
  await rig.stop()
  assert.deepEqual([rig.memory.heldBytes, rig.slots.free, rig.clock.timers], [0, rig.slotCount, 0])
}

for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
  test(`after random operations on integrations, every delivery has ended and nothing that succeeded ran again (seed ${seed})`, (t) =>
    runRandomOperations(t, seed))
}
