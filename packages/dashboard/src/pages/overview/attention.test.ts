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
  held: null,
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
    totals: [],
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

test('a healthy installation has no findings', () => {
  const health = [{ destinationId: 'd1', ...HEALTH, pending: 10, oldestPendingAt: ago(4) }]
  const ledger = [{ destinationId: 'd1', owed: 20, delivered: 10, pending: 10, failed: 0, expired: 0, cancelled: 0, quarantined: 0 }]
  const store = { isAvailable: true, message: '' }
  assert.deepEqual(ids({ health, ledger, store, hours: new Map([['d1', hour({ delivered: 10 })]]) }), [])
})

test('an open circuit breaker, with its start, its next probe and the backlog', () => {
  const row = {
    destinationId: 'd1',
    ...HEALTH,
    breaker: 'probing' as const,
    openSince: ago(12),
    pending: 1_234,
    oldestPendingAt: ago(13),
    nextAttemptAt: ago(-49 / 60),
  }
  assert.deepEqual(only({ health: [row] }), {
    id: 'breaker d1',
    severity: 'critical',
    subject: 'Warehouse',
    text: 'Circuit breaker open: recent attempts failed. Sending one probe at a time; next probe in 49 s. Backlog: 1,234 deliveries pending, the oldest for 13 min.',
    since: ago(12),
    href: '/destinations/d1',
    link: 'View destination',
  })
  assert.match(only({ health: [{ ...row, pending: 0, oldestPendingAt: null }] }).text, /Backlog: no deliveries pending\.$/)
  assert.match(only({ health: [{ ...row, pending: 1, oldestPendingAt: null }] }).text, /Backlog: 1 delivery pending\.$/)
  assert.deepEqual(ids({ health: [row, { ...row, destinationId: 'd2', pending: 5_000 }] }), ['breaker d2', 'breaker d1'])
})

test('messages in quarantine, by source', () => {
  const totals = [
    { sourceId: 's1', quarantined: 1 },
    { sourceId: 's2', quarantined: 1_250 },
    { sourceId: 's3', quarantined: 0 },
  ]
  const [deleted, shop, ...others] = findAttention(input({ totals }))
  assert.equal(others.length, 0)
  assert.deepEqual(
    [deleted?.subject, deleted?.text],
    [
      's2 (deleted)',
      '1,250 messages are in quarantine: stored, but not sent to any destination. The source was deleted, so they cannot be released, only deleted.',
    ],
  )
  assert.deepEqual(shop, {
    id: 'quarantine s1',
    severity: 'warning',
    subject: 'Shop',
    text: '1 message is in quarantine: stored, but not sent to any destination. Release or delete it.',
    since: null,
    href: '/plans?tab=quarantine&source=s1',
    link: 'View quarantine',
  })
})

test('an old backlog, unless a circuit breaker is open or the destination is paused or disabled', () => {
  const row = { destinationId: 'd1', ...HEALTH, pending: 3, oldestPendingAt: ago(6) }
  const finding = only({ health: [row] })
  assert.deepEqual([finding.severity, finding.since, finding.href], ['warning', ago(6), '/deliveries?destination=d1&state=pending'])
  assert.equal(finding.text, '3 deliveries pending, the oldest for 6 min.')
  assert.equal(only({ health: [{ ...row, oldestPendingAt: ago(61) }] }).severity, 'critical')
  assert.deepEqual(ids({ health: [{ ...row, oldestPendingAt: ago(5) }] }), [])
  assert.deepEqual(ids({ health: [{ ...row, breaker: 'open' }] }), ['breaker d1'])
  const held = (hold: { enabled: boolean; paused: boolean }): Partial<AttentionInput> => ({
    health: [{ ...row, breaker: 'open' }],
    destinations: [{ id: 'd1', name: 'Warehouse', ...hold }],
  })
  const disabled = only(held({ enabled: false, paused: true }))
  assert.deepEqual([disabled.id, disabled.severity], ['disabled d1', 'notice'])
  assert.equal(disabled.text, 'Disabled: 3 deliveries pending. Enable the destination to send them; new messages skip it.')
  const paused = only(held({ enabled: true, paused: true }))
  assert.deepEqual(
    [paused.id, paused.severity, paused.text],
    ['paused d1', 'notice', 'Paused: 3 deliveries pending. Resume the destination to send them.'],
  )
})

