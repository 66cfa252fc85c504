import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeSummary, ServerFacts } from '../../store/store.ts'
import { checkNodes, checkServer } from './diagnose-server.ts'

const WELL: ServerFacts = {
  version: '17.2',
  clockAheadMs: 12,
  connections: { used: 20, max: 97 },
  synchronousStandbys: '',
  standbys: [],
}

const states = (facts: Partial<ServerFacts>): Record<string, string> =>
  Object.fromEntries(checkServer({ ...WELL, ...facts }).map(({ name, state }) => [name, state]))

test('a healthy server has only good results', () => {
  assert.deepEqual(states({}), { server_clock: 'good', server_connections: 'good' })
})

test('a wrong clock and too few connections are warnings', () => {
  assert.equal(states({ clockAheadMs: -60_000 })['server_clock'], 'warning')
  assert.match(checkServer({ ...WELL, clockAheadMs: -60_000 })[0]?.message ?? '', /60 s behind/)
  assert.equal(states({ connections: { used: 90, max: 97 } })['server_connections'], 'warning')
})

test('a missing synchronous standby is bad; a standby that is far behind is a warning', () => {
  const standby = { name: 'b', state: 'streaming', sync: 'sync', lagMs: 5 }
  assert.equal(states({ synchronousStandbys: 'b' })['server_standbys'], 'bad')
  assert.equal(states({ synchronousStandbys: 'b', standbys: [standby] })['server_standbys'], 'good')
  assert.equal(states({ synchronousStandbys: 'b', standbys: [{ ...standby, lagMs: 120_000 }] })['server_standbys'], 'warning')
  // A standby that the database user may not see is not reported as missing.
  assert.equal(states({ synchronousStandbys: 'b', standbys: [{ ...standby, sync: 'unknown', lagMs: null }] })['server_standbys'], 'good')
})

test('nodes of different versions are a warning', () => {
  const node: NodeSummary = { num: 0, name: 'a', version: '1.0.0', startedAtMs: 0, seenAtMs: 0, doc: {}, isSelf: true }
  assert.equal(checkNodes([node]).state, 'good')
  assert.equal(checkNodes([node, { ...node, num: 1, name: 'b', version: '1.1.0' }]).state, 'warning')
})
