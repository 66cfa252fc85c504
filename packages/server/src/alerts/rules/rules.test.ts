// The rules about destinations, rejections, plans and disks, each as a table of observations. Those about silence and volume are in false-alarms.test.ts.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { RULE_IDS } from '../../api/alert-rule-ids.ts'
import { type Backlog, backlogGrowing } from './backlog-growing.ts'
import { deliveriesExpired } from './deliveries-expired.ts'
import { destinationFailing } from './destination-failing.ts'
import { destinationHeld } from './destination-held.ts'
import { diskAlmostFull } from './disk-almost-full.ts'
import { messagesRejected } from './messages-rejected.ts'
import { type NodePresence, nodeLost } from './node-lost.ts'
import { planViolated } from './plan-violated.ts'
import { quarantineExpiring } from './quarantine-expiring.ts'
import { DAY_MS, type DestinationMinute, HOUR_MS, MINUTE_MS, type Rule, retriedText, type SourceMinute } from './rule.ts'
import { RULES } from './rules.ts'

const NOW_MS = 30_000_000 * MINUTE_MS
const NOW = 30_000_000

function dayAndTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
}

function verdictOf<Observed>(rule: Rule<Observed>, observed: Observed): string {
  const values = Object.fromEntries(Object.entries(rule.settings).map(([name, { fallback }]) => [name, fallback]))
  return rule.judge(observed, values).verdict
}

/** Minutes from the oldest to the current one. */
function minutesOf<Counts>(...counts: (Counts | null)[]): Map<number, Counts> {
  return new Map(counts.flatMap((one, at) => (one === null ? [] : [[NOW - counts.length + 1 + at, one] as const])))
}
const repeated = <T>(times: number, value: T): T[] => Array.from({ length: times }, () => value)

test('the ids of the rules are those of the API', () => {
  assert.deepEqual(
    RULES.map(({ id }) => id),
    RULE_IDS,
  )
})

test('quarantine expiring: three days before the first message is deleted, until none is', () => {
  const judged = (days: number | null): string => {
    const oldest = days === null ? null : { sourceName: 'Shop', expiresAtMs: NOW_MS + days * DAY_MS }
    return verdictOf(quarantineExpiring, { nowMs: NOW_MS, oldest, quarantined: 12 })
  }
  assert.deepEqual([null, 3.1, 2.9, -0.1].map(judged), ['close', 'close', 'open', 'open'])
  assert.equal(
    quarantineExpiring.opened('Switchyard', { quarantined: 1_200, sourceName: 'Shop', expiresInMs: 50 * HOUR_MS }),
    '1,200 messages are in quarantine. The oldest, from the source "Shop", will be deleted in 2 days. Release the messages that you want to keep, or raise SWITCHYARD_QUARANTINE_DAYS.',
  )
})

