// Clients send as fast as the service answers. Meanwhile a receiver must still get its deliveries, and clients get slower answers and then
// 503. A destination that is dead or slow by itself does not slow down clients.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Analytics } from '@switchyard/node'
import { IS_LONG } from '../system/long-tests.ts'
import { type Service, startService } from '../system/service.ts'
import { eventually, Signals } from '../system/signals.ts'
import { type Wiring, wire } from '../system/wiring.ts'

const CONNECTIONS = 8
const SATURATED_MS = IS_LONG ? 5_000 : 2_000
const BATCH = 500
/** Without messageIds, so that every request has new messages. */
const BODY = JSON.stringify({
  batch: Array.from({ length: BATCH }, (_, nth) => ({
    type: 'track',
    event: 'Tested',
    userId: `u-${nth}`,
    properties: { text: 'x'.repeat(400) },
  })),
})

/** A receiver that only counts, so that it is not the bottleneck. */
async function startCounter(answerAfterMs = 0) {
  const signals = new Signals()
  const counter = { received: 0, bodies: [] as string[] }
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      counter.received++
      if (body.includes('Through the client')) counter.bodies.push(body)
      signals.notify()
      setTimeout(() => response.end(), answerAfterMs)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(counter, {
    url: `http://127.0.0.1:${port}/`,
    until: (passes: () => boolean, deadlineMs = 120_000) =>
      signals.until(passes, { deadlineMs, state: () => `${counter.received} received` }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  })
}

interface Answer {
  status: number
  retryAfter: string | null
  text: string
}

async function post(service: Service, { writeKey }: Wiring): Promise<Answer> {
  const response = await fetch(`${service.url}/v1/batch`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${writeKey}:`)}`, 'content-type': 'application/json' },
    body: BODY,
  })
  return { status: response.status, retryAfter: response.headers.get('retry-after'), text: await response.text() }
}

/** Sends on all connections, each its next request when the last was answered, until `isOver`. */
async function saturate(service: Service, wiring: Wiring, isOver: (answers: readonly Answer[]) => boolean): Promise<Answer[]> {
  const answers: Answer[] = []
  const send = async (): Promise<void> => {
    while (!isOver(answers)) answers.push(await post(service, wiring))
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, send))
  return answers
}

async function metric(service: Service, name: string): Promise<number> {
  const text = await (await fetch(`${service.url}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}

test('a healthy destination gets a fair share while ingest is saturated, and everything acknowledged arrives', async (t) => {
  await using service = await startService({ log: 'fatal' })
  await using receiver = await startCounter()
  const wiring = await wire(service, { urls: [receiver.url], paused: true })
  const deadlineAt = (ms: number) => performance.now() + ms

  await saturate(service, wiring, ({ length }) => length >= 10)
  const acceptedBefore = (await service.ledger())[0]?.owed ?? 0
  let startedAt = performance.now()
  await wiring.change({ paused: false })
  await receiver.until(() => receiver.received >= acceptedBefore)
  const alonePerSecond = acceptedBefore / ((performance.now() - startedAt) / 1_000)

  startedAt = performance.now()
  const before = receiver.received
  const endsAt = deadlineAt(SATURATED_MS)
  // On a busy machine it takes longer until clients are slowed down.
  const countDelayed = (): Promise<number> => metric(service, 'switchyard_ingest_requests_delayed_total')
  let isDecided = false
  const slowedDown = eventually(countDelayed, (count) => count > 0, { what: 'clients are slowed down' }).finally(() => (isDecided = true))
  const [answers] = await Promise.all([saturate(service, wiring, () => isDecided && performance.now() > endsAt), slowedDown])
  const deliveredPerSecond = (receiver.received - before) / ((performance.now() - startedAt) / 1_000)
  const refused = answers.filter(({ status }) => status !== 200)
  const delayed = await countDelayed()
  t.diagnostic(
    `alone ${alonePerSecond.toFixed(0)}/s, saturated ${deliveredPerSecond.toFixed(0)}/s, ${answers.length} answers, ${refused.length} refused, ${delayed} delayed`,
  )
  assert.ok(refused.every(({ status, retryAfter, text }) => status === 503 && retryAfter === '1' && text.includes('"overloaded"')))
  // About 0.5 if the service has its own machine; 0.02 to 0.04 without pacing. Here clients, receiver and other tests share the machine.
  assert.ok(deliveredPerSecond > 0.1 * alonePerSecond, `${deliveredPerSecond} per second, and ${alonePerSecond} alone`)
  const owed = acceptedBefore + (answers.length - refused.length) * BATCH
  await receiver.until(() => receiver.received >= owed)
  const [line] = await service.settled()
  assert.deepEqual([line?.owed, line?.delivered], [owed, owed])
  assert.equal(await metric(service, 'switchyard_ingest_paced'), 0)
})

test('above SWITCHYARD_MAX_BACKLOG requests get 503 with Retry-After, and the client sends again until its message is accepted', async () => {
  await using service = await startService({ log: 'fatal', env: { SWITCHYARD_MAX_BACKLOG: '2000' } })
  await using receiver = await startCounter()
  const wiring = await wire(service, { urls: [receiver.url] })
  const isRefused = ({ status, retryAfter }: Answer): boolean => status === 503 && retryAfter === '5'
  const endsAt = performance.now() + 90_000
  const answers = await saturate(service, wiring, (all) => all.some(isRefused) || performance.now() > endsAt)
  const refused = answers.find(isRefused)
  assert.ok(refused, 'the limit was reached')
  assert.equal((JSON.parse(refused.text) as { code: string }).code, 'overloaded')
  assert.ok((await metric(service, 'switchyard_ingest_requests_refused_total')) > 0)

  const client = new Analytics({ writeKey: wiring.writeKey, host: service.url, maxRetries: 10 })
  client.track({ userId: 'u-1', event: 'Through the client' })
  await client.closeAndFlush({ timeout: 60_000 })
  await receiver.until(() => receiver.bodies.length === 1)
  const acknowledged = answers.filter(({ status }) => status === 200).length * BATCH + 1
  const [line] = await service.settled()
  assert.equal(line?.delivered, acknowledged)
})

test('a dead and a slow destination above SWITCHYARD_MAX_BACKLOG neither delay nor refuse a request', async () => {
  await using service = await startService({ log: 'fatal', env: { SWITCHYARD_MAX_BACKLOG: '100' } })
  await using slow = await startCounter(2_000)
  await using dead = await startCounter()
  const deadUrl = dead.url
  await dead[Symbol.asyncDispose]()
  const wiring = await wire(service, { urls: [deadUrl] }, { urls: [slow.url] })
  const endsAt = performance.now() + SATURATED_MS / 2
  const answers = await saturate(service, wiring, () => performance.now() > endsAt)
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  assert.equal(await metric(service, 'switchyard_ingest_requests_refused_total'), 0)
  assert.equal(await metric(service, 'switchyard_ingest_requests_delayed_total'), 0)
})
