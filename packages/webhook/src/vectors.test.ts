// All shared vectors. Their values were computed by other software, so only this test finds a mistake that signing and
// verifying have in common.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { REFUSALS, type RefusalCode, signBody, signMessage, signStandardWebhook, verifySignature, verifyWebhook } from './index.ts'

interface SignedBody {
  note: string
  body: string
  xSignature: string
}

interface StandardVector {
  note?: string
  id: string
  timestamp: string
  body: string
  signature: string
}

interface RefusalVector {
  note: string
  secrets: { sharedSecret?: string; signingSecrets?: string[] }
  nowSeconds: number
  headers: Record<string, string>
  body: string
  code: RefusalCode
  header?: string
}

const vectors = readJson('vectors.json') as {
  sharedSecret: string
  messages: (SignedBody & { outbound: object })[]
  batch: SignedBody
  standardWebhooks: StandardVector & { secret: string }
}

const extra = readJson('vectors-extra.json') as {
  xSignature: (SignedBody & { sharedSecret: string })[]
  standardWebhooks: (StandardVector & { secrets: string[] })[]
  refusals: RefusalVector[]
}

for (const { note, body, xSignature, outbound } of vectors.messages) {
  test(`vector: ${note}`, () => {
    assert.equal(JSON.stringify(outbound), body)
    checkXSignature(body, xSignature, vectors.sharedSecret)
    assert.equal(signMessage(body, vectors.sharedSecret), xSignature)
  })
}

test(`vector: batch, ${vectors.batch.note}`, () => {
  const { body, xSignature } = vectors.batch
  checkXSignature(body, xSignature, vectors.sharedSecret)
  assert.equal(signMessage(JSON.stringify(JSON.parse(body)[0]), vectors.sharedSecret), xSignature)
})

for (const { note, sharedSecret, body, xSignature } of extra.xSignature) {
  test(`vector: X-Signature, ${note}`, () => checkXSignature(body, xSignature, sharedSecret))
}

test('vector: the one in the Standard Webhooks documentation', () => {
  const { secret, ...vector } = vectors.standardWebhooks
  checkStandard(vector, [secret])
})

for (const vector of extra.standardWebhooks) {
  test(`vector: Standard Webhooks, ${vector.note}`, () => checkStandard(vector, vector.secrets))
}

for (const { note, secrets, nowSeconds, headers, body, code, header } of extra.refusals) {
  test(`vector: rejects ${note}: ${code}`, () => {
    const expected = { ok: false, code, status: REFUSALS[code][0], message: REFUSALS[code][1], ...(header === undefined ? {} : { header }) }
    const options = { ...secrets, now: () => nowSeconds * 1000 }
    assert.deepEqual(verifyWebhook({ headers, body }, options), expected)
    assert.deepEqual(verifyWebhook({ headers, body: Buffer.from(body) }, options), expected)
  })
}

function checkXSignature(body: string, xSignature: string, sharedSecret: string): void {
  assert.equal(JSON.stringify(JSON.parse(body)), body, 'the body is in the form the service sends')
  for (const form of [body, Buffer.from(body), new TextEncoder().encode(body)]) {
    assert.equal(signBody(form, sharedSecret), xSignature)
    assert.equal(verifySignature(form, xSignature, sharedSecret), true)
    const result = verifyWebhook({ headers: { 'X-Signature': xSignature }, body: form }, { sharedSecret, allowUnprovenMessages: true })
    assert.equal(result.ok, true)
    assert.deepEqual(result.ok && result.payload, JSON.parse(body))
  }
}

function checkStandard({ id, timestamp, body, signature }: StandardVector, secrets: string[]): void {
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature }
  const now = (): number => Number(timestamp) * 1000
  for (const form of [body, Buffer.from(body)]) {
    assert.deepEqual(signStandardWebhook({ id, timestampSeconds: Number(timestamp), body: form }, secrets), headers)
    for (const secret of secrets) {
      const result = verifyWebhook({ headers, body: form }, { signingSecrets: secret, now })
      assert.equal(result.ok, true)
      assert.equal(result.ok && result.webhookId, id)
      assert.equal(result.ok && result.coverage, 'body')
    }
  }
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8'))
}
