// Reports that code in a host can forge or damage: none of them loses a message or counts one twice.

import assert from 'node:assert/strict'
import test from 'node:test'
import { integrationOf, subscriptionOf } from '../../destinations/fixtures/integration.ts'
import { startRig } from '../fixtures/rig.ts'
import { testHosts } from '../fixtures/test-hosts.ts'
import type { Outcome, RanMessage, RanRequest, RanState } from '../link/outcome.ts'
import type { Unsent } from '../link/protocol.ts'
import type { Work } from '../link/work.ts'
import { reportCheck } from './report-check.ts'

const timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 1 }
const outcome: Outcome = {
  verdict: 'success',
  status: 200,
  reason: null,
  error: null,
  address: null,
  timings,
  retryAfterMs: null,
  responseStart: null,
}
const ok: RanMessage = { verdict: 'success', reason: null, retryAfterMs: null, succeeded: [] }
const retried: RanMessage = { verdict: 'temporary', reason: 'http_503', retryAfterMs: 1_000, succeeded: ['all'] }
const request: RanRequest = {
  positions: [0, 2],
  subscription: 'a',
  method: 'GET',
  url: 'https://tool.test/',
  startedAtMs: 1,
  outcome,
  sent: null,
}
const work = { urls: [0], destination: integrationOf() } as unknown as Work
/** For a unit of three messages. */
const check = (reported: unknown, url = 0, waitedMs = 0): void => reportCheck.outcome(work, 3, url, reported as Outcome, waitedMs)
const checkRan = (messages: unknown, requests: unknown = []): void => check({ ...outcome, ran: { messages, requests } })
const entry: RanState = { position: 2, subscriptionId: 's', key: 'k', value: 'v', setAtMs: 1, expiresAtMs: 1_001 }
const checkState = (...state: unknown[]): void => check({ ...outcome, ran: { messages: [ok, ok, ok], requests: [], state } })
const checkUnsent = (unsent: unknown, isOver = false): void => reportCheck.unsent(work, 3, unsent as Unsent[], isOver)

test('reports of a host that can be true are accepted', () => {
  check(outcome)
  check({ ...outcome, verdict: 'temporary', status: null, reason: 'timeout', error: 'No answer.', logs: 'a' }, 0, 12)
  checkRan([ok, retried, { ...ok, verdict: 'permanent', reason: 'no_subscription' }], [request, { ...request, method: null }])
  checkRan([ok, ok, ok], [{ ...request, sent: { headers: { a: 'b' }, body: '{}' } }])
  checkState(entry, { ...entry, position: null, expiresAtMs: 1 + 30 * 86_400_000 })
  checkUnsent([{ position: 2, why: 'deleted' }])
  checkUnsent(
    [0, 1, 2].map((position) => ({ position, why: 'unreadable' })),
    true,
  )
})

const FORGED: Record<string, () => void> = {
  'fewer results than messages': () => checkRan([ok, ok]),
  'more results than messages': () => checkRan([ok, ok, ok, ok]),
  'no list of results': () => checkRan({ length: 3 }),
  'a result that is no object': () => checkRan([ok, ok, null]),
  'an unknown verdict': () => checkRan([ok, ok, { ...ok, verdict: 'lost' }]),
  'a failure without a reason': () => checkRan([ok, ok, { ...ok, verdict: 'permanent' }]),
  'a reason that is no code': () => checkRan([ok, ok, { ...retried, reason: 'x'.repeat(1_000) }]),
  'an endless wait': () => checkRan([ok, ok, { ...retried, retryAfterMs: Number.POSITIVE_INFINITY }]),
  'subscriptions that are no texts': () => checkRan([ok, ok, { ...retried, succeeded: [{}] }]),
  'a request for a message that is not there': () => checkRan([ok, ok, ok], [{ ...request, positions: [3] }]),
  'a request for a message twice': () => checkRan([ok, ok, ok], [{ ...request, positions: [0, 0] }]),
  'a request for no message': () => checkRan([ok, ok, ok], [{ ...request, positions: [] }]),
  'a kept entry of a message that is not there': () => checkState({ ...entry, position: 3 }),
  'a kept entry that is too long': () => checkState({ ...entry, value: 'x'.repeat(2_001) }),
  'a kept entry that is no text': () => checkState({ ...entry, key: {} }),
  'an entry that is kept for ever': () => checkState({ ...entry, expiresAtMs: 1e12 }),
  'too many kept entries': () => checkState(...Array.from({ length: 81 }, () => entry)),
  'a URL of 1 MB': () => checkRan([ok, ok, ok], [{ ...request, url: 'x'.repeat(1e6) }]),
  'a request without an outcome': () => checkRan([ok, ok, ok], [{ ...request, outcome: null }]),
  'a header that is no text': () => checkRan([ok, ok, ok], [{ ...request, sent: { headers: { a: {} }, body: '' } }]),
  'a thousand requests': () =>
    checkRan(
      [ok, ok, ok],
      Array.from({ length: 1_000 }, () => request),
    ),
  'the outcome of a URL that was not requested': () => check(outcome, 7),
  'a time that is no number': () => check({ ...outcome, timings: { ...timings, totalMs: Number.NaN } }),
  'a status that is no number': () => check({ ...outcome, status: '200' }),
  'messages that are over, although some are left': () => checkUnsent([{ position: 0, why: 'deleted' }], true),
  'an unsent message that is not there': () => checkUnsent([{ position: 9, why: 'deleted' }]),
  'an unsent message twice': () => checkUnsent([0, 0].map((position) => ({ position, why: 'deleted' }))),
  'all messages left out, although none was sent': () =>
    checkUnsent(
      [0, 1, 2].map((position) => ({ position, why: 'left_out' })),
      true,
    ),
  'an unknown reason not to send': () => checkUnsent([{ position: 0, why: { reason: 'x' } }]),
}

test('messages that did not fit into the request are left out', () => {
  checkUnsent([1, 2].map((position) => ({ position, why: 'left_out' })))
})

for (const [what, report] of Object.entries(FORGED)) {
  test(`${what}: refused`, () => assert.throws(report, TypeError))
}

test('a host that makes such a report is replaced, and its messages are sent again', async (t) => {
  const { hosts, lost } = testHosts({ program: new URL('../fixtures/test-host.ts', import.meta.url) })
  const rig = await startRig(t, { hosts })
  const ran = JSON.stringify({ ...outcome, ran: { messages: [ok, ok], requests: [] } })
  const forged = `reports.outcome(start.unit, 0, ${ran}, 0); await new Promise(() => undefined)`
  const destination = await rig.destination('forging', {
    type: 'integration',
    integration: { slug: 'tool', name: 'Tool' },
    settings: { code: `if (start.attempt === 1) { ${forged} }` },
    subscriptions: [subscriptionOf('all')],
    batch: { size: 3, bytes: 100_000, lingerMs: 0 },
    timeoutMs: 30_000,
  })
  await rig.until(() => rig.claims.length === 1)
  await rig.accept([destination], 3)
  await rig.until(() => lost.length === 1)
  while ((await rig.ledger(destination)).pending > 0) {
    rig.clock.advance(10_000)
    await rig.untilStoreAnswered()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await rig.untilLedger(destination, { owed: 3, delivered: 3 })
  assert.deepEqual(lost, ['switchyard-host-1 sent a packet that cannot be read'])
})
