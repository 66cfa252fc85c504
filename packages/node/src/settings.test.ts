import assert from 'node:assert/strict'
import test from 'node:test'
import { platform } from '#platform'
import { type AnalyticsSettings, checkSettings } from './settings.ts'

const defaults: [setting: string, actual: (checked: ReturnType<typeof checkSettings>) => unknown, expected: unknown][] = [
  ['host and path', ({ url }) => url, 'http://localhost:8080/v1/batch'],
  ['historical', ({ historical }) => historical, false],
  ['maxRetries', ({ maxRetries }) => maxRetries, 3],
  ['flushAt', ({ flushAt }) => flushAt, 15],
  ['flushInterval', ({ flushIntervalMs }) => flushIntervalMs, 10_000],
  ['httpRequestTimeout', ({ requestTimeoutMs }) => requestTimeoutMs, 10_000],
  ['disable', ({ disable }) => disable, false],
  ['httpClient', ({ httpClient }) => httpClient, undefined],
  ['oauthSettings', ({ oauth }) => oauth, undefined],
  ['maxInFlight', ({ maxInFlight }) => maxInFlight, 8],
  ['highWaterMarkBytes', ({ highWaterBytes }) => highWaterBytes, 16 * 1024 * 1024],
  ['gzip', ({ gzip }) => gzip, false],
  ['spool', ({ spool }) => spool, undefined],
  ['handleSignals', ({ handleSignals }) => handleSignals, false],
]

for (const [setting, actual, expected] of defaults) {
  test(`${setting} is ${String(expected)} by default`, () => {
    // With a queue of its own size, because that default is a share of the machine's memory.
    assert.equal(actual(checkSettings({ writeKey: 'wk', maxQueueBytes: 2 ** 30 })), expected)
  })
}

test('undefined is the same as not set', () => {
  const names = [
    'host',
    'path',
    'historical',
    'maxRetries',
    'flushAt',
    'flushInterval',
    'httpRequestTimeout',
    'disable',
    'httpClient',
    'oauthSettings',
  ] as const
  const empty: AnalyticsSettings = { writeKey: 'wk', ...Object.fromEntries(names.map((name) => [name, undefined])) }
  assert.deepEqual(checkSettings(empty), checkSettings({ writeKey: 'wk' }))
})

test('a historical client sends to /v1/import, unless path is set', () => {
  assert.equal(checkSettings({ writeKey: 'wk', historical: true }).url, 'http://localhost:8080/v1/import')
  assert.equal(checkSettings({ writeKey: 'wk', historical: true, path: '/v1/batch' }).url, 'http://localhost:8080/v1/batch')
})

test('maxQueueBytes defaults to a quarter of memory, and at most 768 MiB', () => {
  const { maxQueueBytes } = checkSettings({ writeKey: 'wk' })
  assert.ok(maxQueueBytes > 0 && maxQueueBytes <= 768 * 1024 * 1024)
})

test('the high-water mark is at most half of what the queue and the spool hold', () => {
  const { highWaterBytes } = checkSettings({ writeKey: 'wk', maxQueueBytes: 1_000, highWaterMarkBytes: 5_000 })
  assert.equal(highWaterBytes, 500)
  assert.equal(checkSettings({ writeKey: 'wk', spool: { dir: 'd', maxBytes: 600 } }).highWaterBytes, 300)
})

test('maxEventsInBatch is an alias of flushAt, which takes precedence', () => {
  assert.equal(checkSettings({ writeKey: 'wk', maxEventsInBatch: 7 }).flushAt, 7)
  assert.equal(checkSettings({ writeKey: 'wk', maxEventsInBatch: 7, flushAt: 3 }).flushAt, 3)
})

test('the authorization server defaults to /oauth2 on the host', () => {
  const oauthSettings = { clientId: 'c', clientKey: 'k', keyId: 'i' }
  assert.equal(
    checkSettings({ writeKey: 'wk', host: 'https://eu.example.com/', oauthSettings }).oauth?.authServer,
    'https://eu.example.com/oauth2',
  )
  const given = { ...oauthSettings, authServer: 'https://auth.example.com/x/' }
  assert.equal(checkSettings({ writeKey: 'wk', oauthSettings: given }).oauth?.authServer, 'https://auth.example.com/x')
})

type Checked = ReturnType<typeof checkSettings>

const adjusted: [settings: Record<string, unknown>, actual: (checked: Checked) => unknown, expected: unknown, warning: RegExp][] = [
  [{ flushAt: 0 }, ({ flushAt }) => flushAt, 1, /^flushAt .* is 0; using 1 instead$/],
  [{ flushAt: '20' }, ({ flushAt }) => flushAt, 20, /^flushAt .* is "20"; using 20 instead$/],
  [{ maxEventsInBatch: '0' }, ({ flushAt }) => flushAt, 1, /^maxEventsInBatch .* is "0"; using 1 instead$/],
  [{ flushInterval: -5 }, ({ flushIntervalMs }) => flushIntervalMs, 0, /^flushInterval .* is -5; using 0 instead$/],
  [{ maxRetries: -1 }, ({ maxRetries }) => maxRetries, 0, /^maxRetries .* is -1; using 0 instead$/],
  // Nothing would ever be delivered within 1 ms.
  [{ httpRequestTimeout: 0 }, ({ requestTimeoutMs }) => requestTimeoutMs, 10_000, /^httpRequestTimeout .* is 0; using 10000 instead$/],
  [{ maxInFlight: 0 }, ({ maxInFlight }) => maxInFlight, 1, /^maxInFlight .* is 0; using 1 instead$/],
  [{ maxRateLimitDuration: '60' }, ({ maxRateLimitMs }) => maxRateLimitMs, 60_000, /^maxRateLimitDuration .* using 60 instead$/],
  [{ spool: { dir: 'd', maxBytes: '500' } }, ({ spool }) => spool?.maxBytes, 500, /^spool.maxBytes .* using 500 instead$/],
  [
    { oauthSettings: { clientId: 'c', clientKey: 'k', keyId: 'i', maxRetries: -1 } },
    ({ oauth }) => oauth?.maxRetries,
    0,
    /^oauthSettings.maxRetries .* is -1; using 0 instead$/,
  ],
]

for (const [settings, actual, expected, warning] of adjusted) {
  test(`${JSON.stringify(settings)} is adjusted, with one warning per process`, (t) => {
    const warn = t.mock.method(platform, 'warn', () => {})
    for (let client = 0; client < 2; client++) assert.equal(actual(checkSettings({ writeKey: 'wk', ...settings })), expected)
    assert.equal(warn.mock.callCount(), 1)
    assert.match(warn.mock.calls[0]?.arguments[0] ?? '', warning)
  })
}