suite('destination failing', () => {
  const bad: DestinationMinute = { delivered: 0, failed: 3, expired: 0, failedForGood: 0 }
  const good: DestinationMinute = { delivered: 3, failed: 0, expired: 0, failedForGood: 0 }
  const judged = (minutes: (DestinationMinute | null)[], change = {}) =>
    verdictOf(destinationFailing, { nowMs: NOW_MS, minutes: minutesOf(...minutes), isActive: true, pendingNow: 5, reason: null, ...change })
  for (const [name, expected, minutes, change] of [
    ['five minutes of failures open it', 'open', repeated(6, bad), {}],
    ['four do not', 'keep', repeated(5, bad), {}],
    ['a single minute of success between them does', 'keep', [bad, bad, bad, good, bad, bad], {}],
    ['failures among more successes do not', 'close', repeated(6, { delivered: 30, failed: 3, expired: 0, failedForGood: 0 }), {}],
    ['one message that is retried again and again opens it', 'open', [bad, null, null, null, null, null, null], {}],
    ['until the next retry it stays as it is', 'keep', [], {}],
    ['success for two minutes closes it', 'close', [bad, bad, bad, good, good, good], {}],
    ['success for one minute does not', 'keep', [bad, bad, bad, bad, good, good], {}],
    ['a paused destination does not fail', 'close', repeated(6, bad), { isActive: false }],
    ['nothing to deliver closes it', 'close', [], { pendingNow: 0 }],
  ] as const)
    test(name, () => assert.equal(judged([...minutes], change), expected))

  test('the code of the last failure is only in the message if there is no cause in words', () => {
    const details = { failed: 4, delivered: 0, pending: 2, reason: 'http_500', forMs: 6 * MINUTE_MS }
    const text = 'The destination "CRM" has been failing for 6 minutes: 4 of 4 delivery attempts failed'
    assert.equal(destinationFailing.opened('CRM', details), `${text}, the last one with http_500. ${retriedText(2)}`)
    assert.equal(destinationFailing.opened('CRM', { ...details, cause: 'The receiver answered 500.' }), `${text}. ${retriedText(2)}`)
  })

  test('an incident that has just begun does not claim to have lasted for a minute', () => {
    const details = { failed: 4, delivered: 0, pending: 2, cause: 'x', forMs: 31_000 }
    assert.match(destinationFailing.opened('CRM', details), /^The destination "CRM" has been failing for less than a minute: 4 of 4/)
  })

  test('the message says what happens to deliveries that are retried and to those that are not', () => {
    const details = { failed: 4, delivered: 0, forMs: 6 * MINUTE_MS, cause: 'x' }
    const text = (failedPermanently: number, pending: number) =>
      destinationFailing.opened('CRM', { ...details, failedPermanently, pending }).split('attempts failed. ')[1]
    const lost = '1 delivery failed permanently and will not be retried: correct the cause, and replay it.'
    assert.equal(text(1, 0), lost)
    assert.equal(text(1, 3), `${lost} Other failed attempts are retried; 3 deliveries are pending.`)
    assert.equal(text(0, 3), retriedText(3))
  })

  test('it says when the first pending delivery expires', () => {
    const observed = { nowMs: NOW_MS, minutes: minutesOf(bad), isActive: true, pendingNow: 2, reason: null }
    const textAt = (nextExpiryAtMs: number | null) => {
      const { details } = destinationFailing.judge({ ...observed, nextExpiryAtMs }, { openAfterMinutes: 5, failurePercent: 50 })
      return destinationFailing.opened('CRM', details).split('are pending.')[1]
    }
    assert.equal(textAt(NOW_MS + 23 * HOUR_MS), ` The first one expires in 23 hours (${dayAndTime(NOW_MS + 23 * HOUR_MS)} UTC).`)
    assert.equal(textAt(NOW_MS - 1), ' The first one expires if its next attempt fails.')
    assert.equal(textAt(null), '')
  })

  test('pending deliveries can be retried, if there are any', () => {
    assert.deepEqual(destinationFailing.actions('crm', { pending: 2 }), [{ action: 'retry', destinationId: 'crm', states: [] }])
    assert.deepEqual(destinationFailing.actions('crm', { pending: 0 }), [])
    const both = destinationFailing.actions('crm', { pending: 2, failedPermanently: 3 })
    assert.deepEqual(
      both.map(({ action, states }) => [action, states]),
      [
        ['retry', []],
        ['replay', ['failed']],
      ],
    )
  })
})

test('deliveries expired: at once, until none has expired for half an hour', () => {
  const judged = (...minutes: (DestinationMinute | null)[]) =>
    verdictOf(deliveriesExpired, { nowMs: NOW_MS, minutes: minutesOf(...minutes) })
  const expired: DestinationMinute = { delivered: 0, failed: 0, expired: 1, failedForGood: 0 }
  assert.equal(judged(expired), 'open')
  assert.equal(judged(expired, ...repeated(30, null)), 'open')
  assert.equal(judged(expired, ...repeated(31, null)), 'close')
  assert.equal(judged(), 'close')
})

test('backlog growing: old and many deliveries that do not get fewer, while the destination answers', () => {
  const grown = [12, 10, 8, 6, 4, 2, 0].map((ago) => ({ atMs: NOW_MS - ago * MINUTE_MS, count: 5_000 - ago * 100 }))
  const judged = (change: Partial<Backlog>) =>
    verdictOf(backlogGrowing, {
      nowMs: NOW_MS,
      isActive: true,
      isFailing: false,
      oldestPendingAtMs: NOW_MS - 11 * MINUTE_MS,
      pending: grown,
      ...change,
    })
  assert.equal(judged({}), 'open')
  assert.equal(judged({ isFailing: true }), 'keep')
  assert.equal(judged({ isActive: false }), 'close')
  assert.equal(judged({ oldestPendingAtMs: NOW_MS - MINUTE_MS }), 'keep')
  assert.equal(judged({ pending: grown.slice(-3) }), 'keep', 'nothing is known of ten minutes ago')
  const shrinking = [12, 10, 8, 6, 4, 2, 0].map((ago) => ({ atMs: NOW_MS - ago * MINUTE_MS, count: 3_000 + ago * 500 }))
  assert.equal(judged({ pending: shrinking }), 'close')
  assert.equal(judged({ pending: [{ atMs: NOW_MS, count: 10 }] }), 'close')
})

