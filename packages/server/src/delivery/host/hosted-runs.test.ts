import assert from 'node:assert/strict'
import test from 'node:test'
import type { Integration, KeptEntry, RecordedRequest, RunResult, StepResult } from '@switchyard/integrations/runner'
import { integrationOf, subscriptionOf } from '../../destinations/fixtures/integration.ts'
import type { IntegrationDestination } from '../../store/store.ts'
import type { Outcome } from '../link/outcome.ts'
import type { RunWork } from '../sender/integration-runs.ts'
import { HostedRuns, type OpenIntegration } from './hosted-runs.ts'

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

function run(open: OpenIntegration, destination: IntegrationDestination, work: Partial<RunWork> = {}): Promise<Outcome> {
  const usual: RunWork = { messages: [{ text: '{}', steps: ['a', 'b'] }], succeeded: null, keepsRequests: false, isPreview: false }
  return new Promise((resolve) => new HostedRuns(open).run(destination, { ...usual, ...work }, resolve))
}

test('a message is delivered when all subscriptions that match it succeeded', async () => {
  const outcome = await run(integration({ a: { requests: [recorded()] } }), two)
  assert.equal(outcome.verdict, 'success')
  assert.deepEqual(outcome.ran?.messages, [{ verdict: 'success', reason: null, retryAfterMs: null, succeeded: ['a', 'b'] }])
  assert.deepEqual(
    outcome.ran?.requests.map(({ subscription, method, url, sent }) => [subscription, method, url, sent]),
    [
      ['Name of a', 'POST', 'https://tool.test/', null],
      // It made no request, and is recorded nevertheless.
      ['Name of b', null, 'integration:actions-tool', null],
    ],
  )
})

test('messages are left to an action only if it is the only one that reads them', async () => {
  const owned: unknown[] = []
  const open: OpenIntegration = async () => ({
    run: async (_, messages, { ownsMessages }) => {
      owned.push(ownsMessages)
      return { results: messages.map(() => SUCCESS), requests: [], logs: null }
    },
    erase: null,
  })
  await run(open, two)
  await run(open, two, { messages: [{ text: '{}', steps: ['b'] }] })
  assert.deepEqual(owned, [false, false, true])
})

test('after a temporary failure, what did not succeed is run again', async () => {
  const unavailable: StepResult = { kind: 'status', status: 503, retryAfter: '7', message: 'No.' }
  const outcome = await run(integration({ b: { results: [unavailable], requests: [recorded({ status: 503 })] } }), two)
  assert.deepEqual(outcome.ran?.messages, [{ verdict: 'temporary', reason: 'http_503', retryAfterMs: 7_000, succeeded: ['a'] }])
  const calls: string[] = []
  await run(integration({}, calls), two, { succeeded: ['a'] })
  assert.deepEqual(calls, ['b 1'])
})

test('subscriptions that were replaced or removed between two attempts: what succeeded is not run again, and the rest is', async () => {
  const calls: string[] = []
  // The one that failed was replaced by another.
  const replaced = integrationOf({ subscriptions: [subscriptionOf('a'), subscriptionOf('c')] })
  const again = await run(integration({}, calls), replaced, { messages: [{ text: '{}', steps: ['a', 'c'] }], succeeded: ['a'] })
  assert.deepEqual([calls, again.ran?.messages[0]?.succeeded], [['c 1'], ['a', 'c']])
  // It was removed: everything that matches has succeeded.
  const removed = integrationOf({ subscriptions: [subscriptionOf('a')] })
  const rest = await run(integration({}, calls), removed, { messages: [{ text: '{}', steps: ['a'] }], succeeded: ['a'] })
  assert.deepEqual([calls.length, rest.ran?.messages[0]?.verdict, rest.ran?.requests.length], [1, 'success', 1])
  // Nothing has succeeded, and nothing matches any more.
  const none = await run(integration({}, calls), removed, { messages: [{ text: '{}', steps: [] }] })
  assert.deepEqual([none.reason, none.ran?.messages[0]?.reason, calls.length], ['no_subscription', 'no_subscription', 1])
})

