// Which settings of a destination are accepted, and how others are rejected.

import assert from 'node:assert/strict'
import test from 'node:test'
import { generateSecret } from '@switchyard/webhook'
import { startControl } from '../fixtures/start-control.ts'

const HOOK = { name: 'Hook', urls: ['https://example.com/hook'] }
const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `https://example.com/${index}`)

const taken: [title: string, settings: object][] = [
  ['five URLs', { urls: many(5) }],
  ['plain HTTP with a port, a query and an address', { urls: ['http://192.0.2.1:8080/a/b?c=d&e=%20', 'http://[2001:db8::1]/'] }],
  ['a URL of 2048 characters', { urls: [`https://example.com/${'x'.repeat(2028)}`] }],
  ['fifty headers', { headers: Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`X-${index}`, 'v'])) }],
  ['an Authorization header', { headers: { Authorization: 'Bearer abc', "X!#$%&'*+-.^_`|~": 'a\tb c' } }],
  ['an empty header value', { headers: { 'X-Empty': '' } }],
  ['the smallest limits', { batch: { size: 1, bytes: 1, lingerMs: 0 }, timeoutMs: 100, retryWindowMs: 1_000, maxInFlight: 1 }],
  [
    'the largest limits',
    { batch: { size: 1000, bytes: 5_242_880, lingerMs: 60_000 }, timeoutMs: 5_000, retryWindowMs: 1_209_600_000, maxInFlight: 1000 },
  ],
  ['a name that only resembles a reserved one', { name: 'webhooks' }],
]

test('accepts settings within the limits', async (t) => {
  const { call } = await startControl(t)
  for (const [title, settings] of taken) {
    await t.test(`takes ${title}`, async () => {
      const { status, body } = await call('POST', '/api/destinations', { ...HOOK, ...settings })
      assert.equal(status, 201, JSON.stringify(body))
      for (const [name, value] of Object.entries(settings)) assert.deepEqual(body[name], value)
    })
  }
})

