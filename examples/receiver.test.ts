import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { signBody } from '@switchyard/webhook'
import { startInProcess } from '../e2e/system/in-process.ts'
import { wire } from '../e2e/system/wiring.ts'
import { type RunningExample, runExample, startExample } from './testing/run-example.ts'

const service = await startInProcess()
after(() => service[Symbol.asyncDispose]())

async function startReceiver(t: TestContext, secret?: string): Promise<RunningExample & { url: string }> {
  const receiver = startExample(t, 'receiver.ts', { args: ['--port', '0'], env: secret === undefined ? {} : { SECRET: secret } })
  const [, url] = (await receiver.waitFor(/receiver on (\S+)/)) as unknown as [string, string]
  return { ...receiver, url }
}

test('messages of the minimal sender reach the receiver through the service, signed', async (t) => {
  const receiver = await startReceiver(t, 'shared-secret')
  const { writeKey } = await wire(service, { urls: [receiver.url], sharedSecret: 'shared-secret' })
  const sender = await runExample(t, 'minimal-sender.ts', { args: [service.url], env: { SWITCHYARD_WRITE_KEY: writeKey } })
  assert.deepEqual(sender, { code: 0, stdout: `${service.url}: 2 stored, 0 failed, 0 pending\n`, stderr: '' })
  await receiver.waitFor(/"type":"identify"/)
  await receiver.waitFor(/"type":"track".*"Order Completed"/)
})

test('a batch signed with Standard Webhooks arrives', async (t) => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const receiver = await startReceiver(t, secret)
  const batch = { size: 2, lingerMs: 10_000 }
  const { writeKey } = await wire(service, { urls: [receiver.url], signingSecrets: [secret], batch })
  await runExample(t, 'minimal-sender.ts', { args: [service.url], env: { SWITCHYARD_WRITE_KEY: writeKey } })
  await receiver.waitFor(/"type":"identify"/)
  await receiver.waitFor(/"type":"track"/)
})

test('a request signed with another secret is rejected', async (t) => {
  const receiver = await startReceiver(t, 'shared-secret')
  const response = await fetch(receiver.url, { method: 'POST', body: '{"type":"track"}', headers: { 'x-signature': 'a'.repeat(40) } })
  assert.equal(response.status, 401)
  await receiver.waitFor(/rejected: /)
})

test('a batch of several messages with only X-Signature is rejected, because it covers only the first message', async (t) => {
  const receiver = await startReceiver(t, 'shared-secret')
  const first = '{"type":"track","event":"Seen"}'
  const headers = { 'x-signature': signBody(first, 'shared-secret') }
  assert.equal((await fetch(receiver.url, { method: 'POST', body: first, headers })).status, 200)
  assert.equal((await fetch(receiver.url, { method: 'POST', body: `[${first},{"type":"track","event":"Forged"}]`, headers })).status, 401)
  await receiver.waitFor(/rejected: X-Signature proves only the first message of a batch/)
  assert.doesNotMatch(receiver.stdout(), /Forged/)
})

test('without a secret it prints JSON bodies, and continues after a body that is not JSON', async (t) => {
  const receiver = await startReceiver(t)
  assert.equal((await fetch(receiver.url, { method: 'POST', body: '{"broken' })).status, 400)
  assert.equal((await fetch(receiver.url, { method: 'POST', body: '{"type":"track","event":"Good"}' })).status, 200)
  await receiver.waitFor(/"Good"/)
  receiver.child.kill('SIGTERM')
  assert.equal((await receiver.finished).code, 0)
})
