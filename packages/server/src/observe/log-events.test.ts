import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import type { Watcher } from './events/events.ts'
import { AT_MS, accepted, attempted, destination } from './fixtures/events.ts'
import { createEventLog } from './log-events.ts'

type Line = { level: number; msg: string; [field: string]: unknown }

function logging(level: string): { lines: Line[]; log: Watcher; clock: { nowMs: number } } {
  const lines: Line[] = []
  const clock = { nowMs: AT_MS }
  const log = pino({ level, base: null, timestamp: false }, { write: (line: string) => void lines.push(JSON.parse(line) as Line) })
  return { lines, clock, log: createEventLog(log, () => clock.nowMs) }
}

test('a failed attempt is logged with its ids and without secrets', () => {
  const { lines, log } = logging('info')
  log.attempted?.(attempted('d', 'temporary', { attempt: 3, traceId: 'a-trace' }))
  log.attempted?.(attempted('d', 'success'))
  assert.deepEqual(lines, [
    {
      level: 40,
      destinationId: 'd',
      sourceId: 's',
      deliveryId: '1-0',
      messageId: 'm',
      messages: 1,
      attempt: 3,
      traceId: 'a-trace',
      url: 'https://example.com/hook',
      reason: 'http_500',
      status: 500,
      totalMs: 20,
      msg: 'the attempt failed; will retry within the retry window',
    },
  ])
})

test('a timeout is logged as an error with its duration', () => {
  const { lines, log } = logging('info')
  const { outcome } = attempted('d', 'temporary')
  log.attempted?.(attempted('d', 'temporary', { outcome: { ...outcome, reason: 'timeout', status: null } }))
  assert.equal(lines[0]?.level, 50)
  assert.match(lines[0]?.msg ?? '', /timeout: no response within 5000 ms/)
})

test('the timeout of an email is logged with the deadline that passed', () => {
  const { lines, log } = logging('info')
  const event = attempted('d', 'temporary')
  const error = 'The deadline of 60000 ms passed while waiting for the mail server to confirm the email.'
  const email = { ...event.destination, urls: ['smtps://mail.example.com'] } as typeof event.destination
  log.attempted?.({ ...event, destination: email, outcome: { ...event.outcome, reason: 'timeout', status: null, error } })
  assert.equal(lines[0]?.msg, `timeout: ${error.slice(0, -1)}; will retry within the retry window`)
})

test('rejections are logged once a minute for each source and code, with the number of messages', () => {
  const { lines, log, clock } = logging('info')
  const reject = (code: string, messages: number): void => log.rejected?.({ sourceId: 's', code, messages, sample: 'never logged' })
  reject('event_required', 1)
  for (let at = 0; at < 1_000; at++) reject('event_required', 2)
  reject('invalid_json', 1)
  clock.nowMs += 60_000
  reject('event_required', 3)
  assert.deepEqual(
    lines.map(({ sourceId, code, messages, msg }) => [sourceId, code, messages, msg]),
    [
      ['s', 'event_required', 1, 'messages are being rejected'],
      ['s', 'invalid_json', 1, 'messages are being rejected'],
      ['s', 'event_required', 2_003, 'messages are being rejected'],
    ],
  )
  assert.doesNotMatch(JSON.stringify(lines), /never logged/)
})

test('setting the wall clock far back does not silence the log', () => {
  const { lines, log, clock } = logging('info')
  for (const back of [0, 86_400_000]) {
    clock.nowMs -= back
    log.rejected?.({ sourceId: null, code: 'invalid_write_key', messages: 1, sample: '' })
  }
  assert.equal(lines.length, 2)
})

test('at debug, successes and every rejection are logged too', () => {
  const { lines, log } = logging('debug')
  log.accepted?.(accepted('s', [{}, {}], [1]))
  log.attempted?.(attempted('d', 'success'))
  for (let at = 0; at < 2; at++) log.rejected?.({ sourceId: 's', code: 'invalid_json', messages: 1, sample: '' })
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    ['messages were accepted', 'the attempt succeeded', 'messages were rejected', 'messages are being rejected', 'messages were rejected'],
  )
  assert.deepEqual(lines[0], { level: 20, sourceId: 's', messages: 2, duplicates: 1, bytes: 100, msg: 'messages were accepted' })
})

test('opening and closing the circuit breaker is logged, and so is a result that could not be recorded', () => {
  const { lines, log } = logging('info')
  log.breaker?.(destination('d'), 'open')
  log.breaker?.(destination('d'), 'closed')
  log.trouble?.(destination('d'), new Error('refused'))
  assert.deepEqual(
    lines.map(({ level, destinationId }) => [level, destinationId]),
    [
      [40, 'd'],
      [30, 'd'],
      [50, 'd'],
    ],
  )
})
