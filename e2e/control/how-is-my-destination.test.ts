// The state of a destination in the control API: a test message, its health, and whether the ledger is consistent.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Arrival, type Receiver, startReceiver } from '../system/receiver.ts'
import type { LedgerRow } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { type AttemptView, type DeliveryRow, wire } from '../system/wiring.ts'

let service: InProcessService
let receiver: Receiver

before(async () => {
  service = await startInProcess()
  receiver = await startReceiver()
})

after(async () => {
  await service[Symbol.asyncDispose]()
  await receiver.close()
})

describe('The test of a destination', () => {
  test('sends one sample message of each type now, and answers with its attempts', async () => {
    const wiring = await wire(service, { urls: [`${receiver.url}test`], sharedSecret: 'a secret' })
    for (const type of ['track', 'identify', 'page', 'screen', 'group', 'alias', 'delete']) {
      const before = receiver.arrivals.length
      const answer = await service.api<{ success: boolean; message: object; attempts: AttemptView[] }>(
        `/destinations/${wiring.destinationId}/test`,
        { method: 'POST', body: { type } },
      )
      const arrival = receiver.arrivals[before] as Arrival
      assert.deepEqual([answer.success, answer.attempts.length, answer.attempts[0]?.status], [true, 1, 200])
      assert.deepEqual([arrival.messages, arrival.path], [[answer.message], '/test'])
      assert.equal((answer.message as { type: string }).type, type)
      assert.ok(arrival.headers['x-signature'])
    }
    const { data } = await service.api<{ data: unknown[] }>(`/deliveries?destinationId=${wiring.destinationId}`)
    assert.deepEqual(data, [], 'nothing is owed or recorded')
  })

  test('reports why it failed', async () => {
    await using own = await startReceiver(() => ({ status: 500, body: 'oops' }))
    const wiring = await wire(service, { urls: [own.url, receiver.url] })
    type Answer = { success: boolean; attempts: AttemptView[] }
    const path = `/destinations/${wiring.destinationId}/test`
    const one = await service.api<Answer>(path, { method: 'POST' })
    assert.equal(one.success, true, 'one URL is enough')
    assert.deepEqual(
      one.attempts.map(({ url, status }) => [url, status]),
      [
        [own.url, 500],
        [receiver.url, 200],
      ],
    )
    await wiring.change({ urls: [own.url] })
    const none = await service.api<Answer>(path, { method: 'POST' })
    assert.deepEqual([none.success, none.attempts[0]?.reason, none.attempts[0]?.responseStart], [false, 'http_500', 'oops'])
  })
})

describe('Health and ledger', () => {
  test('health: circuit breaker, in flight, pending, recent success and latency, also by URL', async () => {
    await using own = await startReceiver(({ path }) => (path === '/bad' ? { status: 500 } : undefined))
    const wiring = await wire(service, { urls: [`${own.url}good`, `${own.url}bad`] })
    const path = `/destinations/${wiring.destinationId}/health`
    const none = { inFlight: 0, success: null, latencyMs: null }
    const ledger = { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }
    assert.deepEqual(await service.api(path), {
      breaker: 'closed',
      openSince: null,
      ...none,
      held: null,
      failingTables: [],
      pending: 0,
      oldestPendingAt: null,
      nextAttemptAt: null,
      nextExpiryAt: null,
      failure: null,
      mostFrequentFailure: null,
      ledger,
      content: { version: 1, failing: null },
      urls: [
        { url: `${own.url}good`, ...none },
        { url: `${own.url}bad`, ...none },
      ],
    })
    for (let number = 0; number < 4; number++) await wiring.settled(await wiring.track())
    type Health = { success: number; latencyMs: { p50: number; p95: number; p99: number }; ledger: object; urls: { success: number }[] }
    const health = await service.api<Health>(path)
    assert.equal(health.success, 0.5)
    assert.deepEqual(
      health.urls.map(({ success }) => success),
      [1, 0],
    )
    const { p50, p95, p99 } = health.latencyMs
    assert.ok(p50 > 0 && p50 <= p95 && p95 <= p99)
    assert.deepEqual(health.ledger, { ...ledger, owed: 4, delivered: 4 })
  })

  test('owed = delivered + pending + failed + expired + cancelled for each destination, also when the rows are counted', async () => {
    await using own = await startInProcess()
    const answers: Record<string, number> = { Taken: 200, Refused: 400, Later: 500 }
    await using receiver = await startReceiver(({ messages }) => ({ status: answers[String(messages[0]?.['event'])] ?? 200 }))
    const wiring = await wire(own, { urls: [receiver.url] }, { urls: [receiver.url], retryWindowMs: 1_000 })
    const [patient, hasty] = wiring.destinationIds as [string, string]
    const ids: string[] = []
    for (const event of ['Taken', 'Taken', 'Taken', 'Refused', 'Refused', 'Later']) ids.push(await wiring.track({ event, userId: event }))
    for (const id of ids) {
      await wiring.attempted(id, 1)
      await wiring.settled(id, { to: hasty })
    }
    const replayed = await wiring.settled(ids[3] as string)
    await own.api(`/deliveries/${replayed.id}/replay`, { method: 'POST' })
    await wiring.send([{ type: 'track', messageId: 'later-2', userId: 'u-2', event: 'Later' }])
    await wiring.attempted('later-2', 1)
    await wiring.settled('later-2', { to: hasty })
    await own.api('/deletions', { method: 'POST', body: { userIds: ['Later'] } })
    type Ledger = { data: LedgerRow[]; consistent: boolean }
    const expected: Record<string, Omit<LedgerRow, 'destinationId'>> = {
      [patient]: { owed: 9, delivered: 4, pending: 1, failed: 3, expired: 0, cancelled: 1, quarantined: 0 },
      [hasty]: { owed: 8, delivered: 4, pending: 0, failed: 2, expired: 2, cancelled: 0, quarantined: 0 },
    }
    // A delivery that waits for a retry when its destination is deleted is cancelled when the retry is due.
    await own.later(5_000)
    for (const query of ['', '?recount=true']) {
      const { data, consistent } = await eventually(
        () => own.api<Ledger>(`/ledger${query}`),
        ({ data }) => data.every(({ destinationId, pending }) => pending === expected[destinationId]?.pending),
        { what: 'nothing but one is pending' },
      )
      assert.deepEqual(Object.fromEntries(data.map(({ destinationId, ...row }) => [destinationId, row])), expected)
      assert.equal(consistent, true)
    }
  })

  test('deliveries are listed by destination and state, page by page', async () => {
    const wiring = await wire(service, { urls: [receiver.url] })
    const ids = Array.from({ length: 25 }, (_, at) => `${wiring.sourceId}-${at}`)
    await wiring.send(ids.map((messageId) => ({ type: 'track', messageId, userId: 'u-1', event: 'Tested' })))
    for (const id of ids) await wiring.settled(id)
    const found: (string | null)[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page: { data: DeliveryRow[]; next: string | null } = await service.api(
        `/deliveries?destinationId=${wiring.destinationId}&state=delivered&limit=10${cursor === '' ? '' : `&cursor=${cursor}`}`,
      )
      assert.ok(page.data.length <= 10)
      found.push(...page.data.map(({ messageId }) => messageId))
      cursor = page.next
    }
    assert.deepEqual([found.length, new Set(found)], [ids.length, new Set(ids)])
  })
})
