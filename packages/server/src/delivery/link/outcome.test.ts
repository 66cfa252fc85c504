import assert from 'node:assert/strict'
import test from 'node:test'
import { describeStatus, parseRetryAfter, REASONS, reasonOfError, reasonOfLookupError, reasonOfTlsError } from './outcome.ts'

const failing = (code: string, message = 'x'): Error => Object.assign(new Error(message), { code })

test('a status is described in a sentence, with its name where it has one', () => {
  assert.equal(describeStatus(404), 'The receiver answered 404 Not Found.')
  assert.equal(describeStatus(599), 'The receiver answered 599.')
  assert.equal(describeStatus(302), 'The receiver answered 302 Found, and redirects are not followed.')
})

test('connection errors are temporary; refused addresses and certificates, and messages that the settings do not let pass, are permanent', () => {
  const permanent = Object.entries(REASONS).filter(([, [verdict]]) => verdict === 'permanent')
  assert.deepEqual(permanent.map(([code]) => code).sort(), [
    'address_refused',
    'already_loaded',
    'dropped_by_transformation',
    'integration_failed',
    'invalid_authentication',
    'invalid_payload',
    'invalid_request',
    'mail_invalid',
    'mail_refused',
    'mapping_failed',
    'no_subscription',
    'tls_expired',
    'tls_self_signed',
    'tls_untrusted',
    'tls_wrong_host',
    'transformation_failed',
  ])
})

test('every reason has a readable sentence', () => {
  for (const [code, [, sentence]] of Object.entries(REASONS)) assert.match(sentence, /^[A-Z].*\.$/, code)
})

test('errors of sockets and of undici are given their reasons', () => {
  const expected: [error: unknown, reason: string][] = [
    [failing('ECONNREFUSED'), 'connection_refused'],
    [failing('ECONNRESET'), 'connection_reset'],
    [failing('EPIPE'), 'connection_reset'],
    [failing('EHOSTUNREACH'), 'unreachable'],
    [failing('ENETUNREACH'), 'unreachable'],
    [failing('ETIMEDOUT'), 'timeout'],
    [failing('UND_ERR_SOCKET', 'other side closed'), 'connection_closed'],
    [failing('UND_ERR_SOCKET', 'bad response'), 'invalid_response'],
    [Object.assign(new Error('x'), { name: 'HTTPParserError' }), 'invalid_response'],
    [failing('UND_ERR_HEADERS_OVERFLOW'), 'invalid_response'],
    [failing('UND_ERR_INVALID_ARG'), 'invalid_request'],
    [failing('EMFILE'), 'connection_failed'],
    [new Error('no code'), 'connection_failed'],
    [undefined, 'connection_failed'],
  ]
  for (const [error, reason] of expected) assert.equal(reasonOfError(error), reason)
})

test('if several addresses fail, an error from a host takes precedence over a missing route', () => {
  assert.equal(reasonOfError(new AggregateError([failing('ENETUNREACH'), failing('ECONNREFUSED')])), 'connection_refused')
  assert.equal(reasonOfError(new AggregateError([failing('ENETUNREACH'), failing('EHOSTUNREACH')])), 'unreachable')
  assert.equal(reasonOfError(new AggregateError([])), 'connection_failed')
})

test('a name that does not exist is distinguished from a failing resolver', () => {
  assert.equal(reasonOfLookupError(failing('ENOTFOUND')), 'dns_not_found')
  assert.equal(reasonOfLookupError(failing('EAI_AGAIN')), 'dns_failure')
  assert.equal(reasonOfLookupError(failing('ECONNREFUSED')), 'dns_failure')
})

test('in a handshake, only certificate errors are permanent', () => {
  assert.equal(reasonOfTlsError(failing('DEPTH_ZERO_SELF_SIGNED_CERT')), 'tls_self_signed')
  assert.equal(reasonOfTlsError(failing('CERT_NOT_YET_VALID')), 'tls_expired')
  assert.equal(reasonOfTlsError(failing('UNABLE_TO_VERIFY_LEAF_SIGNATURE')), 'tls_untrusted')
  assert.equal(reasonOfTlsError(failing('ECONNRESET')), 'tls_failure')
  assert.equal(reasonOfTlsError(failing('ERR_SSL_WRONG_VERSION_NUMBER')), 'tls_failure')
})

test('Retry-After is read as seconds or in any of the three forms of an HTTP date', () => {
  const nowMs = Date.UTC(2030, 0, 2, 3, 4, 5)
  const forms: [header: string | string[] | undefined, expected: number | null][] = [
    ['120', 120_000],
    [' 0 ', 0],
    ['9999999999', 9_999_999_999_000],
    ['Wed, 02 Jan 2030 03:05:05 GMT', 60_000],
    ['Wednesday, 02-Jan-30 03:05:05 GMT', 60_000],
    ['Wed Jan  2 03:05:05 2030', 60_000],
    ['Wed, 02 Jan 2030 03:00:00 GMT', 0],
    [['7', '9'], 7_000],
    [[], null],
    [undefined, null],
  ]
  for (const [header, expected] of forms) assert.equal(parseRetryAfter(429, header, nowMs), expected, String(header))
})

test('an invalid Retry-After is ignored', () => {
  const wrong = [
    '',
    '-1',
    '1.5',
    '1e3',
    'soon',
    '5 apples',
    '99999999999999999999',
    'Wed, 99 Foo 2030 99:99:99 GMT',
    '2030-01-02T03:04:05Z',
  ]
  for (const header of wrong) assert.equal(parseRetryAfter(503, header, 0), null, header)
})

test('Retry-After counts on 429 and 503 only', () => {
  for (const status of [200, 301, 400, 408, 500, 502, 504]) assert.equal(parseRetryAfter(status, '10', 0), null)
  for (const status of [429, 503]) assert.equal(parseRetryAfter(status, '10', 0), 10_000)
})
