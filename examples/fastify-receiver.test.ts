import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, type TestContext, test } from 'node:test'
import { generateSecret, signStandardWebhook } from '@switchyard/webhook'
import { startInProcess } from '../e2e/system/in-process.ts'
import type { LedgerRow } from '../e2e/system/service.ts'
import { eventually } from '../e2e/system/signals.ts'
import { wire } from '../e2e/system/wiring.ts'
import { freePort } from '../packages/server/src/store/fixtures/free-port.ts'
import { type RunningExample, runExample, startExample } from './testing/run-example.ts'

const SECRET = generateSecret()
const USERS = 7

const service = await startInProcess()
after(() => service[Symbol.asyncDispose]())

/** The port and the file stay the same when the process is restarted. */
interface Place {
  url: string
  start: () => Promise<RunningExample>
  counts: () => { stored: number; done: number; orders: number; spent: number; customers: number }
}

async function place(t: TestContext): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-fastify-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [port, file] = [await freePort(), join(folder, 'inbox.db')]
  return {
    url: `http://127.0.0.1:${port}/`,
    async start() {
      const env = { PORT: String(port), INBOX_FILE: file, SWITCHYARD_SIGNING_SECRET: SECRET }
      const receiver = startExample(t, 'fastify-receiver.ts', { env })
      await receiver.waitFor(/Server listening/)
      return receiver
    },
    counts() {
      const database = new DatabaseSync(file)
      try {
        const row = database
          .prepare(
            `SELECT (SELECT count(*) FROM inbox) AS stored, (SELECT count(done_at) FROM inbox) AS done,
             (SELECT coalesce(sum(orders), 0) FROM customers) AS orders, (SELECT coalesce(sum(spent), 0) FROM customers) AS spent,
             (SELECT count(*) FROM customers) AS customers`,
          )
          .get()
        return { ...row } as ReturnType<Place['counts']>
      } finally {
        database.close()
      }
    },
  }
}

/** Posts as the service would. */
function post(url: string, body: string, secret = SECRET, sent = body): Promise<Response> {
  const signed = signStandardWebhook({ id: 'msg_1', timestampSeconds: Math.floor(Date.now() / 1_000), body }, secret)
  return fetch(url, { method: 'POST', body: sent, headers: { 'content-type': 'application/json', ...signed } })
}

const order = (messageId: string, fields: object = {}): object => ({
  type: 'track',
  messageId,
  userId: 'user-1',
  event: 'Order Completed',
  properties: { total: 3 },
  ...fields,
})

test('killed repeatedly while it works, and sent everything twice, it processes each order once and loses none', async (t) => {
  const { url, start, counts } = await place(t)
  const wiring = await wire(service, { urls: [url], signingSecrets: [SECRET], batch: { size: 10, lingerMs: 20 } })
  const { destinationId } = wiring
  let sent = 0
  const send = (count: number): Promise<void> =>
    wiring.send(Array.from({ length: count }, () => order(`order-${++sent}`, { userId: `user-${sent % USERS}` })))
  const delivered = (): Promise<unknown> =>
    eventually(
      async () => {
        const { data } = await service.api<{ data: LedgerRow[] }>('/ledger')
        return data.find((row) => row.destinationId === destinationId)
      },
      (row) => row?.pending === 0 && row.owed === row.delivered,
      { what: 'everything is delivered' },
    )
  const isDone = (): Promise<unknown> =>
    eventually(
      async () => counts(),
      ({ stored, done }) => stored === sent && done === sent,
      { what: `${sent} orders are processed` },
    )

  let interrupted = 0
  for (const sign of [/"received"/, /"done"/, /("received"[^]*){4}/]) {
    const receiver = await start()
    await send(200)
    // Requests that the previous receiver had not answered are sent again.
    await service.later(10_000)
    await receiver.waitFor(sign)
    receiver.child.kill('SIGKILL')
    assert.equal((await receiver.finished).code, null)
    if (counts().done < sent) interrupted++
  }
  assert.ok(interrupted > 0, 'no kill interrupted the work')
  await send(50)

  const last = await start()
  await service.later(30_000)
  await delivered()
  await isDone()
  assert.deepEqual(counts(), { stored: 650, done: 650, orders: 650, spent: 1_950, customers: USERS })

  // Replay all of it, as an operator would.
  const body = { destinationId, states: ['delivered'] }
  const replay = await service.api<{ id: string }>('/replays', { method: 'POST', body })
  await eventually(
    () => service.api<{ state: string; total: number }>(`/replays/${replay.id}`),
    ({ state }) => state === 'finished',
  )
  await delivered()
  await send(1)
  await isDone()
  assert.deepEqual(counts(), { stored: 651, done: 651, orders: 651, spent: 1_953, customers: USERS })

  // A delete message has no messageId and must still be processed.
  await service.api('/deletions', { method: 'POST', body: { userIds: ['user-1'], sourceIds: [wiring.sourceId] } })
  await eventually(
    async () => counts(),
    ({ customers }) => customers === USERS - 1,
    { what: 'the customer is deleted' },
  )
  last.child.kill('SIGTERM')
  assert.equal((await last.finished).code, 0)
})

test('the signature is verified over the raw bytes; forged, altered and unsigned requests are rejected', async (t) => {
  const { url, start, counts } = await place(t)
  const receiver = await start()
  const body = ` { "type": "track",  "messageId": "spaced", "userId": "\\u0075", "event": "Order Completed", "properties": {"total": 1.0} }`
  assert.notEqual(body, JSON.stringify(JSON.parse(body)))
  assert.equal((await post(url, body)).status, 204)
  assert.equal((await post(url, body, SECRET, body.replace('1.0', '9.0'))).status, 401)
  assert.equal((await post(url, body, generateSecret())).status, 401)
  assert.equal((await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })).status, 401)
  await receiver.waitFor(/"done"/)
  assert.deepEqual(counts(), { stored: 1, done: 1, orders: 1, spent: 1, customers: 1 })
})

test('a message whose processing fails waits without delaying the others, and survives SIGTERM', async (t) => {
  const { url, start, counts } = await place(t)
  const receiver = await start()
  assert.equal((await post(url, JSON.stringify([order('bad', { userId: {} }), order('good')]))).status, 204)
  await receiver.waitFor(/"messageId":"bad"[^\n]*processing failed, will be retried/)
  await receiver.waitFor(/"messageId":"good"[^\n]*"done"/)
  receiver.child.kill('SIGTERM')
  assert.equal((await receiver.finished).code, 0)
  assert.deepEqual(counts(), { stored: 2, done: 1, orders: 1, spent: 3, customers: 1 })
})

test('it does not start without a secret', async (t) => {
  const { code, stderr } = await runExample(t, 'fastify-receiver.ts')
  assert.equal(code, 2)
  assert.match(stderr, /^SWITCHYARD_SIGNING_SECRET must be/)
})
