import assert from 'node:assert/strict'
import test from 'node:test'
import {
  type AttentionInput,
  expiredIn,
  type Finding,
  findAttention,
  followHeld,
  followNodes,
  type HourAndBefore,
  hourAndBefore,
} from './attention.ts'
import { NOTHING, type Point, type Totals } from './periods.ts'

const NOW_MS = Date.parse('2026-11-15T10:00:00.000Z')
const ago = (minutes: number): string => new Date(NOW_MS - minutes * 60_000).toISOString()

const HEALTH = {
  breaker: 'closed' as const,
  openSince: null,
  inFlight: 0,
  success: 1,
  latencyMs: null,
  pending: 0,
  oldestPendingAt: null,
  nextAttemptAt: null,
}
const NODE = { name: 'a:8080', version: '1.0.0', startedAt: ago(60), seenAt: ago(0), current: true }

function hour(now: Partial<Totals>, before: Partial<Totals> = {}): HourAndBefore {
  return { now: { ...NOTHING, ...now }, before: { ...NOTHING, ...before }, failingSince: ago(20), rejectingSince: ago(30) }
}

function input(given: Partial<AttentionInput> = {}): AttentionInput {
  return {
    nowMs: NOW_MS,
    destinations: [
      { id: 'd1', name: 'Warehouse', enabled: true, paused: false },
      { id: 'd2', name: 'Mail', enabled: true, paused: false },
    ],
    sources: [{ id: 's1', name: 'Shop' }],
    health: [],
    heldBefore: new Map(),
    ledger: [],
    hour: hour({}),
    hours: new Map(),
    expired: new Map(),
    rejections: [],
    nodes: [NODE],
    goneNodes: [],
    store: null,
    ...given,
  }
}

function only(given: Partial<AttentionInput>): Finding {
  const findings = findAttention(input(given))
  assert.equal(findings.length, 1, JSON.stringify(findings))
  return findings[0] as Finding
}

function ids(given: Partial<AttentionInput>): string[] {
  return findAttention(input(given)).map(({ id }) => id)
}

test('nothing needs attention where all is well', () => {
  const health = [{ destinationId: 'd1', ...HEALTH, pending: 10, oldestPendingAt: ago(4) }]
  const ledger = [{ destinationId: 'd1', owed: 20, delivered: 10, pending: 10, failed: 0, expired: 0, cancelled: 0 }]
  const store = { isWell: true, message: '' }
  assert.deepEqual(ids({ health, ledger, store, hours: new Map([['d1', hour({ delivered: 10 })]]) }), [])
})

test('an open breaker, since when, and what waits behind it', () => {
  const row = { destinationId: 'd1', ...HEALTH, breaker: 'probing' as const, openSince: ago(12), pending: 1_234, oldestPendingAt: ago(13) }
  assert.deepEqual(only({ health: [row] }), {
    id: 'breaker d1',
    severity: 'critical',
    subject: 'Warehouse',
    text: 'Breaker open: attempts fail again and again, so one request at a time probes it; 1,234 deliveries wait, the oldest for 13 min.',
    since: ago(12),
    href: '/destinations/d1',
    link: 'The destination',
  })
  assert.match(only({ health: [{ ...row, pending: 0, oldestPendingAt: null }] }).text, /; nothing waits for it\.$/)
  assert.match(only({ health: [{ ...row, pending: 1, oldestPendingAt: null }] }).text, /; 1 delivery waits\.$/)
  assert.deepEqual(ids({ health: [row, { ...row, destinationId: 'd2', pending: 5_000 }] }), ['breaker d2', 'breaker d1'])
})

test('what has waited long, unless a breaker says it or it is held', () => {
  const row = { destinationId: 'd1', ...HEALTH, pending: 3, oldestPendingAt: ago(6) }
  const finding = only({ health: [row] })
  assert.deepEqual([finding.severity, finding.since, finding.href], ['warning', ago(6), '/deliveries?destination=d1&state=pending'])
  assert.equal(finding.text, 'The oldest pending delivery has waited for 6 min; 3 deliveries are pending.')
  assert.equal(only({ health: [{ ...row, oldestPendingAt: ago(61) }] }).severity, 'critical')
  assert.deepEqual(ids({ health: [{ ...row, oldestPendingAt: ago(5) }] }), [])
  assert.deepEqual(ids({ health: [{ ...row, breaker: 'open' }] }), ['breaker d1'])
  const held = (hold: { enabled: boolean; paused: boolean }): Partial<AttentionInput> => ({
    health: [{ ...row, breaker: 'open' }],
    destinations: [{ id: 'd1', name: 'Warehouse', ...hold }],
  })
  const disabled = only(held({ enabled: false, paused: true }))
  assert.deepEqual([disabled.id, disabled.severity], ['disabled d1', 'notice'])
  assert.equal(disabled.text, 'Disabled: 3 deliveries are held until it is enabled; new messages skip it.')
  const paused = only(held({ enabled: true, paused: true }))
  assert.deepEqual([paused.id, paused.severity, paused.text], ['paused d1', 'notice', 'Paused: 3 deliveries are held until it is resumed.'])
})

