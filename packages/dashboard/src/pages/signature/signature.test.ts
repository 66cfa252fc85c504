// Runs the test vectors of packages/webhook: requests it accepts are valid here, and requests it rejects have the same code here. Then makes
// each common mistake on purpose and checks that it is found.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type CheckResult, check } from './find-mistakes.ts'
import { parseHeaders } from './parse-headers.ts'
import { hex, hmac, signingKey, utf8, verifyStandard, verifyX } from './verify-schemes.ts'

interface Signed {
  note: string
  body: string
  xSignature: string
}
interface Standard {
  note?: string
  id: string
  timestamp: string
  body: string
  signature: string
}
interface Refused {
  note: string
  secrets: { sharedSecret?: string; signingSecrets?: string[] }
  nowSeconds: number
  headers: Record<string, string>
  body: string
  code: string
  header?: string
}

const read = (file: string): unknown => JSON.parse(readFileSync(new URL(`../../../../webhook/${file}`, import.meta.url), 'utf8'))
const vectors = read('vectors.json') as {
  sharedSecret: string
  messages: Signed[]
  batch: Signed
  standardWebhooks: Standard & { secret: string }
}
const extra = read('vectors-extra.json') as {
  xSignature: (Signed & { sharedSecret: string })[]
  standardWebhooks: (Standard & { secrets: string[] })[]
  refusals: Refused[]
}

const mapOf = (headers: Record<string, string>): Map<string, string[]> =>
  new Map(Object.entries(headers).map(([name, value]) => [name, [value]]))

for (const { note, body, xSignature, sharedSecret } of [
  ...[...vectors.messages, vectors.batch].map(({ note, body, xSignature }) => ({
    note,
    body,
    xSignature,
    sharedSecret: vectors.sharedSecret,
  })),
  ...extra.xSignature,
]) {
  test(`X-Signature is valid: ${note}`, async () => {
    const { schemes } = await check({ body: utf8(body), headers: `X-Signature: ${xSignature}`, secret: sharedSecret, nowMs: 0 })
    const payload: unknown = JSON.parse(body)
    const code = Array.isArray(payload) && payload.length > 1 ? 'batch_unproven' : 'valid'
    assert.deepEqual(
      schemes.map(({ verdict }) => [verdict.code, verdict.matches, verdict.computed]),
      [[code, true, xSignature]],
    )
  })
}

test('X-Signature of a batch is valid only together with a signature of the whole body', async () => {
  const { body, xSignature } = vectors.batch
  const alone = await check({ body: utf8(body), headers: `X-Signature: ${xSignature}`, secret: vectors.sharedSecret, nowMs: 0 })
  assert.deepEqual(
    alone.schemes.map(({ verdict, mistakes }) => [verdict.code, mistakes.map(({ title }) => title)]),
    [['batch_unproven', ['Only the first message of the batch is verified']]],
  )
  const headers = `X-Signature: ${xSignature}\nwebhook-id: msg_1\nwebhook-timestamp: 1\nwebhook-signature: v1,${'A'.repeat(43)}=`
  const both = await check({ body: utf8(body), headers, secret: vectors.sharedSecret, nowMs: 0 })
  assert.equal(both.schemes[0]?.verdict.code, 'valid')
})

for (const { note = 'documentation', id, timestamp, body, signature, secrets } of [
  { ...vectors.standardWebhooks, secrets: [vectors.standardWebhooks.secret] },
  ...extra.standardWebhooks,
]) {
  test(`Standard Webhooks is valid: ${note}`, async () => {
    for (const secret of secrets) {
      const headers = `webhook-id: ${id}\nwebhook-timestamp: ${timestamp}\nwebhook-signature: ${signature}`
      const { schemes } = await check({ body: utf8(body), headers, secret, nowMs: Number(timestamp) * 1_000 })
      assert.deepEqual(
        schemes.map(({ verdict }) => verdict.code),
        ['valid'],
      )
    }
  })
}

for (const { note, secrets, nowSeconds, headers, body, code, header } of extra.refusals) {
  test(`rejected like packages/webhook: ${note}`, async () => {
    const keys = (secrets.signingSecrets ?? []).map((secret) => signingKey(secret) as Uint8Array)
    const verdicts = [
      ...(keys.length === 0 ? [] : [await verifyStandard(mapOf(headers), utf8(body), keys, nowSeconds * 1_000)]),
      ...(secrets.sharedSecret === undefined ? [] : [await verifyX(mapOf(headers), utf8(body), secrets.sharedSecret)]),
    ]
    const rejected = verdicts.find((verdict) => verdict.code !== 'valid')
    assert.deepEqual([rejected?.code, rejected?.header], [code, header])
  })
}