test('the growing backlog of a paused destination', () => {
  const destinations = [{ id: 'd1', name: 'Warehouse', enabled: true, paused: true }]
  const at = (pending: number) => ({ destinations, health: [{ destinationId: 'd1', ...HEALTH, pending, oldestPendingAt: ago(1) }] })
  const first = followHeld(new Map(), at(3))
  assert.equal(only({ ...at(3), heldBefore: first }).severity, 'notice')
  const seen = followHeld(first, at(1_010))
  const { severity, text } = only({ ...at(1_010), heldBefore: seen })
  assert.deepEqual(
    [severity, text],
    ['warning', 'Paused: 1,010 deliveries pending, 1,007 more than when this page was opened. Resume the destination to send them.'],
  )
  assert.deepEqual(followHeld(seen, { ...at(5), destinations: input().destinations }), new Map(), 'dropped when it is resumed')
})

test('a failure rate that is rising, or high', () => {
  const of = (now: Partial<Totals>, before: Partial<Totals> = {}) => ({ hours: new Map([['d1', hour(now, before)]]) })
  const up = only(of({ delivered: 90, retried: 10 }, { delivered: 99, retried: 1 }))
  assert.equal(up.text, '10% of 100 delivery attempts failed in the last hour, up from 1% in the hour before.')
  assert.deepEqual([up.severity, up.since, up.href], ['warning', ago(20), '/deliveries?destination=d1&state=pending'])
  assert.equal(only(of({ delivered: 50, failed: 50 })).text, '50% of 100 delivery attempts failed in the last hour.')
  assert.equal(only(of({ delivered: 50, failed: 50 })).href, '/deliveries?destination=d1&state=failed')
  assert.match(only(of({ delivered: 70, retried: 30 }, { delivered: 70, retried: 30 })).text, /, after 30% in the hour before\.$/)
  // Hardly higher than before, or of few attempts.
  assert.deepEqual(ids(of({ delivered: 96, retried: 4 }, { delivered: 99, retried: 1 })), [])
  assert.deepEqual(ids(of({ delivered: 85, retried: 15 }, { delivered: 90, retried: 10 })), [])
  assert.deepEqual(ids(of({ delivered: 1, retried: 18 })), [])
  // The hour before has too few attempts to compare with.
  assert.deepEqual(ids(of({ delivered: 90, retried: 10 }, { delivered: 10 })), [])
  assert.deepEqual(ids({ ...of({ retried: 100 }), health: [{ destinationId: 'd1', ...HEALTH, breaker: 'open' }] }), ['breaker d1'])
  const two = new Map([
    ['d1', hour({ delivered: 70, retried: 30 })],
    ['d2', hour({ retried: 50 })],
  ])
  assert.deepEqual(ids({ hours: two }), ['rate d2', 'rate d1'])
})

test('failures of too few attempts for a rate are a notice', () => {
  const finding = only({ hours: new Map([['d1', hour({ delivered: 1, failed: 1 })]]) })
  assert.deepEqual([finding.id, finding.severity, finding.text], ['failed d1', 'notice', '1 delivery failed permanently in the last hour.'])
})

test('deliveries that expired in the last 24 hours', () => {
  const finding = only({
    expired: new Map([
      ['d1', { count: 7, since: ago(300) }],
      ['d2', { count: 0, since: null }],
    ]),
  })
  assert.deepEqual([finding.severity, finding.since, finding.href], ['warning', ago(300), '/deliveries?destination=d1&state=expired'])
  assert.match(finding.text, /^7 deliveries expired in the last 24 hours: the retry window ended\./)
})

