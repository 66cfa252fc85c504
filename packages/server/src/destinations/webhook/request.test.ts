import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { verify } from '@switchyard/webhook'
import { webhookOf as destination } from '../fixtures/webhook.ts'
import type { OutgoingRequest, RequestAbout } from '../port/kind.ts'
import { USER_AGENT, webhookRequest } from './request.ts'

interface Vectors {
  sharedSecret: string
  messages: { note: string; body: string; xSignature: string }[]
}
interface ExtraVectors {
  xSignature: { note: string; sharedSecret: string; body: string; xSignature: string }[]
  standardWebhooks: { note: string; secrets: string[]; id: string; timestamp: string; body: string; signature: string }[]
}

const vectorsAt = new URL('../../../../webhook/', import.meta.url)
const vectors = JSON.parse(readFileSync(new URL('vectors.json', vectorsAt), 'utf8')) as Vectors
const extra = JSON.parse(readFileSync(new URL('vectors-extra.json', vectorsAt), 'utf8')) as ExtraVectors

const SECRETS = ['whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX', 'whsec_GBkaGxwdHh8gISIjJCUmJygpKissLS4v']
const AT_MS = Date.UTC(2026, 10, 14, 9)
const about: RequestAbout = { id: '17-0', attempt: 1, replay: false, atMs: AT_MS, trace: null }

function headersOf({ headers }: OutgoingRequest): Record<string, string> {
  const named: Record<string, string> = {}
  for (let at = 0; at < headers.length; at += 2) {
    const name = (headers[at] as string).toLowerCase()
    assert.ok(!(name in named), `${name} twice`)
    named[name] = headers[at + 1] as string
  }
  return named
}

function partsOf(body: string): { messages: string[]; batch: boolean } {
  const parsed = JSON.parse(body) as unknown
  return Array.isArray(parsed) ? { messages: parsed.map((one) => JSON.stringify(one)), batch: true } : { messages: [body], batch: false }
}

test('without secrets a request carries User-Agent, Content-Type, the destination’s own headers and the attempt, and nothing else', () => {
  const one = destination({ headers: { 'X-Team': 'growth', Authorization: 'Bearer t' } })
  const request = webhookRequest(one, ['{"a":1}'], false, about)
  assert.equal(request.body, '{"a":1}')
  assert.deepEqual(headersOf(request), {
    'user-agent': USER_AGENT,
    'content-type': 'application/json',
    'x-team': 'growth',
    authorization: 'Bearer t',
    'x-attempt': '1',
  })
})

test('X-Attempt contains the attempt number, and X-Replay marks a replay', () => {
  const again = headersOf(webhookRequest(destination(), ['{}'], false, { ...about, attempt: 7, replay: true }))
  assert.deepEqual([again['x-attempt'], again['x-replay']], ['7', 'true'])
  assert.ok(!('x-replay' in headersOf(webhookRequest(destination(), ['{}'], false, about))))
})

test("the caller's trace is forwarded and does not change the signatures", () => {
  const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: null }
  const one = destination({ sharedSecret: 'plain', signingSecrets: SECRETS })
  const [bare, traced, stated] = [null, trace, { ...trace, tracestate: 'a=1,b=2' }].map((each) =>
    headersOf(webhookRequest(one, ['{}'], false, { ...about, trace: each })),
  )
  assert.deepEqual(traced, { ...bare, traceparent: trace.traceparent })
  assert.deepEqual(stated, { ...traced, tracestate: 'a=1,b=2' })
})

test('X-Signature matches the shared vectors, for single messages and for batches', () => {
  const { sharedSecret: shared, messages: known } = vectors
  const all = [...known.map(({ note, body, xSignature }) => ({ note, body, xSignature, sharedSecret: shared })), ...extra.xSignature]
  for (const { note, sharedSecret, body, xSignature } of all) {
    const { messages, batch } = partsOf(body)
    // If parsing and serialising is lossless, the body is identical to that of the vector.
    const request = webhookRequest(destination({ sharedSecret }), messages, batch, about)
    assert.equal(request.body, body, note)
    assert.equal(headersOf(request)['x-signature'], xSignature, note)
  }
})

test('the Standard Webhooks headers match the shared vectors and sign the whole body', () => {
  for (const { note, secrets, id, timestamp, body, signature } of extra.standardWebhooks) {
    const { messages, batch } = partsOf(body)
    const at = { ...about, id, atMs: Number(timestamp) * 1_000 + 999 }
    const request = webhookRequest(destination({ signingSecrets: secrets }), messages, batch, at)
    assert.equal(request.body, body, note)
    const headers = headersOf(request)
    assert.deepEqual([headers['webhook-id'], headers['webhook-timestamp'], headers['webhook-signature']], [id, timestamp, signature], note)
  }
})

test('the receiver library verifies single messages, batches and rotated secrets', async () => {
  const one = destination({ sharedSecret: 'plain', signingSecrets: SECRETS })
  const messages = ['{"type":"track","event":"é ✓ 🎉"}', '{"type":"identify"}', '{"type":"page"}']
  for (const batch of [false, true]) {
    const request = webhookRequest(one, batch ? messages : messages.slice(0, 1), batch, about)
    const headers = headersOf(request)
    const given = { headers, body: request.body }
    for (const secrets of [
      { sharedSecret: 'plain' },
      { signingSecrets: [SECRETS[0] as string] },
      { signingSecrets: [SECRETS[1] as string] },
    ]) {
      const result = await verify(given, { ...secrets, allowUnprovenMessages: true, now: () => AT_MS })
      assert.equal(result.ok, true, JSON.stringify({ batch, secrets, result }))
    }
    const forged = await verify({ headers, body: request.body.replace('track', 'trick') }, { sharedSecret: 'plain', now: () => AT_MS })
    assert.equal(forged.ok, false)
  }
})

test('webhook-id is the same on every attempt, while timestamp and signature change', () => {
  const one = destination({ signingSecrets: SECRETS })
  const [first, second] = [1, 2].map((attempt) =>
    headersOf(webhookRequest(one, ['{}'], false, { ...about, attempt, atMs: AT_MS + attempt * 10_000 })),
  ) as [Record<string, string>, Record<string, string>]
  assert.equal(first['webhook-id'], second['webhook-id'])
  assert.notEqual(first['webhook-timestamp'], second['webhook-timestamp'])
  assert.notEqual(first['webhook-signature'], second['webhook-signature'])
})

test('a batch of one message is sent as an array', () => {
  assert.equal(webhookRequest(destination(), ['{"a":1}'], true, about).body, '[{"a":1}]')
})

test('a request contains no secret', () => {
  const one = destination({ sharedSecret: 'a-very-plain-secret', signingSecrets: SECRETS })
  const sent = JSON.stringify(webhookRequest(one, ['{"a":1}'], true, about))
  for (const secret of ['a-very-plain-secret', ...SECRETS, ...SECRETS.map((text) => text.slice('whsec_'.length))]) {
    assert.ok(!sent.includes(secret))
  }
})

test('a changed destination uses its new secrets and headers', () => {
  const before = destination({ headers: { 'X-A': '1' }, sharedSecret: 'one' })
  const after = { ...before, headers: { 'X-A': '2' }, sharedSecret: 'two' }
  const [first, second] = [before, after].map((each) => headersOf(webhookRequest(each, ['{}'], false, about)))
  assert.deepEqual([first?.['x-a'], second?.['x-a']], ['1', '2'])
  assert.notEqual(first?.['x-signature'], second?.['x-signature'])
})
