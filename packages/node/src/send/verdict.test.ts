import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Answer } from '../http/transport.ts'
import { backoffMs, judge, MAX_RETRY_AFTER_MS, parseRetryAfter } from './verdict.ts'

const NOW = Date.UTC(2026, 10, 15, 12)

function answer(status: number, headers: Record<string, string> = {}, text = ''): Answer {
  return { status, statusText: '', headers, text, isBodyFree: true }
}

const kinds: [statuses: number[], kind: string][] = [
  [[200, 201, 202, 204], 'delivered'],
  [[401], 'unauthorized'],
  [[408, 425, 429, 500, 502, 503, 504, 507, 511, 599], 'temporary'],
  [[301, 302, 304, 400, 403, 404, 410, 413, 422, 460, 501, 505], 'rejected'],
]

for (const [statuses, kind] of kinds) {
  test(`a response with status ${statuses.join(', ')} is ${kind}`, () => {
    for (const status of statuses) assert.equal(judge(answer(status), NOW).kind, kind, String(status))
  })
}

const retryAfters: [value: string | undefined, expected: number | undefined, meaning: string][] = [
  ['0', 1_000, '0 as a second'],
  ['0.3', 1_000, 'less than a second as a second'],
  ['7', 7_000, 'seconds'],
  ['1.5', 1_500, 'a part of a second'],
  [' 7 ', 7_000, 'seconds with spaces around'],
  ['Sun, 15 Nov 2026 12:00:30 GMT', 30_000, 'an HTTP date'],
  ['Sun, 15 Nov 2026 11:00:00 GMT', 1_000, 'a date that has passed as a second'],
  ['86400', MAX_RETRY_AFTER_MS, 'at most 300 s'],
  ['Mon, 15 Nov 2027 12:00:00 GMT', MAX_RETRY_AFTER_MS, 'at most 300 s for a date, too'],
  ['-5', undefined, 'a negative number as nothing'],
  ['soon', undefined, 'words as nothing'],
  ['', undefined, 'an empty header as nothing'],
  [undefined, undefined, 'a missing header as nothing'],
]

for (const [value, expected, meaning] of retryAfters) {
  test(`Retry-After reads ${meaning}`, () => assert.equal(parseRetryAfter(value, NOW), expected))
}

test('Retry-After reads a date without a zone as GMT, whatever the time zone of the machine', (t) => {
  const zone = process.env['TZ']
  t.after(() => {
    if (zone === undefined) delete process.env['TZ']
    else process.env['TZ'] = zone
  })
  process.env['TZ'] = 'America/New_York'
  assert.equal(parseRetryAfter('Sun Nov 15 12:00:30 2026', NOW), 30_000)
})

test('Retry-After counts only on 429 and 503', () => {
  for (const [status, expected] of [
    [429, 7_000],
    [503, 7_000],
    [500, undefined],
    [408, undefined],
  ] as const) {
    const verdict = judge(answer(status, { 'retry-after': '7' }), NOW)
    assert.equal(verdict.kind === 'temporary' && verdict.retryAfterMs, expected)
  }
})

for (const [text, statusText, expected] of [
  ['', '', '[400]'],
  ['', 'Foo', '[400] Foo'],
  ['', 'Foo ', '[400] Foo'],
  ['{"code":"","message":""}', 'Foo', '[400] Foo'],
  ['{"code":"invalid_json"}', '', '[400] invalid_json'],
  ['{"code":"invalid_json","message":"Not JSON."}', 'Foo', '[400] Foo invalid_json: Not JSON.'],
] as const) {
  test(`the error for the body ${text || '(empty)'} and the status text "${statusText}" is ${expected}`, () => {
    const verdict = judge({ ...answer(400, {}, text), statusText }, NOW)
    assert.equal(verdict.kind === 'rejected' && verdict.error.reason?.message, expected)
  })
}

test('each rejected message listed in a 200 gets its own code', () => {
  const body = { success: true, accepted: 1, rejected: [{ index: 1, messageId: 'm', code: 'event_required', message: 'No event.' }] }
  const verdict = judge(answer(200, {}, JSON.stringify(body)), NOW)
  assert.equal(verdict.kind, 'delivered')
  const rejected = verdict.kind === 'delivered' ? verdict.rejected : []
  assert.deepEqual(
    rejected.map(({ index, error }) => [index, error.code, error.message]),
    [[1, 'event_required', 'No event.']],
  )
})

test('no response body makes judge() throw', () => {
  const bodies = fc.oneof(
    fc.string(),
    fc.json(),
    fc.jsonValue().map((value) => `{"rejected":${JSON.stringify(value)}}`),
    fc.constantFrom('{"rejected":', '{"rejected":[null,1,{"index":"0"},{"index":-1}]}', 'null "rejected"'),
  )
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 599 }), bodies, fc.option(fc.string()), (status, text, header) => {
      const verdict = judge(answer(status, header === null ? {} : { 'retry-after': header }, text), NOW)
      if (verdict.kind === 'temporary' && verdict.retryAfterMs !== undefined) {
        assert.ok(verdict.retryAfterMs >= 0 && verdict.retryAfterMs <= MAX_RETRY_AFTER_MS)
      }
    }),
  )
})

test('backoff triples from 300 ms to 30 s, with the upper half random', () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((retry) => backoffMs(retry, 1)),
    [300, 900, 2_700, 8_100],
  )
  assert.equal(backoffMs(0, 0), 150)
  fc.assert(
    fc.property(fc.nat({ max: 2_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (retry, random) => {
      const ms = backoffMs(retry, random)
      assert.ok(ms >= 150 && ms <= 30_000)
    }),
  )
})
