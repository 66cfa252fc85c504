import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { startInProcess } from '../e2e/system/in-process.ts'
import { startReceiver } from '../e2e/system/receiver.ts'
import { wire } from '../e2e/system/wiring.ts'
import { startInterrupted } from './testing/interrupted-service.ts'
import { type RunningExample, startExample } from './testing/run-example.ts'

const [service, receiver] = await Promise.all([startInProcess(), startReceiver()])
const { writeKey } = await wire(service, { urls: [receiver.url] })
after(() => Promise.all([service[Symbol.asyncDispose](), receiver.close()]))

async function startSender(t: TestContext, env: Record<string, string> = {}): Promise<RunningExample & { url: string }> {
  const given = { PORT: '0', SWITCHYARD_HOST_URL: service.url, SWITCHYARD_WRITE_KEY: writeKey, ...env }
  const sender = startExample(t, 'express-sender.ts', { env: given })
  const [, url = ''] = await sender.waitFor(/listening on (\S+)/)
  return { ...sender, url }
}

const place = (url: string, order: object): Promise<Response> =>
  fetch(`${url}/orders`, { method: 'POST', body: JSON.stringify(order), headers: { 'content-type': 'application/json' } })

test('orders are answered immediately, and on SIGTERM queued messages and those of requests in flight reach the webhook before the process ends', async (t) => {
  const sender = await startSender(t)
  const first = await place(sender.url, { orderId: 'e-0', userId: 'user-1', total: 42 })
  assert.deepEqual([first.status, await first.json()], [201, { orderId: 'e-0' }])
  assert.equal((await place(sender.url, { userId: 'user-1' })).status, 400)
  assert.equal((await fetch(`${sender.url}/orders`, { method: 'POST' })).status, 400)
  // Less than a batch: only the end of the process sends them within ten seconds.
  const answered = ['order-completed-e-0']
  const requests = Array.from({ length: 10 }, async (_, index) => {
    const response = await place(sender.url, { orderId: `term-${index}`, userId: 'user-1', total: index })
    if (response.status === 201) answered.push(`order-completed-term-${index}`)
    // Now, while the others are in flight.
    if (index === 5) sender.child.kill('SIGTERM')
  })
  await Promise.allSettled(requests)
  assert.deepEqual([(await sender.finished).code, sender.stderr()], [0, ''])
  assert.ok(answered.length > 2)
  await receiver.until(() => answered.every((id) => receiver.byMessageId.has(id)))
  const [message] = receiver.byMessageId.get('order-completed-e-0')?.[0]?.messages ?? []
  assert.deepEqual([message?.['event'], message?.['properties']], ['Order Completed', { orderId: 'e-0', total: 42 }])
})

test('messages that a killed process had spooled are sent when the next one starts', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-express-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const interrupted = await startInterrupted(t, service.url)
  const settings = { SPOOL_DIR: dir, SWITCHYARD_HOST_URL: interrupted.url }
  const killed = await startSender(t, settings)
  assert.equal((await place(killed.url, { orderId: 'spooled', userId: 'user-1', total: 1 })).status, 201)
  killed.child.kill('SIGKILL')
  await killed.finished
  assert.ok(!receiver.byMessageId.has('order-completed-spooled'))
  interrupted.recover()
  await startSender(t, settings)
  await receiver.until(() => receiver.byMessageId.has('order-completed-spooled'))
})
