import assert from 'node:assert/strict'
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import test from 'node:test'
import { inspect } from 'node:util'
import fc from 'fast-check'
import {
  generateSecret,
  MAX_SECRET_BYTES,
  MIN_SECRET_BYTES,
  parseSigningSecret,
  type StandardWebhookHeaders,
  signStandardWebhook,
  standardWebhookSigner,
  type VerifyResult,
  verifyWebhook,
} from './index.ts'

const OLD = generateSecret()
const NEW = generateSecret()
const BODY = '{"type":"delete","userId":"u-1","timestamp":"2026-11-14T09:00:00.000Z"}'
const NINE = Date.UTC(2026, 10, 14, 9) / 1000

const sign = (secrets: string | string[], id = 'msg_1'): StandardWebhookHeaders =>
  signStandardWebhook({ id, timestampSeconds: NINE, body: BODY }, secrets)

const check = (headers: object, signingSecrets: string | string[], nowSeconds = NINE, toleranceSeconds?: number): VerifyResult =>
  verifyWebhook({ headers: { ...headers }, body: BODY }, { signingSecrets, toleranceSeconds, now: () => nowSeconds * 1000 })

const outcome = (result: VerifyResult): string => (result.ok ? 'ok' : result.code)

test('rotation: a request signed with two secrets verifies with the old, the new or both', () => {
  const both = sign([NEW, OLD])
  assert.equal(both['webhook-signature'].split(' ').length, 2)
  for (const secrets of [OLD, NEW, [OLD, NEW], [generateSecret(), OLD]]) assert.equal(outcome(check(both, secrets)), 'ok')
  assert.equal(outcome(check(sign(NEW), [OLD, NEW])), 'ok')
  assert.equal(outcome(check(sign(NEW), OLD)), 'signature_invalid')
  assert.equal(outcome(check(both, generateSecret())), 'signature_invalid')
})

test('a signer signs every webhook as signStandardWebhook does, and rejects invalid secrets when it is created', () => {
  const signer = standardWebhookSigner([NEW, OLD])
  for (const id of ['msg_1', 'msg_2', 'msg_1']) {
    assert.deepEqual(signer({ id, timestampSeconds: NINE, body: BODY }), sign([NEW, OLD], id))
  }
  assert.throws(() => signer({ id: 'a.b', timestampSeconds: NINE, body: BODY }), TypeError)
  for (const secrets of [[], ['whsec_!'], [NEW, OLD, generateSecret()]]) assert.throws(() => standardWebhookSigner(secrets), TypeError)
})

const edges: [title: string, nowSeconds: number, toleranceSeconds: number | undefined, expected: string][] = [
  ['exactly five minutes old passes', NINE + 300, undefined, 'ok'],
  ['a moment within the second still passes', NINE + 300.999, undefined, 'ok'],
  ['older than five minutes is refused', NINE + 301, undefined, 'timestamp_outside_tolerance'],
  ['exactly five minutes ahead passes', NINE - 300, undefined, 'ok'],
  ['further ahead is refused', NINE - 301, undefined, 'timestamp_outside_tolerance'],
  ['a tolerance that is set narrows it', NINE + 11, 10, 'timestamp_outside_tolerance'],
  ['a tolerance that is set widens it', NINE + 3600, 3600, 'ok'],
  ['no tolerance leaves the same second', NINE, 0, 'ok'],
  ['no tolerance refuses the next second', NINE + 1, 0, 'timestamp_outside_tolerance'],
  ['a broken clock refuses', Number.NaN, undefined, 'timestamp_outside_tolerance'],
]

for (const [title, nowSeconds, toleranceSeconds, expected] of edges) {
  test(`timestamps: ${title}`, () => assert.equal(outcome(check(sign(OLD), OLD, nowSeconds, toleranceSeconds)), expected))
}

test('the default clock is the current time', () => {
  const headers = signStandardWebhook({ id: 'msg_1', timestampSeconds: Math.floor(Date.now() / 1000), body: BODY }, OLD)
  assert.equal(outcome(verifyWebhook({ headers: { ...headers }, body: BODY }, { signingSecrets: OLD })), 'ok')
})

test('unknown signature versions are ignored, whatever they contain', () => {
  const { 'webhook-signature': known } = sign(OLD)
  for (const list of [`v2,??? ${known}`, `${known} v1a,${'A'.repeat(88)}`, `v1 ${known} `, `,, v11,x ${known}`]) {
    assert.equal(outcome(check({ ...sign(OLD), 'webhook-signature': list }, OLD)), 'ok')
  }
})

test('another base64 encoding of the same bytes does not verify', () => {
  const headers = sign(OLD)
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const last = headers['webhook-signature'].at(-2) ?? ''
  const twin = alphabet[alphabet.indexOf(last) + 1] ?? ''
  const spelled = `${headers['webhook-signature'].slice(0, -2)}${twin}=`
  assert.deepEqual(Buffer.from(spelled.slice(3), 'base64'), Buffer.from(headers['webhook-signature'].slice(3), 'base64'))
  assert.equal(outcome(check({ ...headers, 'webhook-signature': spelled }, OLD)), 'signature_invalid')
})

test('a header that is too long is rejected, even if it contains the right signature', () => {
  const { 'webhook-signature': known } = sign(OLD)
  for (const list of [
    `${known} ${'v2,x '.repeat(200_000)}`,
    `${known} ${' '.repeat(1_000_000)}`,
    `v1,${'A'.repeat(1_000_000)}=`,
    `${known} v2,${'A'.repeat(5000)}`,
  ]) {
    assert.equal(outcome(check({ ...sign(OLD), 'webhook-signature': list }, OLD)), 'header_invalid')
  }
})