// ── Common mistakes ─────────────────────────────────────────────────────────────────────────────────────────────────

const { sharedSecret } = vectors
const message = vectors.messages[0] as Signed
const SECRET = vectors.standardWebhooks.secret
const NOW_MS = Number(vectors.standardWebhooks.timestamp) * 1_000

const provedOf = ({ schemes }: CheckResult): string[] =>
  schemes.flatMap(({ mistakes }) => mistakes.filter(({ isProved }) => isProved).map(({ title }) => title))

async function checkX(change: { body?: string; header?: string; secret?: string }): Promise<string[]> {
  const { body = message.body, header = message.xSignature, secret = sharedSecret } = change
  const result = await check({ body: utf8(body), headers: `X-Signature: ${header}`, secret, nowMs: NOW_MS })
  assert.notEqual(result.schemes[0]?.verdict.code, 'valid')
  return provedOf(result)
}

async function checkStandard(change: {
  id?: string
  body?: string
  signature?: string
  timestamp?: string
  secret?: string
  nowMs?: number
}): Promise<string[]> {
  const { id, body, signature, timestamp, secret, nowMs } = { ...vectors.standardWebhooks, nowMs: NOW_MS, ...change }
  const headers = `webhook-id: ${id}\nwebhook-timestamp: ${timestamp}\nwebhook-signature: ${signature}`
  const result = await check({ body: utf8(body), headers, secret, nowMs })
  assert.notEqual(result.schemes[0]?.verdict.code, 'valid')
  return provedOf(result)
}

test('finds what changed the body', async () => {
  const pretty = JSON.stringify(JSON.parse(message.body), null, 2)
  assert.deepEqual(await checkX({ body: `${message.body}\n` }), ['The body has a line break at the end'])
  assert.deepEqual(await checkX({ body: pretty }), ['The body was parsed and serialized again'])
  assert.deepEqual(await checkX({ body: message.body.replaceAll('é', '\\u00e9') }), ['The body was parsed and serialized again'])
  assert.deepEqual(await checkX({ body: JSON.stringify(message.body) }), ['The body is JSON within a JSON string'])
  assert.deepEqual(await checkX({ body: Buffer.from(message.body).toString('base64') }), ['The body is base64'])
  assert.deepEqual(await checkX({ body: `\uFEFF${message.body}` }), ['The body starts with a byte order mark'])
  assert.deepEqual(await checkStandard({ body: `${vectors.standardWebhooks.body}\r\n` }), ['The body has a line break at the end'])
})

test('finds what is wrong with the secret, and never quotes it', async () => {
  assert.deepEqual(await checkX({ secret: `${sharedSecret}\n` }), ['The secret has white space around it'])
  assert.deepEqual(await checkX({ secret: `"${sharedSecret}"` }), ['The secret has quotes around it'])
  assert.deepEqual(await checkX({ secret: `SECRET=${sharedSecret}` }), ['The secret starts with a variable name'])
  assert.deepEqual(await checkStandard({ secret: ` ${SECRET}` }), ['The secret has white space around it'])
  const result = await check({
    body: utf8(message.body),
    headers: `x-signature: ${message.xSignature}`,
    secret: 'quite-another',
    nowMs: NOW_MS,
  })
  assert.equal(JSON.stringify(result).includes('quite-another'), false)
  assert.deepEqual(provedOf(result), [])
  assert.equal(result.schemes[0]?.mistakes[0]?.title, 'Wrong secret')
})

test('finds two mistakes at once', async () => {
  assert.deepEqual(await checkX({ body: `${message.body}\n`, secret: `${sharedSecret} ` }), [
    'The body has a line break at the end',
    'The secret has white space around it',
  ])
})

test('finds a digest in the wrong format', async () => {
  const bytes = Buffer.from(message.xSignature, 'hex')
  assert.deepEqual(await checkX({ header: bytes.toString('base64') }), ['The digest is base64, not hex'])
  assert.deepEqual(await checkX({ header: message.xSignature.toUpperCase() }), ['The digest is in upper case'])
  assert.deepEqual(await checkX({ header: `sha1=${message.xSignature}` }), ['The digest has a prefix'])
  assert.deepEqual(await checkX({ header: `${message.xSignature.slice(0, 12)}…` }), ['x-signature is truncated'])
  const digest = vectors.standardWebhooks.signature.slice(3)
  assert.deepEqual(await checkStandard({ signature: `v1,${Buffer.from(digest, 'base64').toString('hex')}` }), [
    'The digest is hex, not base64',
  ])
  assert.deepEqual(await checkStandard({ signature: `v1,${digest.slice(0, -1)}` }), ['The padding is missing'])
  assert.deepEqual(await checkStandard({ signature: digest }), ['The version is missing'])
  assert.deepEqual(await checkStandard({ signature: `v1,${digest.slice(0, 20)}` }), ['webhook-signature is truncated'])
})

