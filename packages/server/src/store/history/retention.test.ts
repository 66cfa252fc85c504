import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Droppers, retentionLines, retentionRuns } from './retention.ts'

const DAY_MS = 86_400_000
const NOON_MS = Date.UTC(2026, 5, 15, 12)
const MIDNIGHT_MS = Date.UTC(2026, 5, 15)

/** Droppers that each have `steps` steps to make, and the calls that they got. */
function recorded(steps: number, onCall: (call: string) => unknown = () => undefined) {
  const calls: string[] = []
  const left = new Map<string, number>()
  const call = async (name: string, ...days: number[]): Promise<number> => {
    calls.push([name, ...days.map((ms) => (NOON_MS - ms) / DAY_MS)].join(' '))
    await onCall(name)
    const remaining = (left.get(name) ?? steps) - 1
    left.set(name, remaining)
    return remaining > 0 ? 1 : 0
  }
  const drop: Droppers = {
    quarantined: (beforeMs) => call('quarantined', beforeMs),
    messages: (beforeMs) => call('messages', beforeMs),
    audit: (beforeMs) => call('audit', beforeMs),
    replayJobs: (beforeMs) => call('jobs', beforeMs),
    endDeletions: (beforeMs) => call('deletions', beforeMs),
    packed: (nowMs) => call('packed', nowMs),
    stats: (minutesBeforeMs, hoursBeforeMs) => call('stats', minutesBeforeMs, hoursBeforeMs),
  }
  return { calls, drop }
}

test('messages are dropped by whole days, the audit log after 400 days and counts per hour after 90 days', () => {
  assert.deepEqual(retentionLines(NOON_MS, 30, 14), {
    messagesMs: MIDNIGHT_MS - 30 * DAY_MS,
    auditMs: NOON_MS - 400 * DAY_MS,
    statHoursMs: NOON_MS - 90 * DAY_MS,
    quarantinedMs: NOON_MS - 14 * DAY_MS,
  })
})

test('nothing is dropped before the messages of the same time', () => {
  const messagesMs = MIDNIGHT_MS - 1_000 * DAY_MS
  assert.deepEqual(retentionLines(NOON_MS, 1_000, null), {
    messagesMs,
    auditMs: messagesMs,
    statHoursMs: messagesMs,
    quarantinedMs: null,
  })
})

test('a run drops messages in quarantine first, then messages, and repeats each step until nothing is left', async () => {
  const { calls, drop } = recorded(2)
  await retentionRuns({ retentionDays: 30, quarantineDays: 14, drop, isClosed: () => false })(NOON_MS)
  assert.deepEqual(calls, [
    'quarantined 14',
    'quarantined 14',
    'messages 30.5',
    'audit 400',
    'audit 400',
    'jobs 400',
    'jobs 400',
    'deletions 30.5',
    'packed 0',
    'packed 0',
    'stats 30.5 90',
    'stats 30.5 90',
  ])
})

test('a call during a run waits for that run, and the next call begins a new one', async () => {
  const { calls, drop } = recorded(1)
  const runs = retentionRuns({ retentionDays: 30, quarantineDays: null, drop, isClosed: () => false })
  assert.equal(runs.running, null)
  const run = runs(NOON_MS)
  assert.equal(runs.running, run)
  assert.equal(runs(NOON_MS + DAY_MS), run)
  await run
  assert.equal(runs.running, null)
  assert.equal(calls.length, 6)
  await runs(NOON_MS)
  assert.equal(calls.length, 12)
})

test('a run stops in the middle of its steps when the store is closed', async () => {
  let isClosed = false
  const { calls, drop } = recorded(1_000, (call) => {
    isClosed ||= call === 'audit'
  })
  await retentionRuns({ retentionDays: 30, quarantineDays: null, drop, isClosed: () => isClosed })(NOON_MS)
  assert.equal(calls.filter((call) => call.startsWith('audit')).length, 1)
  assert.ok(!calls.some((call) => /^(jobs|packed|stats)/.test(call)))
})
