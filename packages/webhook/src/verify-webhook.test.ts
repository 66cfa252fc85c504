import assert from 'node:assert/strict'
import test from 'node:test'
import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { generateSecret, type HeadersInput, signBody, signStandardWebhook, type VerifyOptions, verifyWebhook } from './index.ts'

const sharedSecret = 'a shared secret'
const signingSecret = generateSecret()
const ONE = '{"type":"track","messageId":"m-1"}'
const BATCH = `[${ONE},{"type":"track","messageId":"m-2"}]`
const NINE = Date.UTC(2026, 10, 14, 9)
const now = (): number => NINE

const xHeaders = (body: string): Record<string, string> => ({ 'x-signature': signBody(body, sharedSecret) })
const standardHeaders = (body: string): Record<string, string> => ({
  ...signStandardWebhook({ id: 'msg_1', timestampSeconds: NINE / 1000, body }, signingSecret),
})
const codeOf = (headers: HeadersInput, body: string | Uint8Array, options: VerifyOptions): string => {
  const result = verifyWebhook({ headers, body }, { now, ...options })
  return result.ok ? 'ok' : result.code
}

test('a single message is returned parsed, alone and as an array of one', () => {
  const result = verifyWebhook({ headers: { ...xHeaders(ONE), 'X-Attempt': '3', 'X-Replay': 'true' }, body: ONE }, { sharedSecret })
  const message = { type: 'track', messageId: 'm-1' }
  assert.deepEqual(result, { ok: true, body: ONE, payload: message, messages: [message], coverage: 'body', attempt: 3, replay: true })
})

test('a batch is returned completely, with its coverage', () => {
  const messages = JSON.parse(BATCH)
  const expected = { ok: true, body: BATCH, payload: messages, messages, attempt: undefined, replay: false }
  const allowing = { sharedSecret, allowUnprovenMessages: true }
  const byX = verifyWebhook({ headers: xHeaders(BATCH), body: Buffer.from(BATCH) }, allowing)
  assert.deepEqual(byX, { ...expected, coverage: 'first_message' })
  const byStandard = verifyWebhook({ headers: standardHeaders(BATCH), body: BATCH }, { signingSecrets: signingSecret, now })
  assert.deepEqual(byStandard, { ...expected, coverage: 'body', webhookId: 'msg_1' })
  const headers = { ...xHeaders(BATCH), ...standardHeaders(BATCH) }
  const byBoth = verifyWebhook({ headers, body: BATCH }, { sharedSecret, signingSecrets: signingSecret, now })
  assert.deepEqual(byBoth, { ...expected, coverage: 'body', webhookId: 'msg_1' })
})

test('a batch of which X-Signature proves only the first message is rejected, genuine or forged', () => {
  const forged = `[${ONE},{"type":"track","messageId":"forged"}]`
  for (const options of [{ sharedSecret }, { sharedSecret, allowUnprovenMessages: false }]) {
    assert.equal(codeOf(xHeaders(BATCH), BATCH, options), 'batch_unproven')
    // The signature of a single message, with another message put behind it.
    assert.equal(codeOf(xHeaders(ONE), forged, options), 'batch_unproven')
    assert.equal(codeOf(xHeaders(BATCH), BATCH.replace('m-1', 'm-0'), options), 'signature_invalid')
  }
  const result = verifyWebhook({ headers: xHeaders(BATCH), body: BATCH }, { sharedSecret })
  assert.deepEqual(result.ok ? result : [result.status, result.header, 'messages' in result], [401, 'x-signature', false])
})

test('X-Signature proves the whole of a batch of one message', () => {
  const result = verifyWebhook({ headers: xHeaders(`[${ONE}]`), body: `[${ONE}]` }, { sharedSecret })
  assert.deepEqual(result.ok && [result.messages.length, result.coverage], [1, 'body'])
})

test('with both kinds of secret both signatures are required, so that leaving out the stronger one does not help', () => {
  const options = { sharedSecret, signingSecrets: signingSecret }
  const both = { ...xHeaders(BATCH), ...standardHeaders(BATCH) }
  assert.equal(codeOf(both, BATCH, options), 'ok')
  assert.equal(codeOf(xHeaders(BATCH), BATCH, options), 'signature_missing')
  assert.equal(codeOf(standardHeaders(BATCH), BATCH, options), 'signature_missing')
  assert.equal(codeOf({ ...both, 'x-signature': '0'.repeat(40) }, BATCH, options), 'signature_invalid')
  assert.equal(codeOf(both, BATCH.replace('m-2', 'm-3'), options), 'signature_invalid')
  assert.equal(codeOf({ ...both, 'webhook-signature': 'v2,x' }, BATCH, options), 'signature_missing')
})

