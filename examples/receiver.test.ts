import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { type RunningExample, runExample, startExample, startNode } from './testing/run-example.ts'

const TOKEN = 'token-of-the-test-0123456789'

/** The service as `npm start` runs it, with one destination: the receiver. */
async function startService(t: TestContext, destination: object): Promise<{ url: string; writeKey: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-receiver-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const service = startNode(t, [join(import.meta.dirname, '../packages/server/src/cli.ts')], {
    SWITCHYARD_PORT: '0',
    SWITCHYARD_STORE: `sqlite:${join(folder, 'switchyard.db')}`,
    SWITCHYARD_ADMIN_TOKEN: TOKEN,
  })
  const [, url] = (await service.waitFor(/listens on (\S+)/)) as unknown as [string, string]
  const [, writeKey, sourceId] = (await service.waitFor(/Write key\s+(\S+).*(src_\w+)/)) as unknown as [string, string, string]
  const response = await fetch(`${url}/api/destinations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({ name: 'receiver', sourceIds: [sourceId], ...destination }),
  })
  assert.equal(response.status, 201, await response.clone().text())
  return { url, writeKey }
}

async function startReceiver(t: TestContext, secret?: string): Promise<RunningExample & { url: string }> {
  const receiver = startExample(t, 'receiver.ts', { args: ['--port', '0'], env: secret === undefined ? {} : { SECRET: secret } })
  const [, url] = (await receiver.waitFor(/receiver on (\S+)/)) as unknown as [string, string]
  return { ...receiver, url }
}

test('what the minimal sender sends arrives at the receiver by way of the service, signed', async (t) => {
  const receiver = await startReceiver(t, 'shared-secret')
  const { url, writeKey } = await startService(t, { urls: [receiver.url], sharedSecret: 'shared-secret' })
  const sender = await runExample(t, 'minimal-sender.ts', { args: [url], env: { SWITCHYARD_WRITE_KEY: writeKey } })
  assert.deepEqual(sender, { code: 0, stdout: `${url}: 2 delivered, 0 failed, 0 pending\n`, stderr: '' })
  await receiver.waitFor(/"type":"identify"/)
  await receiver.waitFor(/"type":"track".*"Order Completed"/)
})

test('a batch of a destination that signs by Standard Webhooks arrives', async (t) => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const receiver = await startReceiver(t, secret)
  const batch = { size: 2, lingerMs: 10_000 }
  const { url, writeKey } = await startService(t, { urls: [receiver.url], signingSecrets: [secret], batch })
  await runExample(t, 'minimal-sender.ts', { args: [url], env: { SWITCHYARD_WRITE_KEY: writeKey } })
  await receiver.waitFor(/"type":"identify"/)
  await receiver.waitFor(/"type":"track"/)
})

test('a request with another secret is refused', async (t) => {
  const receiver = await startReceiver(t, 'shared-secret')
  const response = await fetch(receiver.url, { method: 'POST', body: '{"type":"track"}', headers: { 'x-signature': 'a'.repeat(40) } })
  assert.equal(response.status, 401)
  await receiver.waitFor(/refused: /)
})