test('messages rejected: a noticeable share, for several minutes', () => {
  const judged = (...minutes: (SourceMinute | null)[]) => verdictOf(messagesRejected, { nowMs: NOW_MS, minutes: minutesOf(...minutes) })
  const bad: SourceMinute = { accepted: 50, rejected: 5, code: 'event_required' }
  const good: SourceMinute = { accepted: 500, rejected: 5, code: 'event_required' }
  assert.equal(judged(...repeated(5, bad)), 'open')
  assert.equal(judged(...repeated(5, good)), 'close', 'one percent is usual')
  assert.equal(judged({ ...bad, rejected: 500 }, null, null), 'keep', 'one bad batch')
  assert.equal(judged(...repeated(5, { ...bad, accepted: 2, rejected: 1 })), 'keep', 'very few')
  assert.equal(judged(bad, ...repeated(11, good)), 'close')
})

test('plan violated: from ten violations in two hours to none', () => {
  const judged = (violations: number) =>
    verdictOf(planViolated, { nowMs: NOW_MS, planId: 'pln_1', violations, planRule: 'track Order Completed' })
  assert.deepEqual([judged(10), judged(9), judged(0)], ['open', 'keep', 'close'])
})

test('disk almost full: at once, until there has been space for five minutes', () => {
  const reading = (agoMinutes: number, freeBytes: number) => ({ atMs: NOW_MS - agoMinutes * MINUTE_MS, freeBytes, totalBytes: 100e9 })
  const judged = (...readings: ReturnType<typeof reading>[]) => verdictOf(diskAlmostFull, { nowMs: NOW_MS, readings })
  assert.equal(judged(reading(0, 4e9)), 'open')
  assert.equal(judged(reading(0, 6e9)), 'close')
  assert.equal(judged(reading(4, 4e9), reading(0, 6e9)), 'keep')
  assert.equal(judged(reading(5, 4e9), reading(0, 6e9)), 'close')
  assert.equal(judged({ ...reading(0, 2e8), totalBytes: 1e9 }), 'open', 'a small disk')
  assert.equal(judged(), 'keep')
})

test('node lost: away for a minute without having been stopped, until it is back or replaced', () => {
  const judged = (change: Partial<NodePresence>) =>
    verdictOf(nodeLost, { nowMs: NOW_MS, lastSeenAtMs: NOW_MS - 2 * MINUTE_MS, hasLeft: false, nodes: 1, nodesBefore: 2, ...change })
  assert.equal(judged({}), 'open')
  assert.equal(judged({ lastSeenAtMs: NOW_MS - 30_000 }), 'keep')
  assert.equal(judged({ lastSeenAtMs: null }), 'close')
  assert.equal(judged({ hasLeft: true }), 'close')
  assert.equal(judged({ nodes: 2 }), 'close')
  assert.equal(judged({ lastSeenAtMs: NOW_MS - 24 * HOUR_MS }), 'close')
})

test('destination_held: opened at once, kept while a node still finds out, closed when it fits or is paused', () => {
  const observed = { nowMs: NOW_MS, isActive: true, pendingNow: 3, hold: { problem: 'settings.region is required.' } }
  assert.equal(verdictOf(destinationHeld, observed), 'open')
  assert.equal(verdictOf(destinationHeld, { ...observed, hold: { problem: null } }), 'keep')
  assert.equal(verdictOf(destinationHeld, { ...observed, hold: null }), 'close')
  assert.equal(verdictOf(destinationHeld, { ...observed, isActive: false }), 'close')
  const { details } = destinationHeld.judge(observed, {})
  assert.match(destinationHeld.opened('CRM', details), /"CRM" are held.*settings\.region is required\. .*3 deliveries are pending/)
  assert.match(destinationHeld.closed('CRM', { ...details, forMs: 120_000 }), /fits its integration again.*2 minutes/)
})

test('attempts that are not repeated are not said to be retried', () => {
  assert.equal(retriedText(0), 'No delivery is pending.')
  assert.equal(retriedText(1), 'Failed attempts are retried; 1 delivery is pending.')
  assert.equal(retriedText(12_000), 'Failed attempts are retried; 12,000 deliveries are pending.')
})