test('rising rejections, with a link to the source of the last one', () => {
  const rejections = [
    { sourceId: 's1', code: 'invalid_json', count: 30, lastAt: ago(1), lastSample: '' },
    { sourceId: null, code: 'unknown_write_key', count: 90, lastAt: ago(50), lastSample: '' },
  ]
  const finding = only({ hour: hour({ rejected: 40 }, { rejected: 4 }), rejections })
  assert.equal(finding.text, '40 messages were rejected in the last hour, 4 in the hour before. Last: invalid_json from Shop.')
  assert.deepEqual([finding.since, finding.href], [ago(30), '/sources/s1'])
  assert.equal(only({ hour: hour({ rejected: 40 }), rejections: [] }).href, '/sources')
  assert.deepEqual(ids({ hour: hour({ rejected: 19 }) }), [])
  assert.deepEqual(ids({ hour: hour({ rejected: 40 }, { rejected: 30 }) }), [])
})

test('nodes without a heartbeat, lost nodes, and mixed versions', () => {
  const silent = { ...NODE, name: 'b:8080', current: false, seenAt: new Date(NOW_MS - 8_000).toISOString() }
  assert.deepEqual(ids({ nodes: [NODE, { ...silent, seenAt: new Date(NOW_MS - 2_000).toISOString() }] }), [])
  assert.match(only({ nodes: [NODE, silent] }).text, /^No heartbeat for 8 s\./)
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

test('a lost node is remembered until it is back or half an hour has passed', () => {
  const other = { ...NODE, name: 'b:8080', current: false }
  const first = followNodes(new Map(), [NODE, other], 600_000)
  assert.deepEqual(first.gone, [])
  const later = { ...NODE, seenAt: ago(-1) }
  const second = followNodes(first.remembered, [later], 600_000)
  assert.deepEqual(second.gone, [other])
  assert.deepEqual(followNodes(second.remembered, [later, { ...other, seenAt: ago(-1) }], 600_000).gone, [])
  assert.deepEqual(followNodes(second.remembered, [{ ...NODE, seenAt: ago(-11) }], 600_000).gone, [])
})

test('findings are sorted by severity', () => {
  assert.deepEqual(
    ids({
      store: { isAvailable: false, message: 'the disk is full.' },
      ledger: [{ destinationId: 'd1', owed: 5, delivered: 3, pending: 1, failed: 0, expired: 0, cancelled: 0, quarantined: 0 }],
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

test('time steps are split into the last hour and the hour before', () => {
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

test('no finding starts before its destination was created, even if its time step does', () => {
  const destinations = [{ id: 'd1', name: 'Warehouse', enabled: true, paused: false, createdAt: ago(2) }]
  assert.equal(only({ destinations, expired: new Map([['d1', { count: 3, since: ago(58) }]]) }).since, ago(2))
  assert.equal(only({ destinations, hours: new Map([['d1', hour({ delivered: 10, failed: 1 })]]) }).since, ago(2))
  const older = [{ id: 'd1', name: 'Warehouse', enabled: true, paused: false, createdAt: ago(90) }]
  assert.equal(only({ destinations: older, expired: new Map([['d1', { count: 3, since: ago(58) }]]) }).since, ago(58))
})

test('a destination that does not fit its integration is one finding, with its backlog, unless it is paused', () => {
  const held = 'subscriptions[0].action is post, which the installed version of the integration does not have.'
  const health = [{ ...HEALTH, destinationId: 'd1', held, pending: 3, oldestPendingAt: ago(90) }]
  const finding = only({ health })
  assert.deepEqual([finding.severity, finding.subject, finding.since], ['critical', 'Warehouse', ago(90)])
  assert.match(finding.text, /does not fit the installed version.*subscriptions\[0\]\.action is post.*Backlog: 3 deliveries pending/)
  const destinations = [{ id: 'd1', name: 'Warehouse', enabled: true, paused: true }]
  assert.equal(only({ health, destinations }).id, 'paused d1')
})