const refused: [title: string, settings: object, field: string, code?: string][] = [
  ['no URL', { urls: [] }, 'urls'],
  ['six URLs', { urls: many(6) }, 'urls'],
  ['the same URL twice', { urls: ['https://example.com/a', 'https://EXAMPLE.com:443/a'] }, 'urls[1]'],
  ['another scheme', { urls: ['ftp://example.com'] }, 'urls[0]'],
  ['a script', { urls: ['javascript:alert(1)'] }, 'urls[0]'],
  ['no scheme', { urls: ['example.com/hook'] }, 'urls[0]'],
  ['a URL without a host', { urls: ['https://'] }, 'urls[0]'],
  ['a URL with a bad port', { urls: ['https://example.com:99999/'] }, 'urls[0]'],
  ['a fragment', { urls: ['https://example.com/#a'] }, 'urls[0]'],
  ['an empty fragment', { urls: ['https://example.com/#'] }, 'urls[0]'],
  ['a password in the URL', { urls: ['https://user:pass@example.com/'] }, 'urls[0]'],
  ['a space in the URL', { urls: ['https://example.com/a b'] }, 'urls[0]'],
  ['a line break in the URL', { urls: ['https://example.com/a\nb'] }, 'urls[0]'],
  ['a backslash in the URL', { urls: ['https://example.com\\@evil.example/'] }, 'urls[0]'],
  ['a URL of 2049 characters', { urls: [`https://example.com/${'x'.repeat(2029)}`] }, 'urls[0]'],
  ['a URL that is no string', { urls: [7] }, 'urls[0]'],
  ['a header name with a space', { headers: { 'X A': 'b' } }, 'headers.X A'],
  ['a header name with a colon', { headers: { 'X:A': 'b' } }, 'headers.X:A'],
  ['an empty header name', { headers: { '': 'b' } }, 'headers.'],
  ['a header value with a line break', { headers: { 'X-A': 'b\r\nX-B: c' } }, 'headers.X-A'],
  ['a header value with NUL', { headers: { 'X-A': 'b\0' } }, 'headers.X-A'],
  ['a header value beyond ASCII', { headers: { 'X-A': 'ü' } }, 'headers.X-A'],
  ['a header value that is a list', { headers: { 'X-A': ['b'] } }, 'headers.X-A'],
  ['a header value over 4096 characters', { headers: { 'X-A': 'b'.repeat(4097) } }, 'headers.X-A'],
  ['a header twice in different case', { headers: { 'X-A': 'b', 'x-a': 'c' } }, 'headers'],
  ['fifty-one headers', { headers: Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`X-${index}`, 'v'])) }, 'headers'],
  ['over 12 KB of headers', { headers: Object.fromEntries(['A', 'B', 'C', 'D'].map((name) => [name, 'v'.repeat(4000)])) }, 'headers'],
  ['an empty shared secret', { sharedSecret: '' }, 'sharedSecret'],
  ['a shared secret that is no string', { sharedSecret: 7 }, 'sharedSecret'],
  ['three signing secrets', { signingSecrets: [generateSecret(), generateSecret(), generateSecret()] }, 'signingSecrets'],
  ['a signing secret without its prefix', { signingSecrets: [generateSecret().slice(6)] }, 'signingSecrets[0]'],
  ['a signing secret that is not base64', { signingSecrets: [generateSecret(), 'whsec_!!!'] }, 'signingSecrets[1]'],
  ['an empty signing secret', { signingSecrets: ['whsec_'] }, 'signingSecrets[0]'],
  ['a batch of none', { batch: { size: 0 } }, 'batch.size'],
  ['a batch of 1001', { batch: { size: 1001 } }, 'batch.size'],
  ['a batch over 5 MB', { batch: { bytes: 5_242_881 } }, 'batch.bytes'],
  ['a linger of over a minute', { batch: { lingerMs: 60_001 } }, 'batch.lingerMs'],
  ['an unknown batch setting', { batch: { count: 1 } }, 'batch.count', 'unknown_field'],
  ['a batch that is a number', { batch: 10 }, 'batch'],
  ['a timeout below 100 ms', { timeoutMs: 99 }, 'timeoutMs'],
  ['a timeout over 5 s', { timeoutMs: 5_001 }, 'timeoutMs'],
  ['a window below a second', { retryWindowMs: 999 }, 'retryWindowMs'],
  ['a window over 14 days', { retryWindowMs: 14 * 86_400_000 + 1 }, 'retryWindowMs'],
  ['two different windows', { retryWindowMs: 2_000, retry: { windowMs: 3_000 } }, 'retryWindowMs'],
  ['a policy with a window over 14 days', { retry: { windowMs: 14 * 86_400_000 + 1 } }, 'retry.windowMs'],
  ['a first wait under 100 ms', { retry: { initialMs: 99 } }, 'retry.initialMs'],
  ['a first wait over an hour', { retry: { initialMs: 3_600_001 } }, 'retry.initialMs'],
  ['a longest wait over a day', { retry: { maxMs: 86_400_001 } }, 'retry.maxMs'],
  ['a longest wait that is shorter than the first', { retry: { initialMs: 2_000, maxMs: 1_999 } }, 'retry.maxMs'],
  ['a factor below 1', { retry: { factor: 0.99 } }, 'retry.factor'],
  ['a factor over 10', { retry: { factor: 10.1 } }, 'retry.factor'],
  ['a success that is retried', { retry: { retryStatuses: [204] } }, 'retry.retryStatuses[0]'],
  ['a status that is no HTTP status', { retry: { failStatuses: [503, 600] } }, 'retry.failStatuses[1]'],
  ['the same status twice', { retry: { failStatuses: [503, 503] } }, 'retry.failStatuses[1]'],
  ['a status that is both retried and not', { retry: { retryStatuses: [409], failStatuses: [503, 409] } }, 'retry.failStatuses'],
  ['nothing in flight', { maxInFlight: 0 }, 'maxInFlight'],
  ['over 1000 in flight', { maxInFlight: 1001 }, 'maxInFlight'],
  ['historical as text', { historical: 'no' }, 'historical'],
  ['the name All', { name: 'All' }, 'name'],
  ['the name Webhooks', { name: 'Webhooks' }, 'name'],
  ['another type', { type: 'queue' }, 'type'],
  ['a field that is only answered', { hasSharedSecret: true }, 'hasSharedSecret', 'unknown_field'],
  ['a source twice', { sourceIds: ['a', 'a'] }, 'sourceIds[1]'],
  ['a header of the trace', { headers: { TraceParent: 'x' } }, 'headers.TraceParent'],
  ['a header of the trace state', { headers: { tracestate: 'x' } }, 'headers.tracestate'],
  ['a subscribe expression that is empty', { subscribe: '' }, 'subscribe'],
  ['a subscribe expression that is a list', { subscribe: ['type = track'] }, 'subscribe'],
  ['a subscribe expression that is too long', { subscribe: `event = "${'a'.repeat(8_192)}"` }, 'subscribe'],
  ['a filter that is a list', { filter: ['track'] }, 'filter'],
  ['a filter by something else', { filter: { users: {} } }, 'filter.users', 'unknown_field'],
  ['a filter by a type that there is not', { filter: { types: { allow: ['Track'] } } }, 'filter.types.allow[0]'],
  ['a filter of deletions', { filter: { types: { deny: ['delete'] } } }, 'filter.types.deny[0]'],
  ['a type twice', { filter: { types: { deny: ['page', 'page'] } } }, 'filter.types.deny[1]'],
  ['an event without a name', { filter: { events: { allow: [''] } } }, 'filter.events.allow[0]'],
  ['an event name that is a number', { filter: { events: { deny: [1] } } }, 'filter.events.deny[0]'],
  ['over 1000 events', { filter: { events: { deny: Array.from({ length: 1_001 }, (_, at) => `e${at}`) } } }, 'filter.events.deny'],
]