test('the webhook-id of an unverified scheme is not reported', () => {
  const result = verifyWebhook({ headers: { ...xHeaders(ONE), 'webhook-id': 'forged' }, body: ONE }, { sharedSecret })
  assert.equal(result.ok && 'webhookId' in result, false)
})

const plain = { ...xHeaders(ONE), ...standardHeaders(ONE) }
const shapes: [title: string, headers: HeadersInput][] = [
  ['an object in lower case', plain],
  ['an object in upper case', Object.fromEntries(Object.entries(plain).map(([name, value]) => [name.toUpperCase(), value]))],
  ['an object of arrays', Object.fromEntries(Object.entries(plain).map(([name, value]) => [name, [value]]))],
  ['an object without a prototype', Object.assign(Object.create(null), plain)],
  ['Headers', new Headers(plain)],
  ['something with get alone', { get: (name: string) => plain[name] ?? null }],
  ['a Map in any letter case', new Map(Object.entries(plain).map(([name, value]) => [name.toUpperCase(), value]))],
  ['a list of pairs', Object.entries(plain)],
]

for (const [title, headers] of shapes) {
  test(`headers may be ${title}`, () => assert.equal(codeOf(headers, ONE, { sharedSecret, signingSecrets: signingSecret }), 'ok'))
}

for (const name of ['x-signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature']) {
  test(`a repeated ${name} is rejected in every form, even if both values are equal`, () => {
    const value = plain[name] ?? ''
    const options = { sharedSecret, signingSecrets: signingSecret }
    const joined = name === 'webhook-signature' ? 'header_invalid' : 'header_repeated'
    const repeated = new Headers(plain)
    repeated.append(name, value)
    assert.equal(codeOf(repeated, ONE, options), joined)
    assert.equal(codeOf({ ...plain, [name]: `${value},${value}` }, ONE, options), joined)
    assert.equal(codeOf({ ...plain, [name]: [value, value] }, ONE, options), 'header_repeated')
    assert.equal(codeOf({ ...plain, [name.toUpperCase()]: value }, ONE, options), 'header_repeated')
    assert.equal(codeOf([...Object.entries(plain), [name, value]], ONE, options), 'header_repeated')
  })
}

test('attempt and replay are read only if they are well formed', () => {
  const read = (headers: object): unknown => {
    const result = verifyWebhook({ headers: { ...xHeaders(ONE), ...headers }, body: ONE }, { sharedSecret })
    return result.ok && [result.attempt, result.replay]
  }
  assert.deepEqual(read({ 'x-attempt': '1', 'x-replay': 'false' }), [1, false])
  for (const attempt of ['0', '-1', '1.5', 'x', '', '1e3', '9'.repeat(30), '1, 2', ['1', '2']]) {
    assert.deepEqual(read({ 'x-attempt': attempt, 'x-replay': ['true', 'true'] }), [undefined, false])
  }
})

test('a body over the limit is rejected, counted in bytes', () => {
  const body = JSON.stringify({ note: 'é'.repeat(50) })
  assert.equal(Buffer.byteLength(body), 111)
  assert.equal(codeOf(xHeaders(body), body, { sharedSecret, maxBodyBytes: 111 }), 'ok')
  for (const form of [body, Buffer.from(body)])
    assert.equal(codeOf(xHeaders(body), form, { sharedSecret, maxBodyBytes: 110 }), 'body_too_large')
})

test('a signed body that is not UTF-8, or begins with a byte order mark, is not JSON', () => {
  for (const body of [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), Buffer.from('\ufeff{}')]) {
    assert.equal(codeOf({ 'x-signature': signBody(body, sharedSecret) }, body, { sharedSecret }), 'invalid_json')
  }
})

test('a batch nested deeper than the stack is rejected under either scheme', () => {
  const body = '['.repeat(400_000) + ']'.repeat(400_000)
  assert.equal(codeOf({ 'x-signature': '0'.repeat(40) }, body, { sharedSecret }), 'signature_invalid')
  assert.equal(codeOf(standardHeaders(body), body, { signingSecrets: signingSecret }), 'invalid_payload')
})

