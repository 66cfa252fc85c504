// Fetch-style requests: the runtime's own Request, with bodies as text and as streams.

import assert from 'node:assert/strict'
import { ReadableStream } from 'node:stream/web'
import test from 'node:test'
import { generateSecret, signBody, signStandardWebhook, type VerifyResult, verify } from './index.ts'

const sharedSecret = 'a shared secret'
const signingSecrets = generateSecret()
const both = { sharedSecret, signingSecrets }
const ONE = '{"type":"track","messageId":"m-1","note":"é ✓"}'
const BATCH = `[${ONE},{"type":"track","messageId":"m-2"}]`

const signed = (body: string): Record<string, string> => ({
  'x-signature': signBody(body, sharedSecret),
  ...signStandardWebhook({ id: 'msg_1', timestampSeconds: Math.floor(Date.now() / 1000), body }, signingSecrets),
})

const outcome = (result: VerifyResult): string => (result.ok ? 'ok' : result.code)

const fetched = (body: string | ReadableStream, headers = signed(ONE)): Request =>
  new Request('http://receiver.test/', { method: 'POST', body, headers, duplex: 'half' })

test('a Request is verified and its body left for the application', async () => {
  for (const body of [ONE, BATCH]) {
    const request = fetched(body, signed(body))
    const result = await verify(request, both)
    assert.equal(result.ok && result.body, body)
    assert.equal(request.bodyUsed, false)
    assert.equal(await request.text(), body)
  }
  assert.equal(outcome(await verify(fetched(ONE.replace('m-1', 'm-2')), both)), 'signature_invalid')
})

test('a body in chunks, split inside a character, is joined', async () => {
  const bytes = Buffer.from(ONE)
  const chunks = Array.from(bytes, (byte) => Uint8Array.of(byte))
  assert.equal(outcome(await verify(fetched(ReadableStream.from(chunks)), both)), 'ok')
})

test('a Request without a body is an empty body', async () => {
  const request = new Request('http://receiver.test/', { method: 'POST', headers: signed(ONE) })
  assert.equal(outcome(await verify(request, both)), 'signature_invalid')
})

test('a body that was read or is locked by a reader is rejected', async () => {
  const used = fetched(ONE)
  await used.text()
  assert.equal(outcome(await verify(used, both)), 'body_already_read')
  const held = fetched(ONE)
  held.body?.getReader()
  assert.equal(outcome(await verify(held, both)), 'body_already_read')
})

test('an endless body is rejected at the limit', async () => {
  let pulled = 0
  const endless = new ReadableStream({
    pull(controller) {
      pulled += 1
      controller.enqueue(new Uint8Array(10_000))
    },
  })
  assert.equal(outcome(await verify(fetched(endless), { ...both, maxBodyBytes: 100_000 })), 'body_too_large')
  assert.ok(pulled < 20, `${pulled} chunks were taken`)
})

test('a content-length over the limit is rejected unread', async () => {
  const request = fetched(ONE, { ...signed(ONE), 'content-length': '2000000' })
  assert.equal(outcome(await verify(request, both)), 'body_too_large')
})

test('a body that never arrives is rejected at the timeout', async () => {
  const silent = new ReadableStream({ pull: () => new Promise<void>(() => undefined) })
  assert.equal(outcome(await verify(fetched(silent), { ...both, timeoutMs: 20 })), 'body_timeout')
})

test('a body that breaks, or is not bytes, is rejected', async () => {
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) })
  assert.equal(outcome(await verify(fetched(broken), both)), 'body_unreadable')
  const words = { headers: new Headers(signed(ONE)), body: ReadableStream.from(['{', '}']), arrayBuffer: () => Promise.reject(new Error()) }
  assert.equal(outcome(await verify(words, both)), 'body_unreadable')
})

test('an object with only headers and arrayBuffer is enough', async () => {
  const headers = new Headers(signed(ONE))
  const bytes = new TextEncoder().encode(ONE).buffer
  assert.equal(outcome(await verify({ headers, arrayBuffer: () => Promise.resolve(bytes) }, both)), 'ok')
  assert.equal(outcome(await verify({ headers, arrayBuffer: () => Promise.reject(new Error('reset')) }, both)), 'body_unreadable')
  const used = { headers, bodyUsed: true, arrayBuffer: () => Promise.resolve(new ArrayBuffer(0)) }
  assert.equal(outcome(await verify(used, both)), 'body_already_read')
  const never = new Promise<ArrayBuffer>(() => undefined)
  assert.equal(outcome(await verify({ headers, arrayBuffer: () => never }, { ...both, timeoutMs: 20 })), 'body_timeout')
})

test('no timer outlives a verification', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  await verify(fetched(ONE), both)
  assert.equal(timers(), before)
})