test('every secret is compared with every signature, match or not', (t) => {
  const compare = t.mock.method(crypto, 'timingSafeEqual')
  syncBuiltinESMExports()
  t.after(() => {
    compare.mock.restore()
    syncBuiltinESMExports()
  })
  const wrong = `v1,${'A'.repeat(43)}=`
  const { 'webhook-signature': right } = sign(OLD)
  for (const list of [`${right} ${wrong} ${wrong}`, `${wrong} ${wrong} ${right}`, `${wrong} ${wrong} ${wrong}`]) {
    compare.mock.resetCalls()
    check({ ...sign(OLD), 'webhook-signature': list }, [OLD, NEW])
    assert.equal(compare.mock.callCount(), 6)
  }
})

test('a signed request verifies, and any flipped bit of id, body, signature or secret does not', () => {
  const id = fc.string({ unit: fc.constantFrom('a', 'Z', '0', '_', '-', ':', '/', '+', '=', '~', '!'), minLength: 1, maxLength: 256 })
  const time = fc.integer({ min: 0, max: 999_999_999_999 })
  const object = fc.dictionary(fc.string(), fc.jsonValue())
  fc.assert(
    fc.property(id, time, object, fc.nat(), (id, timestampSeconds, object, bit) => {
      const body = Buffer.from(JSON.stringify(object))
      const headers: Record<string, string> = { ...signStandardWebhook({ id, timestampSeconds, body }, OLD) }
      const now = (): number => timestampSeconds * 1000
      assert.equal(outcome(verifyWebhook({ headers, body }, { signingSecrets: OLD, now })), 'ok')
      assert.equal(outcome(verifyWebhook({ headers, body: flipped(body, bit) }, { signingSecrets: OLD, now })), 'signature_invalid')
      for (const name of ['webhook-id', 'webhook-signature']) {
        const changed = { ...headers, [name]: flipped(Buffer.from(headers[name] ?? ''), bit).toString('latin1') }
        assert.notEqual(outcome(verifyWebhook({ headers: changed, body }, { signingSecrets: OLD, now })), 'ok')
      }
      const otherSecret = flipped(Buffer.from(parseSigningSecret(OLD)), bit).toString('base64')
      assert.equal(outcome(verifyWebhook({ headers, body }, { signingSecrets: otherSecret, now })), 'signature_invalid')
    }),
  )
})

test('ids that could end a header or be ambiguous cannot be signed', () => {
  for (const id of ['', 'a.b', 'a,b', 'a b', 'a\r\nx: 1', 'a\n', 'é', '\0', 'x'.repeat(257), null, 7]) {
    assert.throws(() => sign(OLD, id as string), TypeError)
  }
})

test('times that are not whole seconds cannot be signed', () => {
  for (const timestampSeconds of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e21, Date.UTC(2026, 0)]) {
    assert.throws(() => signStandardWebhook({ id: 'msg_1', timestampSeconds, body: BODY }, OLD), TypeError)
  }
})

test('one or two secrets sign, none or three throw', () => {
  assert.throws(() => sign([]), TypeError)
  assert.throws(() => sign([OLD, NEW, OLD]), TypeError)
})

test('generated secrets have 32 bytes, or any length from 24 to 64', () => {
  assert.match(OLD, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.notEqual(OLD, NEW)
  for (const secretBytes of [MIN_SECRET_BYTES, 33, MAX_SECRET_BYTES]) {
    assert.equal(parseSigningSecret(generateSecret(secretBytes)).length, secretBytes)
  }
  for (const secretBytes of [0, 23, 65, 32.5, Number.NaN]) assert.throws(() => generateSecret(secretBytes), TypeError)
})

test('a secret is read with or without its prefix, and with or without its padding', () => {
  const key = parseSigningSecret(OLD)
  for (const spelling of [OLD.slice(6), OLD.replace('=', ''), OLD.slice(6, -1)]) assert.deepEqual(parseSigningSecret(spelling), key)
})

const CORE = 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const malformed: [title: string, secret: unknown][] = [
  ['a line break at the end', `whsec_${CORE}\n`],
  ['a space in front', ` whsec_${CORE}`],
  ['the prefix twice', `whsec_whsec_${CORE}`],
  ['another prefix', `whsk_${CORE}`],
  ['a hyphen for the underscore', `whsec-${CORE}`],
  ['padding too many', `whsec_${CORE}=`],
  ['padding too few', `whsec_${CORE}AA=`],
  ['a character too many', `whsec_${CORE}A`],
  ['bits left over', `whsec_${CORE}AB==`],
  ['the alphabet of base64url', `whsec_${CORE.slice(0, -1)}_`],
  ['nothing', ''],
  ['nothing after the prefix', 'whsec_'],
  ['padding alone', 'whsec_='],
  ['a number', 7],
  ['nothing at all', undefined],
]

for (const [title, secret] of malformed) {
  test(`a secret with ${title} throws, and the error does not repeat it`, () => {
    assert.throws(
      () => parseSigningSecret(secret),
      (error) => error instanceof TypeError && !inspect(error).includes(CORE.slice(0, 8)),
    )
  })
}

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes)
  const at = bit % (copy.length * 8)
  copy[at >> 3] = (copy[at >> 3] ?? 0) ^ (1 << (at & 7))
  return copy
}