test('keys with a special meaning in JavaScript are plain data', () => {
  const body = '{"__proto__":{"admin":true},"constructor":1}'
  const result = verifyWebhook({ headers: xHeaders(body), body }, { sharedSecret })
  assert.equal(result.ok && JSON.stringify(result.payload), body)
  assert.equal(({} as Record<string, unknown>)['admin'], undefined)
})

test('any garbage in headers and body is rejected, never thrown', () => {
  const name = fc.constantFrom('x-signature', 'X-Signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature', 'get', '__proto__')
  const value = fc.oneof(fc.anything(), fc.constantFrom('1', `${NINE / 1000}`, 'v1,', '0'.repeat(40), `v1,${'A'.repeat(43)}=`, 'v1,a v1,b'))
  const headers = fc.oneof(
    fc.dictionary(name, value),
    fc.array(fc.tuple(name, value)),
    fc.array(fc.anything()),
    value.map((value) => ({ get: () => value })),
  )
  fc.assert(
    fc.property(headers, fc.oneof(fc.string(), fc.uint8Array(), fc.json()), (headers, body) => {
      for (const options of [{ sharedSecret }, { signingSecrets: signingSecret }, { sharedSecret, signingSecrets: signingSecret }]) {
        assert.notEqual(codeOf(headers as HeadersInput, body, options), 'ok')
      }
    }),
    { numRuns: 1000 },
  )
})

const mistakes: [title: string, options: unknown][] = [
  ['no options', undefined],
  ['no secret', {}],
  ['secrets that are undefined', { sharedSecret: undefined, signingSecrets: undefined }],
  [
    'one secret that is undefined beside one that is not, which would check less than was meant',
    { sharedSecret: 's', signingSecrets: undefined },
  ],
  ['an empty sharedSecret', { sharedSecret: '' }],
  ['an empty sharedSecret beside a good signing secret', { sharedSecret: '', signingSecrets: signingSecret }],
  ['no signing secret in the list', { signingSecrets: [], sharedSecret }],
  ['an empty signing secret', { signingSecrets: '' }],
  ['one malformed signing secret of two', { signingSecrets: [signingSecret, 'Sup3r-Secret'] }],
  ['a null secret', { sharedSecret: null }],
  ['a negative tolerance', { sharedSecret, toleranceSeconds: -1 }],
  ['an unlimited tolerance', { sharedSecret, toleranceSeconds: Number.POSITIVE_INFINITY }],
  ['a tolerance that is no number', { sharedSecret, toleranceSeconds: '300' }],
  ['a limit of no bytes', { sharedSecret, maxBodyBytes: 0 }],
  ['a limit that is not a number', { sharedSecret, maxBodyBytes: Number.NaN }],
  ['a deadline that setTimeout cannot hold', { sharedSecret, timeoutMs: 2 ** 31 }],
  ['a switch that is text', { sharedSecret, allowUnprovenMessages: 'false' }],
  ['a clock that is no function', { sharedSecret, now: NINE }],
]

for (const [title, options] of mistakes) {
  test(`${title} throws a TypeError that names no secret`, () => {
    assert.throws(
      () => verifyWebhook({ headers: plain, body: ONE }, options as VerifyOptions),
      (error) => error instanceof TypeError && !/Sup3r|whsec_[A-Za-z0-9]/.test(inspect(error)),
    )
  })
}

test('bytes of another realm are accepted', () => {
  const body = runInNewContext('new Uint8Array(codes)', { codes: [...Buffer.from(ONE)] }) as Uint8Array
  assert.equal(body instanceof Uint8Array, false)
  assert.equal(codeOf(xHeaders(ONE), body, { sharedSecret }), 'ok')
  assert.equal(codeOf(standardHeaders(ONE), body, { signingSecrets: signingSecret }), 'ok')
})

test('headers or a body of the wrong type throw', () => {
  assert.throws(() => verifyWebhook({ headers: undefined as unknown as HeadersInput, body: ONE }, { sharedSecret }), TypeError)
  assert.throws(() => verifyWebhook({ headers: plain, body: { type: 'track' } as unknown as string }, { sharedSecret }), TypeError)
})
