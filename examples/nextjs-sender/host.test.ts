import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { startInProcess } from '../../e2e/system/in-process.ts'
import { startReceiver } from '../../e2e/system/receiver.ts'
import { wire } from '../../e2e/system/wiring.ts'
import { startInterrupted } from '../testing/interrupted-service.ts'
import { type RunningExample, startExample } from '../testing/run-example.ts'

const [service, receiver] = await Promise.all([startInProcess(), startReceiver()])
const { writeKey } = await wire(service, { urls: [receiver.url] })
after(() => Promise.all([service[Symbol.asyncDispose](), receiver.close()]))

async function startHost(t: TestContext, env: Record<string, string> = {}): Promise<RunningExample & { url: string }> {
  const given = { PORT: '0', SWITCHYARD_HOST_URL: service.url, SWITCHYARD_WRITE_KEY: writeKey, ...env }
  const host = startExample(t, 'nextjs-sender/host.ts', { env: given })
  const [, url = ''] = await host.waitFor(/listening on (\S+)/)
  return { ...host, url }
}

const place = (url: string, order: object): Promise<Response> => fetch(`${url}/api/orders`, { method: 'POST', body: JSON.stringify(order) })

test('an order is answered, and its message is flushed afterwards and arrives at the webhook', async (t) => {
  const { url } = await startHost(t)
  const response = await place(url, { orderId: 'n-1', userId: 'user-1', total: 42 })
  assert.deepEqual([response.status, await response.json()], [201, { orderId: 'n-1' }])
  assert.equal((await place(url, { orderId: 'n-1', userId: 'user-1', total: 42 })).status, 201)
  assert.equal((await place(url, { userId: 'user-1' })).status, 400)
  assert.equal((await fetch(`${url}/api/orders`, { method: 'POST', body: '{"broken' })).status, 400)
  assert.equal((await fetch(`${url}/api/orders`)).status, 405)
  // A sentinel: everything sent before it has arrived when it arrives. Without the flush, the queue would hold it for ten seconds.
  await place(url, { orderId: 'n-2', userId: 'user-1', total: 1 })
  await receiver.until(() => receiver.byMessageId.has('order-completed-n-2') && receiver.byMessageId.has('order-completed-n-1'), {
    deadlineMs: 8_000,
  })
  const [message] = receiver.byMessageId.get('order-completed-n-1')?.[0]?.messages ?? []
  assert.deepEqual([message?.['event'], message?.['properties']], ['Order Completed', { orderId: 'n-1', total: 42 }])
  assert.equal(receiver.byMessageId.get('order-completed-n-1')?.length, 1)
})

test('SIGTERM right after a response, and while many requests are in flight, loses no message of an answered request', async (t) => {
  const host = await startHost(t)
  const answered: string[] = []
  const requests = Array.from({ length: 40 }, async (_, index) => {
    const response = await place(host.url, { orderId: `term-${index}`, userId: 'user-1', total: index })
    if (response.status === 201) answered.push(`order-completed-term-${index}`)
    // Now, while the others are in flight.
    if (index === 5) host.child.kill('SIGTERM')
  })
  await Promise.allSettled(requests)
  assert.equal((await host.finished).code, 0)
  assert.ok(answered.length > 5)
  await receiver.until(() => answered.every((id) => receiver.byMessageId.has(id)))
})

test('messages that a killed process had spooled are sent when the next one starts, before any request', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-next-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const interrupted = await startInterrupted(t, service.url)
  const settings = { SPOOL_DIR: dir, SWITCHYARD_HOST_URL: interrupted.url }
  const killed = await startHost(t, settings)
  assert.equal((await place(killed.url, { orderId: 'spooled', userId: 'user-1', total: 1 })).status, 201)
  killed.child.kill('SIGKILL')
  await killed.finished
  assert.ok(!receiver.byMessageId.has('order-completed-spooled'))
  interrupted.recover()
  await startHost(t, settings)
  await receiver.until(() => receiver.byMessageId.has('order-completed-spooled'))
})
