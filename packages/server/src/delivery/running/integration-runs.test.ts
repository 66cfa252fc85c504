import assert from 'node:assert/strict'
import test from 'node:test'
import type { Integration, RecordedRequest, RunResult, StepResult } from '@switchyard/integrations/runner'
import { integrationOf, subscriptionOf } from '../../destinations/fixtures/integration.ts'
import type { Destination } from '../../store/store.ts'
import type { Outcome } from '../sending/outcome.ts'
import { HostedRuns, type OpenIntegration, type RunWork } from './integration-runs.ts'

const SUCCESS: StepResult = { kind: 'success' }
const two = integrationOf({ subscriptions: [subscriptionOf('a'), subscriptionOf('b')] })

function recorded(given: Partial<RecordedRequest> = {}): RecordedRequest {
  const answer = { status: 200, error: null, responseStart: 'ok', headers: { a: 'b' }, body: 'sent' }
  return { positions: [0], method: 'POST', url: 'https://tool.test/', startedAtMs: 5, totalMs: 7, ...answer, ...given }
}

/** An integration whose actions have these results. */
function integration(results: Record<string, Partial<RunResult>>, calls: string[] = []): OpenIntegration {
  const run: Integration['run'] = async ({ action }, messages) => {
    calls.push(`${action} ${messages.length}`)
    return { results: messages.map(() => SUCCESS), requests: [], logs: null, ...results[action] }
  }
  return async () => ({ run, erase: null })
}

function run(open: OpenIntegration, destination: Destination, work: Partial<RunWork> = {}): Promise<Outcome> {
  const usual: RunWork = { messages: [{ text: '{}', steps: ['a', 'b'] }], owed: null, keepsRequests: false, isPreview: false }
  return new Promise((resolve) => new HostedRuns(open).run(destination, { ...usual, ...work }, resolve))
}

test('a message is delivered when all subscriptions that match it succeeded', async () => {
  const outcome = await run(integration({ a: { requests: [recorded()] } }), two)
  assert.equal(outcome.verdict, 'success')
  assert.deepEqual(outcome.ran?.messages, [{ verdict: 'success', reason: null, retryAfterMs: null, left: [] }])
  assert.deepEqual(
    outcome.ran?.requests.map(({ subscription, method, url, sent }) => [subscription, method, url, sent]),
    [
      ['Name of a', 'POST', 'https://tool.test/', null],
      // It made no request, and is recorded nevertheless.
      ['Name of b', null, 'integration:actions-tool', null],
    ],
  )
})

test('after a temporary failure, what did not succeed is left', async () => {
  const unavailable: StepResult = { kind: 'status', status: 503, retryAfter: '7', message: 'No.' }
  const outcome = await run(integration({ b: { results: [unavailable], requests: [recorded({ status: 503 })] } }), two)
  assert.deepEqual(outcome.ran?.messages, [{ verdict: 'temporary', reason: 'http_503', retryAfterMs: 7_000, left: ['b'] }])
  const calls: string[] = []
  await run(integration({}, calls), two, { owed: ['b'] })
  assert.deepEqual(calls, ['b 1'])
})

test('a permanent failure beside a temporary one is run again, so that the delivery cannot end as delivered', async () => {
  const bad: StepResult = { kind: 'failed', code: 'invalid_payload', message: 'No url.' }
  const slow: StepResult = { kind: 'failed', code: 'timeout', message: 'Late.' }
  const both = await run(integration({ a: { results: [bad] }, b: { results: [slow] } }), two)
  assert.deepEqual(both.ran?.messages[0], { verdict: 'temporary', reason: 'timeout', retryAfterMs: null, left: ['a', 'b'] })
  const one = await run(integration({ a: { results: [bad] } }), two)
  assert.deepEqual(one.ran?.messages[0], { verdict: 'permanent', reason: 'invalid_payload', retryAfterMs: null, left: ['a'] })
  assert.equal(one.ran?.requests.find(({ subscription }) => subscription === 'Name of a')?.outcome.error, 'No url.')
})

test('statuses are judged by the retry policy of the destination', async () => {
  const answers = (status: number): OpenIntegration =>
    integration({ a: { results: [{ kind: 'status', status, retryAfter: null, message: '' }] } })
  const policy = { ...two.retry, retryStatuses: [409], failStatuses: [503] }
  const verdicts: [Destination, number, string][] = [
    [two, 401, 'permanent'],
    [two, 403, 'permanent'],
    [two, 404, 'permanent'],
    [two, 429, 'temporary'],
    [two, 500, 'temporary'],
    [two, 409, 'permanent'],
    [{ ...two, retry: policy }, 409, 'temporary'],
    [{ ...two, retry: policy }, 503, 'permanent'],
    // The integration says that it failed.
    [two, 200, 'permanent'],
  ]
  for (const [destination, status, verdict] of verdicts) {
    const { ran } = await run(answers(status), destination)
    assert.equal(ran?.messages[0]?.verdict, verdict, String(status))
    assert.equal(ran?.messages[0]?.reason, `http_${status}`)
  }
})

test('network errors have the reasons that webhooks have', async () => {
  for (const [code, reason] of [
    ['ECONNREFUSED', 'connection_refused'],
    ['ERR_ADDRESS_REFUSED', 'address_refused'],
    ['ENOTFOUND', 'dns_not_found'],
  ] as const) {
    const { ran } = await run(integration({ a: { results: [{ kind: 'network', code, message: 'No.' }] } }), two)
    assert.equal(ran?.messages[0]?.reason, reason)
  }
})

test('each message of a batch has its own subscriptions and its own result', async () => {
  const calls: string[] = []
  const bad: StepResult = { kind: 'failed', code: 'integration_failed', message: 'No.' }
  const open = integration({ a: { results: [SUCCESS, bad], requests: [recorded({ positions: [0, 1] })] } }, calls)
  const messages = [
    { text: '{}', steps: ['a'] },
    { text: '{}', steps: ['b'] },
    { text: '{}', steps: ['a', 'b'] },
    { text: '{}', steps: [] },
  ]
  const { ran } = await run(open, two, { messages })
  assert.deepEqual(calls, ['a 2', 'b 2'])
  assert.deepEqual(
    ran?.messages.map(({ verdict, reason }) => [verdict, reason]),
    [
      ['success', null],
      ['success', null],
      ['permanent', 'integration_failed'],
      ['permanent', 'no_subscription'],
    ],
  )
  assert.deepEqual(ran?.requests[0]?.positions, [0, 2])
})

test('an integration that cannot be loaded is tried again with what is owed', async () => {
  const open: OpenIntegration = async () => {
    throw new Error('no such package')
  }
  const { verdict, ran } = await run(open, two, { owed: ['b'] })
  assert.equal(verdict, 'temporary')
  assert.deepEqual(ran?.messages[0]?.left, ['b'])
  assert.match(ran?.requests[0]?.outcome.error ?? '', /cannot be loaded: no such package/)
})

test('a test keeps what was sent', async () => {
  const { ran } = await run(integration({ a: { requests: [recorded()] } }), two, { keepsRequests: true })
  assert.deepEqual(ran?.requests[0]?.sent, { headers: { a: 'b' }, body: 'sent' })
})