test('rejects settings beyond the limits, when a destination is created and when it is changed', async (t) => {
  const { call, store } = await startControl(t)
  const { body: destination } = await call('POST', '/api/destinations', HOOK)
  for (const [title, settings, field, code = 'invalid_field'] of refused) {
    await t.test(`refuses ${title}`, async () => {
      const created = await call('POST', '/api/destinations', { ...HOOK, ...settings })
      assert.deepEqual([created.status, created.body.code, created.body.field], [400, code, field])
      const changed = await call('PATCH', `/api/destinations/${destination.id}`, settings)
      assert.deepEqual([changed.status, changed.body.code, changed.body.field], [400, code, field])
    })
  }
  assert.equal(store.configuration().destinations.size, 1)
  assert.deepEqual((await call('GET', `/api/destinations/${destination.id}`)).body, destination)
})

test('a setting that is almost right gets a suggestion', async (t) => {
  const { call } = await startControl(t)
  const { urls, ...rest } = HOOK
  const { status, body } = await call('POST', '/api/destinations', { ...rest, url: urls[0] })
  assert.deepEqual([status, body.code, body.message], [400, 'unknown_field', 'url is not a known field. Did you mean urls?'])
})

test('rejects headers that Switchyard or the connection sets, in upper and lower case', async (t) => {
  const { call } = await startControl(t)
  const names = 'Host Content-Length Content-Type User-Agent X-Signature X-Attempt X-Replay Connection Keep-Alive Proxy-Authorization'
  const more =
    'Proxy-Connection TE Trailer Transfer-Encoding Upgrade Expect webhook-id webhook-timestamp webhook-signature Webhook-Anything'
  for (const name of `${names} ${more}`.split(' ').flatMap((name) => [name, name.toLowerCase(), name.toUpperCase()])) {
    const { status, body } = await call('POST', '/api/destinations', { ...HOOK, headers: { [name]: 'x' } })
    assert.deepEqual([status, body.code, body.field], [400, 'invalid_field', `headers.${name}`])
  }
})

test('a URL that no attempt could connect to is rejected when it is set', async (t) => {
  const checkUrl = (url: string): string | null => (url.includes('127.0.0.1') ? 'leads to an address that is not public' : null)
  const { call } = await startControl(t, { checkUrl })
  const { status, body } = await call('POST', '/api/destinations', { ...HOOK, urls: ['https://example.com', 'http://127.0.0.1/'] })
  assert.deepEqual([status, body.field, body.message], [400, 'urls[1]', 'urls[1] leads to an address that is not public.'])
})