test('a deletion is run where the integration can delete users, and not again after it succeeded', async () => {
  const erased: unknown[] = []
  const erase: Integration['erase'] = async ({ userId }) => {
    erased.push(userId)
    return { results: [SUCCESS], requests: [], logs: null }
  }
  const messages = [{ text: '{"type":"delete","userId":"u"}', steps: ['a'] }]
  const unavailable: StepResult = { kind: 'status', status: 503, retryAfter: null, message: 'No.' }
  const open =
    (given: Partial<Integration>, results = {}): OpenIntegration =>
    async () => ({ ...(await integration(results)('', {})), ...given })
  const first = await run(open({ erase }, { a: { results: [unavailable] } }), two, { messages })
  assert.deepEqual(first.ran?.messages[0], { verdict: 'temporary', reason: 'http_503', retryAfterMs: null, succeeded: ['delete'] })
  const second = await run(open({ erase }), two, { messages, succeeded: ['delete'] })
  assert.deepEqual([second.ran?.messages[0]?.verdict, erased], ['success', ['u']])
  // One that cannot delete does what its subscriptions say.
  assert.equal((await run(open({ erase: null }), two, { messages })).ran?.messages[0]?.verdict, 'success')
  const unmatched = await run(open({ erase: null }), two, { messages: [{ text: '{"type":"delete"}', steps: [] }] })
  assert.equal(unmatched.ran?.messages[0]?.reason, 'no_subscription')
})

test('a run that the service ends was not a timeout: it counts as not started, except for what succeeded', async () => {
  const late: StepResult = { kind: 'failed', code: 'timeout', message: 'Late.' }
  const hanging: (actions: string[]) => OpenIntegration = (actions) => async () => ({
    erase: null,
    async run({ action }, messages, { signal }) {
      const hangs = actions.includes(action)
      if (hangs) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return { results: messages.map(() => (hangs ? late : SUCCESS)), requests: [], logs: null }
    },
  })
  const ended = (open: OpenIntegration): Promise<Outcome> => {
    const runs = new HostedRuns(open)
    const work = { messages: [{ text: '{}', steps: ['a', 'b'] }], succeeded: null, keepsRequests: false, isPreview: false }
    return new Promise((resolve) => {
      let outcome: Outcome | undefined
      runs.run(two, work, (reported) => (outcome = reported))
      // Everything is reported before it is closed.
      setImmediate(() => void runs.close().then(() => resolve(outcome as Outcome)))
    })
  }
  assert.equal((await ended(hanging(['a', 'b']))).reason, 'aborted')
  const { verdict, ran } = await ended(hanging(['b']))
  assert.equal(verdict, 'success')
  assert.deepEqual(ran?.messages[0], { verdict: 'temporary', reason: 'aborted', retryAfterMs: null, succeeded: ['a'] })
})

test('a permanent failure beside a temporary one is run again, so that the delivery cannot end as delivered', async () => {
  const bad: StepResult = { kind: 'failed', code: 'invalid_payload', message: 'No url.' }
  const slow: StepResult = { kind: 'failed', code: 'timeout', message: 'Late.' }
  const both = await run(integration({ a: { results: [bad] }, b: { results: [slow] } }), two)
  assert.deepEqual(both.ran?.messages[0], { verdict: 'temporary', reason: 'timeout', retryAfterMs: null, succeeded: [] })
  const one = await run(integration({ a: { results: [bad] } }), two)
  assert.deepEqual(one.ran?.messages[0], { verdict: 'permanent', reason: 'invalid_payload', retryAfterMs: null, succeeded: ['b'] })
  assert.equal(one.ran?.requests.find(({ subscription }) => subscription === 'Name of a')?.outcome.error, 'No url.')
})

