import assert from 'node:assert/strict'
import test from 'node:test'
import type { RecordedRequest, StepResult } from '@switchyard/integrations/runner'
import { subscriptionOf } from '../../destinations/fixtures/integration.ts'
import { inlineHosts } from '../fixtures/inline-hosts.ts'
import { startRig } from '../fixtures/rig.ts'
import { FAILURES_TO_OPEN } from '../lanes/breaker.ts'

const down: StepResult = { kind: 'status', status: 503, retryAfter: null, message: 'Unavailable.' }
const refused: StepResult = { kind: 'failed', code: 'invalid_payload', message: 'No url.' }
const request: RecordedRequest = {
  positions: [0],
  method: 'POST',
  url: 'https://tool.test/',
  startedAtMs: 0,
  totalMs: 1,
  status: 200,
  error: null,
  responseStart: null,
  headers: null,
  body: null,
}

test('a message that an action refuses without a request does not close the circuit breaker', async (t) => {
  let result = down as StepResult
  const hosts = inlineHosts(async () => ({
    erase: null,
    run: async () => ({ results: [result], requests: result === refused ? [] : [request], logs: null }),
  }))
  const rig = await startRig(t, { hosts })
  const tool = { type: 'integration', integration: { slug: 'tool', name: 'Tool' }, urls: [], settings: {} } as const
  const destination = await rig.destination('one', { ...tool, subscriptions: [subscriptionOf('a')], maxInFlight: FAILURES_TO_OPEN })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], FAILURES_TO_OPEN)
  await rig.until(() => rig.breakers.length === 1)
  const breaker = () => rig.delivery.health(destination.id)?.breaker
  assert.equal(breaker(), 'open')
  result = refused
  const before = rig.attempts.length
  while (rig.attempts.length === before) {
    rig.clock.advance(1_000)
    await rig.untilStoreAnswered()
  }
  assert.notEqual(breaker(), 'closed')
  assert.equal(rig.breakers.length, 1)
  result = { kind: 'success' }
  await rig.accept([destination], 1)
  while (breaker() !== 'closed') {
    rig.clock.advance(1_000)
    await rig.untilStoreAnswered()
  }
})
