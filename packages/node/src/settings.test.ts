import assert from 'node:assert/strict'
import test from 'node:test'
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

test('undefined is the same as not given', () => {
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

test('history goes to /v1/import, unless another path is given', () => {
  assert.equal(checkSettings({ writeKey: 'wk', historical: true }).url, 'http://localhost:8080/v1/import')
  assert.equal(checkSettings({ writeKey: 'wk', historical: true, path: '/v1/batch' }).url, 'http://localhost:8080/v1/batch')
})

test('the queue holds at most a quarter of the memory there is, and at most 768 MiB', () => {
  const { maxQueueBytes } = checkSettings({ writeKey: 'wk' })
  assert.ok(maxQueueBytes > 0 && maxQueueBytes <= 768 * 1024 * 1024)
})

test('the high-water mark is at most half of what the queue and the spool hold', () => {
  const { highWaterBytes } = checkSettings({ writeKey: 'wk', maxQueueBytes: 1_000, highWaterMarkBytes: 5_000 })
  assert.equal(highWaterBytes, 500)
  assert.equal(checkSettings({ writeKey: 'wk', spool: { dir: 'd', maxBytes: 600 } }).highWaterBytes, 300)
})

test('maxEventsInBatch is another name of flushAt, which wins', () => {
  assert.equal(checkSettings({ writeKey: 'wk', maxEventsInBatch: 7 }).flushAt, 7)
  assert.equal(checkSettings({ writeKey: 'wk', maxEventsInBatch: 7, flushAt: 3 }).flushAt, 3)
})

test('the authorization server is the host’s /oauth2 unless it is given', () => {
  const oauthSettings = { clientId: 'c', clientKey: 'k', keyId: 'i' }
  assert.equal(
    checkSettings({ writeKey: 'wk', host: 'https://eu.example.com/', oauthSettings }).oauth?.authServer,
    'https://eu.example.com/oauth2',
  )
  const given = { ...oauthSettings, authServer: 'https://auth.example.com/x/' }
  assert.equal(checkSettings({ writeKey: 'wk', oauthSettings: given }).oauth?.authServer, 'https://auth.example.com/x')
})