test('statuses are judged by the retry policy of the destination', async () => {
  const answers = (status: number): OpenIntegration =>
    integration({ a: { results: [{ kind: 'status', status, retryAfter: null, message: '' }] } })
  const policy = { ...two.retry, retryStatuses: [409], failStatuses: [503] }
  const verdicts: [IntegrationDestination, number, string][] = [
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

test('an integration that cannot be loaded is tried again, without what succeeded before', async () => {
  const open: OpenIntegration = async () => {
    throw new Error('no such package')
  }
  const { verdict, ran } = await run(open, two, { succeeded: ['a'] })
  assert.equal(verdict, 'temporary')
  assert.deepEqual(ran?.messages[0]?.succeeded, ['a'])
  assert.match(ran?.requests[0]?.outcome.error ?? '', /cannot be loaded: no such package/)
})

test('a test keeps what was sent', async () => {
  const { ran } = await run(integration({ a: { requests: [recorded()] } }), two, { keepsRequests: true })
  assert.deepEqual(ran?.requests[0]?.sent, { headers: { a: 'b' }, body: 'sent' })
})

/** Actions that share values: `a` leaves one, `b` fails until it is told not to. */
function sharing(seen: string[], given: { isDown?: boolean; value?: string } = {}): OpenIntegration {
  const run: Integration['run'] = async ({ action }, messages, { transactions = [] }) => {
    await new Promise((resolve) => setImmediate(resolve))
    messages.forEach((_, at) => {
      if (action === 'a') transactions[at]?.set('id', given.value ?? `id of ${at}`)
      seen.push(`${action} ${transactions[at]?.get('id') ?? 'nothing'}`)
    })
    const down: StepResult = { kind: 'failed', code: 'integration_retry', message: 'Later.' }
    return { results: messages.map(() => (action === 'b' && given.isDown === true ? down : SUCCESS)), requests: [], logs: null }
  }
  return async () => ({ run, erase: null, transactional: new Set(['a', 'b']) })
}

test('actions that share values run in the order of the subscriptions, with the values of their own message', async () => {
  const seen: string[] = []
  const messages = [1, 2].map(() => ({ text: '{}', steps: ['a', 'b'] }))
  await run(sharing(seen), two, { messages })
  assert.deepEqual(seen, ['a id of 0', 'a id of 1', 'b id of 0', 'b id of 1'])
})

test('a retry has the values that earlier attempts left, and does not run again what left them', async () => {
  const seen: string[] = []
  const first = await run(sharing(seen, { isDown: true }), two)
  const { succeeded = [] } = first.ran?.messages[0] ?? {}
  const second = await run(sharing(seen), two, { succeeded })
  assert.deepEqual(seen, ['a id of 0', 'b id of 0', 'b id of 0'])
  assert.equal(second.verdict, 'success')
  // One that cannot be read is as if it had not been left.
  await run(sharing(seen), two, { succeeded: ['a', 'value:(hidden)'] })
  assert.deepEqual(seen.splice(3), ['b nothing'])
  // One that is too long to be kept is left again.
  const long = await run(sharing(seen, { isDown: true, value: 'x'.repeat(200) }), two)
  assert.deepEqual(long.ran?.messages[0]?.succeeded, [])
})

test('a message of which only values were kept is not delivered if its subscriptions were removed', async () => {
  const down: StepResult = { kind: 'failed', code: 'integration_retry', message: 'Later.' }
  const open: OpenIntegration = async () => ({
    async run(_, messages, { transactions = [] }) {
      for (const transaction of transactions) transaction.set('id', 'left before the failure')
      return { results: messages.map(() => down), requests: [], logs: null }
    },
    erase: null,
    transactional: new Set(['a', 'b']),
  })
  const first = await run(open, two)
  const { succeeded = [] } = first.ran?.messages[0] ?? {}
  assert.deepEqual(succeeded, ['value:["id","left before the failure"]'])
  const messages = [{ text: '{}', steps: [] }]
  for (const kept of [succeeded, []]) {
    const { ran } = await run(open, two, { messages, succeeded: kept })
    assert.deepEqual([ran?.messages[0]?.verdict, ran?.messages[0]?.reason], ['permanent', 'no_subscription'])
  }
})

test('an answer of 200 that was a failure has the error on the row of its request, and no other row', async () => {
  const refused: StepResult = { kind: 'failed', code: 'integration_failed', message: 'success is false' }
  const lookup = recorded({ url: 'https://tool.test/lookup' })
  const rows = async (results: StepResult[], requests: RecordedRequest[]): Promise<unknown[]> => {
    const messages = results.map(() => ({ text: '{}', steps: ['a'] }))
    const { ran } = await run(integration({ a: { results, requests } }), two, { messages })
    return ran?.requests.map(({ method, url, outcome: { status, reason, error } }) => [method, url, status, reason, error]) ?? []
  }
  assert.deepEqual(await rows([refused], [lookup, recorded()]), [
    ['POST', 'https://tool.test/lookup', 200, null, null],
    ['POST', 'https://tool.test/', 200, 'integration_failed', 'success is false'],
  ])
  // A batch that delivered some of its messages did so by the same request.
  const batch = recorded({ positions: [0, 1] })
  assert.deepEqual(await rows([SUCCESS, refused], [batch]), [
    ['POST', 'https://tool.test/', 200, null, null],
    [null, 'integration:actions-tool', null, 'integration_failed', 'success is false'],
  ])
  assert.equal((await rows([refused, refused], [batch])).length, 1)
  const late: StepResult = { kind: 'failed', code: 'timeout', message: 'Late.' }
  assert.equal((await rows([late], [recorded()])).length, 2)
})

/** An action that is refused if its message was sent before, as in a cooling-off period. */
const coolingOff: OpenIntegration = async () => ({
  erase: null,
  stateful: new Set([two.subscriptions[0]?.action as string]),
  async run(_step, messages, { state }) {
    const kept: KeptEntry[] = []
    const results = messages.map((message, position): StepResult => {
      const key = String(message['userId'])
      if (state?.get(key) !== undefined) return { kind: 'failed', code: 'integration_failed', message: 'Too early.' }
      const set = state?.set(key, 'sent', 60_000)
      if (set !== undefined) kept.push({ ...set.entry, position })
      return SUCCESS
    })
    return { results, requests: [], logs: null, ...(kept.length > 0 && { state: kept }) }
  },
})

test('an action gets what is stored, and what it keeps is reported with the outcome; not in a preview or a test', async () => {
  const asked: string[] = []
  const runs: HostedRuns = new HostedRuns(coolingOff, {
    stateWanted(destinationId) {
      asked.push(destinationId)
      const entry = { subscriptionId: 'a', key: 'stored', value: 'sent', setAtMs: 1, expiresAtMs: Date.now() + 3_600_000 }
      queueMicrotask(() => runs.state(destinationId, [entry]))
    },
  })
  const ran = (userIds: readonly string[], more: Partial<RunWork> = {}): Promise<Outcome> => {
    const messages = userIds.map((userId) => ({ text: JSON.stringify({ userId }), steps: ['a'] }))
    return new Promise((resolve) => runs.run(two, { messages, succeeded: null, keepsRequests: false, isPreview: false, ...more }, resolve))
  }
  const verdicts = ({ ran: of }: Outcome): string[] => (of?.messages ?? []).map(({ verdict }) => verdict)
  for (const trial of [{ isPreview: true }, { keepsRequests: true }]) {
    const outcome = await ran(['jane', 'stored'], trial)
    assert.deepEqual([verdicts(outcome), outcome.ran?.state], [['success', 'permanent'], undefined])
  }
  const outcome = await ran(['stored', 'jane', 'jane'])
  assert.deepEqual(verdicts(outcome), ['permanent', 'success', 'permanent'])
  assert.deepEqual(
    outcome.ran?.state?.map(({ subscriptionId, key, position }) => [subscriptionId, key, position]),
    [['a', 'jane', 1]],
  )
  assert.deepEqual(verdicts(await ran(['jane'])), ['permanent'])
  assert.deepEqual([...new Set(asked)], [two.id])
})

test('if what is stored cannot be read, the messages are retried', async () => {
  const runs: HostedRuns = new HostedRuns(coolingOff, { stateWanted: (id) => queueMicrotask(() => runs.state(id, null)) })
  const work: RunWork = { messages: [{ text: '{}', steps: ['a'] }], succeeded: null, keepsRequests: false, isPreview: false }
  const outcome = await new Promise<Outcome>((resolve) => runs.run(two, work, resolve))
  assert.deepEqual([outcome.ran?.messages[0]?.verdict, outcome.reason], ['temporary', 'integration_retry'])
})
