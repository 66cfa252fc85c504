import assert from 'node:assert/strict'
import test from 'node:test'
import { MAX_ENTRIES, type StateEntry } from '../../store/port/integration-state.ts'
import { HostedStates } from './hosted-state.ts'

const DAY_MS = 86_400_000

function setUp() {
  const asked: string[] = []
  const clock = { nowMs: 1_000_000 }
  const states = new HostedStates(
    (destinationId) => void asked.push(destinationId),
    () => clock.nowMs,
  )
  const stored = (key: string, more: Partial<StateEntry> = {}): StateEntry => {
    return { subscriptionId: 's', key, value: 'stored', setAtMs: clock.nowMs - 1, expiresAtMs: clock.nowMs + DAY_MS, ...more }
  }
  return { asked, clock, states, stored, of: (isTrial = false) => states.of('d', 's', isTrial) }
}

test('runs wait until the stored entries are known, which are requested once for all of them', async () => {
  const { asked, states, stored, of } = setUp()
  const runs = [states.read('d'), states.read('d')]
  assert.deepEqual(asked, ['d'])
  states.receive('d', [stored('a'), stored('a', { subscriptionId: 'other', value: 'of another subscription' })])
  await Promise.all(runs)
  assert.deepEqual([of().get('a'), of().get('b')], ['stored', undefined])
  // They are known now.
  await states.read('d')
  assert.deepEqual(asked, ['d'])
})

test('entries that cannot be read fail the runs that need them, and are requested again', async () => {
  const { asked, states } = setUp()
  const failing = assert.rejects(states.read('d'), /could not be read/)
  states.receive('d', null)
  await failing
  const next = states.read('d')
  assert.deepEqual(asked, ['d', 'd'])
  states.receive('d', [])
  await next
})

test('other runs see an entry as soon as it is set; a run that failed takes it back', () => {
  const { states, stored, of } = setUp()
  states.receive('d', [stored('a')])
  const { undo } = of().set('a', 'new', 1_000)
  assert.equal(of().get('a'), 'new')
  undo()
  assert.equal(of().get('a'), 'stored')
  const first = of().set('b', 'first', 1_000)
  of().set('b', 'second', 1_000)
  first.undo()
  assert.equal(of().get('b'), 'second', 'it was replaced')
})

test('an entry expires', () => {
  const { states, clock, of } = setUp()
  states.receive('d', [])
  of().set('a', 'x', 1_000)
  clock.nowMs += 999
  assert.equal(of().get('a'), 'x')
  clock.nowMs += 1
  assert.equal(of().get('a'), undefined)
})

test('what is stored replaces what was read before, except for entries of the last minute that may not be recorded yet', () => {
  const { states, clock, stored, of } = setUp()
  states.receive('d', [stored('deleted')])
  of().set('own', 'x', DAY_MS)
  states.receive('d', [])
  assert.deepEqual([of().get('deleted'), of().get('own')], [undefined, 'x'])
  clock.nowMs += 60_001
  states.receive('d', [])
  assert.equal(of().get('own'), undefined, 'it was deleted, or never recorded')
})

test('of one key that is stored for several users, the latest counts', () => {
  const { states, clock, stored, of } = setUp()
  const [early, late] = [stored('a', { value: 'early', setAtMs: clock.nowMs - 5 }), stored('a', { value: 'late' })]
  states.receive('d', [early, late])
  assert.equal(of().get('a'), 'late')
  states.receive('d', [late, early])
  assert.equal(of().get('a'), 'late')
})

test('a preview or a test reads the entries, and what it sets is forgotten', () => {
  const { states, stored, of } = setUp()
  states.receive('d', [stored('a')])
  const trial = of(true)
  trial.set('a', 'trial', 1_000)
  assert.deepEqual([trial.get('a'), of().get('a'), of(true).get('a')], ['trial', 'stored', 'stored'])
})

test('of too many entries, those that expire first are dropped, and not the one that was just set', () => {
  const { states, of } = setUp()
  states.receive('d', [])
  const state = of()
  for (let at = 0; at < MAX_ENTRIES; at++) state.set(`k${at}`, 'x', 10_000 + at)
  state.set('last', 'x', 1_000)
  assert.deepEqual([state.get('k0'), state.get(`k${MAX_ENTRIES - 1}`), state.get('last')], [undefined, 'x', 'x'])
})