test('a paused destination says that its backlog grows', () => {
  const destinations = [{ id: 'd1', name: 'Warehouse', enabled: true, paused: true }]
  const at = (pending: number) => ({ destinations, health: [{ destinationId: 'd1', ...HEALTH, pending, oldestPendingAt: ago(1) }] })
  const first = followHeld(new Map(), at(3))
  assert.equal(only({ ...at(3), heldBefore: first }).severity, 'notice')
  const seen = followHeld(first, at(1_010))
  const { severity, text } = only({ ...at(1_010), heldBefore: seen })
  assert.deepEqual(
    [severity, text],
    ['warning', 'Paused: 1,010 deliveries are held until it is resumed, 1,007 more than when this page was opened.'],
  )
  assert.deepEqual(followHeld(seen, { ...at(5), destinations: input().destinations }), new Map(), 'forgotten when it is resumed')
})

test('a failure rate that is up, or bad', () => {
  const of = (now: Partial<Totals>, before: Partial<Totals> = {}) => ({ hours: new Map([['d1', hour(now, before)]]) })
  const up = only(of({ delivered: 90, retried: 10 }, { delivered: 99, retried: 1 }))
  assert.equal(up.text, '10% of 100 tries to deliver failed in the last hour, up from 1% in the hour before.')
  assert.deepEqual([up.severity, up.since, up.href], ['warning', ago(20), '/deliveries?destination=d1&state=pending'])
  assert.equal(only(of({ delivered: 50, failed: 50 })).text, '50% of 100 tries to deliver failed in the last hour.')
  assert.equal(only(of({ delivered: 50, failed: 50 })).href, '/deliveries?destination=d1&state=failed')
  assert.match(only(of({ delivered: 70, retried: 30 }, { delivered: 70, retried: 30 })).text, /, after 30% in the hour before\.$/)
  // Little more than before, or of few tries.
  assert.deepEqual(ids(of({ delivered: 96, retried: 4 }, { delivered: 99, retried: 1 })), [])
  assert.deepEqual(ids(of({ delivered: 85, retried: 15 }, { delivered: 90, retried: 10 })), [])
  assert.deepEqual(ids(of({ delivered: 1, retried: 18 })), [])
  // An hour before with too few tries is nothing to compare with.
  assert.deepEqual(ids(of({ delivered: 90, retried: 10 }, { delivered: 10 })), [])
  assert.deepEqual(ids({ ...of({ retried: 100 }), health: [{ destinationId: 'd1', ...HEALTH, breaker: 'open' }] }), ['breaker d1'])
  const two = new Map([
    ['d1', hour({ delivered: 70, retried: 30 })],
    ['d2', hour({ retried: 50 })],
  ])
  assert.deepEqual(ids({ hours: two }), ['rate d2', 'rate d1'])
})

test('failures that are too few for a rate are told as a notice', () => {
  const finding = only({ hours: new Map([['d1', hour({ delivered: 1, failed: 1 })]]) })
  assert.deepEqual([finding.id, finding.severity, finding.text], ['failed d1', 'notice', '1 delivery failed for good in the last hour.'])
})

test('what expired lately', () => {
  const finding = only({
    expired: new Map([
      ['d1', { count: 7, since: ago(300) }],
      ['d2', { count: 0, since: null }],
    ]),
  })
  assert.deepEqual([finding.severity, finding.since, finding.href], ['warning', ago(300), '/deliveries?destination=d1&state=expired'])
  assert.match(finding.text, /^7 deliveries expired in the last 24 hours: they were tried until their retry window was over\./)
})