test('recognizes a SHA-256 digest in X-Signature', async () => {
  const header = hex(await hmac('SHA-256', utf8(sharedSecret), utf8(message.body)))
  const { schemes } = await check({ body: utf8(message.body), headers: `x-signature: ${header}`, secret: sharedSecret, nowMs: NOW_MS })
  assert.deepEqual([schemes[0]?.verdict.code, schemes[0]?.mistakes[0]?.title], ['header_invalid', 'This is a SHA-256 digest'])
})

test('tells an old timestamp from a wrong signature', async () => {
  const { id, timestamp, body, signature } = vectors.standardWebhooks
  const headers = `webhook-id: ${id}\nwebhook-timestamp: ${timestamp}\nwebhook-signature: ${signature}`
  const result = await check({ body: utf8(body), headers, secret: SECRET, nowMs: NOW_MS + 3 * 3_600_000 })
  assert.deepEqual(
    [result.schemes[0]?.verdict.code, result.schemes[0]?.verdict.matches, provedOf(result)],
    ['timestamp_outside_tolerance', true, ['webhook-timestamp is 3 hours old']],
  )
  assert.deepEqual(await checkStandard({ nowMs: NOW_MS - 600_000 }), ['webhook-timestamp is 10 minutes in the future'])
})

test('finds a key that was used for the wrong scheme', async () => {
  const body = utf8('{"a":1}')
  const headers = `x-signature: ${hex(await hmac('SHA-1', signingKey(SECRET) as Uint8Array, body))}`
  assert.deepEqual(provedOf(await check({ body, headers, secret: SECRET, nowMs: NOW_MS })), ['The secret was decoded before it was used'])
})

test('with both signatures, does not report the one that needs the other secret', async () => {
  const { id, timestamp, body, signature } = vectors.standardWebhooks
  const headers = `x-signature: ${'0'.repeat(40)}\nwebhook-id: ${id}\nwebhook-timestamp: ${timestamp}\nwebhook-signature: ${signature}`
  const { schemes } = await check({ body: utf8(body), headers, secret: SECRET, nowMs: NOW_MS })
  assert.deepEqual(
    schemes.map(({ scheme, needsOtherSecret }) => [scheme, needsOtherSecret]),
    [
      ['x-signature', true],
      ['standard-webhooks', false],
    ],
  )
  const others = async (change: { body?: string; secret?: string }): Promise<string[]> => {
    const found = await check({ body: utf8(change.body ?? body), headers, secret: change.secret ?? SECRET, nowMs: NOW_MS })
    return found.schemes.filter(({ needsOtherSecret }) => needsOtherSecret).map(({ scheme }) => scheme)
  }
  assert.deepEqual(await others({ body: `${body}\n` }), ['x-signature'])
  assert.deepEqual(await others({ secret: `whsec_${btoa('another key of some length')}` }), ['x-signature'])
  assert.deepEqual(await others({ secret: 'another shared secret' }), ['standard-webhooks'])
})

test('parses headers in all formats', () => {
  const expected = [
    ['x-signature', [message.xSignature]],
    ['webhook-id', ['msg_1']],
  ]
  const x = message.xSignature
  for (const text of [
    `POST /hook HTTP/1.1\r\nX-Signature: ${x}\r\nWebhook-Id: msg_1\r\n`,
    `> X-Signature: ${x}\n> webhook-id:msg_1`,
    `-H 'X-Signature: ${x}' \\\n  -H "webhook-id: msg_1" \\`,
    JSON.stringify({ 'X-Signature': x, 'Webhook-ID': 'msg_1' }),
    JSON.stringify([
      ['x-signature', x],
      ['webhook-id', 'msg_1'],
    ]),
    JSON.stringify(['x-signature', x, 'webhook-id', 'msg_1']),
    `"x-signature": "${x}",\n"webhook-id": "msg_1"`,
  ])
    assert.deepEqual([...parseHeaders(text).values], expected, text)
  assert.equal(parseHeaders(x).guessed, 'x-signature')
  assert.equal(parseHeaders(vectors.standardWebhooks.signature).guessed, 'webhook-signature')
  assert.deepEqual([...parseHeaders('x-signature: a\nX-Signature: b').values], [['x-signature', ['a', 'b']]])
  assert.deepEqual(parseHeaders('nothing of the kind').ignored, ['nothing of the kind'])
})