test('rejections that are up lead to the source of the last', () => {
  const rejections = [
    { sourceId: 's1', code: 'invalid_json', count: 30, lastAt: ago(1), lastSample: '' },
    { sourceId: null, code: 'unknown_write_key', count: 90, lastAt: ago(50), lastSample: '' },
  ]
  const finding = only({ hour: hour({ rejected: 40 }, { rejected: 4 }), rejections })
  assert.equal(finding.text, '40 messages were rejected in the last hour, 4 in the hour before, the last as invalid_json from Shop.')
  assert.deepEqual([finding.since, finding.href], [ago(30), '/sources/s1'])
  assert.equal(only({ hour: hour({ rejected: 40 }), rejections: [] }).href, '/sources')
  assert.deepEqual(ids({ hour: hour({ rejected: 19 }) }), [])
  assert.deepEqual(ids({ hour: hour({ rejected: 40 }, { rejected: 30 }) }), [])
})

test('nodes that are silent, gone, or of another version', () => {
  const silent = { ...NODE, name: 'b:8080', current: false, seenAt: new Date(NOW_MS - 8_000).toISOString() }
  assert.deepEqual(ids({ nodes: [NODE, { ...silent, seenAt: new Date(NOW_MS - 2_000).toISOString() }] }), [])
  assert.match(only({ nodes: [NODE, silent] }).text, /^No sign of life for 8 s;/)
  assert.equal(only({ goneNodes: [silent] }).subject, 'Node b:8080')
  assert.match(
    only({
      nodes: [
        { ...NODE, version: '1.1.0' },
        { ...NODE, name: 'b', current: false },
      ],
    }).text,
    /1\.0\.0, 1\.1\.0/,
  )
})

test('nodes are remembered until they are back, or old news', () => {
  const other = { ...NODE, name: 'b:8080', current: false }
  const first = followNodes(new Map(), [NODE, other], 600_000)
  assert.deepEqual(first.gone, [])
  const later = { ...NODE, seenAt: ago(-1) }
  const second = followNodes(first.remembered, [later], 600_000)
  assert.deepEqual(second.gone, [other])
  assert.deepEqual(followNodes(second.remembered, [later, { ...other, seenAt: ago(-1) }], 600_000).gone, [])
  assert.deepEqual(followNodes(second.remembered, [{ ...NODE, seenAt: ago(-11) }], 600_000).gone, [])
})

test('the worst first, whatever it is about', () => {
  assert.deepEqual(
    ids({
      store: { isWell: false, message: 'the disk is full.' },
      ledger: [{ destinationId: 'd1', owed: 5, delivered: 3, pending: 1, failed: 0, expired: 0, cancelled: 0 }],
      health: [
        { destinationId: 'd1', ...HEALTH, pending: 1, oldestPendingAt: ago(10) },
        { destinationId: 'd2', ...HEALTH, breaker: 'open' },
      ],
      hours: new Map([['d1', hour({ failed: 1 })]]),
      expired: new Map([['d2', { count: 1, since: ago(90) }]]),
      hour: hour({ rejected: 100 }),
    }),
    ['store', 'books', 'breaker d2', 'waiting d1', 'expired d2', 'rejected', 'failed d1'],
  )
})

test('an hour and the hour before, of steps', () => {
  const step = (minutes: number, given: Partial<Point> = {}): Point => ({ at: ago(minutes), ...given })
  const points = [
    step(120, { delivered: 1 }),
    step(90, { failed: 2 }),
    step(60, { delivered: 4 }),
    step(30, { retried: 8, rejected: { a: 1 }, expired: 3 }),
  ]
  const { now, before, failingSince, rejectingSince } = hourAndBefore(points)
  assert.deepEqual([before.delivered, before.failed, now.delivered, now.retried, now.rejected], [1, 2, 4, 8, 1])
  assert.deepEqual([failingSince, rejectingSince], [ago(30), ago(30)])
  assert.deepEqual(expiredIn(points), { count: 3, since: ago(30) })
  assert.deepEqual(expiredIn([]), { count: 0, since: null })
})

test('nothing is said to have begun before its destination was there, however long the steps are that are counted', () => {
  const destinations = [{ id: 'd1', name: 'Warehouse', enabled: true, paused: false, createdAt: ago(2) }]
  assert.equal(only({ destinations, expired: new Map([['d1', { count: 3, since: ago(58) }]]) }).since, ago(2))
  assert.equal(only({ destinations, hours: new Map([['d1', hour({ delivered: 10, failed: 1 })]]) }).since, ago(2))
  const older = [{ id: 'd1', name: 'Warehouse', enabled: true, paused: false, createdAt: ago(90) }]
  assert.equal(only({ destinations: older, expired: new Map([['d1', { count: 3, since: ago(58) }]]) }).since, ago(58))
})
