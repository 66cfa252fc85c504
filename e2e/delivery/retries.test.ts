// What happens to a message that a receiver does not accept (docs/guide/delivery.md): which failures are temporary, when the
// message is retried and for how long, and what is recorded in the end. The tests move the service's clock to let hours pass, except
// for one, which waits in real time.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Answer, type Receiver, startReceiver } from '../system/receiver.ts'
import { startService } from '../system/service.ts'
import { type Delivery, type Wiring, wire } from '../system/wiring.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

// Some of each kind: verdict.test.ts has every status.
const TEMPORARY = [500, 503, 408, 429]
const PERMANENT = [301, 307, 400, 404, 410, 501]

let service: InProcessService

before(async () => {
  service = await startInProcess({
    lookup: async (hostname) => {
      if (hostname === 'gone.example') throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
      return ['127.0.0.1']
    },
  })
})

after(() => service[Symbol.asyncDispose]())

/** A webhook whose receiver gives this answer once, and 200 afterwards. */
async function failingOnce(answer: Answer, settings: object = {}): Promise<{ receiver: Receiver; wiring: Wiring }> {
  const receiver = await startReceiver(({ number }) => (number === 1 ? answer : undefined))
  return { receiver, wiring: await wire(service, { urls: [receiver.url], ...settings }) }
}

/** Shows that nothing else is in flight: a message that is sent afterwards has arrived. */
async function sentinel(): Promise<void> {
  const { wiring, receiver } = await failingOnce({})
  assert.equal((await wiring.settled(await wiring.track())).state, 'delivered')
  await receiver.close()
}

/** Milliseconds from now to the next attempt, by the service's clock. */
function untilNext({ nextAttemptAt }: Delivery): number {
  assert.ok(nextAttemptAt !== null, 'no attempt is planned')
  return Date.parse(nextAttemptAt) - service.now()
}

// At the same time, because the first one waits for ten seconds.
describe('Retries', { concurrency: 2 }, () => {
  test('when a receiver does not respond within 5 seconds, a timeout error is logged and the event is retried later', async () => {
    await using service = await startService()
    await using receiver = await startReceiver(({ number }) => (number === 1 ? { hang: true } : undefined))
    const wiring = await wire(service, { urls: [receiver.url] })
    const id = await wiring.track()
    const line = await service.logged(({ level, msg }) => level === 'error' && msg.includes('timeout'))
    assert.equal(line.msg, 'timeout: no response within 5000 ms; will retry within the retry window')
    assert.deepEqual([line['messageId'], line['destinationId'], line['attempt']], [id, wiring.destinationId, 1])
    const { state, attempts } = await wiring.settled(id)
    assert.equal(state, 'delivered')
    const [first, second] = attempts
    assert.deepEqual([first?.status, first?.reason, second?.status, second?.reason], [null, 'timeout', 200, null])
    assert.equal(first?.error, 'The deadline of 5000 ms passed while waiting for the response.')
    const ms = first?.timings.totalMs ?? 0
    assert.ok(ms >= 4_990 && ms < 20_000, `it took ${ms} ms`)
    assert.deepEqual(
      receiver.byMessageId.get(id)?.map(({ headers }) => headers['x-attempt']),
      ['1', '2'],
    )
  })

  describe('with a clock that the test moves', { concurrency: 1 }, () => {
    describe('When a request fails with a temporary error', () => {
      test('a timeout is temporary; the 5 seconds can be set lower per destination', async () => {
        const { wiring, receiver } = await failingOnce({ hang: true }, { timeoutMs: 200 })
        const id = await wiring.track()
        const { attempts } = await wiring.attempted(id, 1)
        assert.deepEqual(
          [attempts[0]?.reason, attempts[0]?.error],
          ['timeout', 'The deadline of 200 ms passed while waiting for the response.'],
        )
        // On a busy machine, the answer to the retry may take longer.
        await wiring.change({ timeoutMs: 5_000 })
        await service.later(5 * SECOND_MS)
        assert.equal((await wiring.settled(id)).state, 'delivered')
        await receiver.close()
      })

      for (const status of TEMPORARY) {
        test(`${status} is temporary: it is retried`, async () => {
          const { wiring, receiver } = await failingOnce({ status, body: `no, ${status}` })
          const id = await wiring.track()
          const pending = await wiring.attempted(id, 1)
          assert.equal(pending.state, 'pending')
          const waitMs = untilNext(pending)
          assert.ok(waitMs > 0 && waitMs <= 5 * SECOND_MS, `the next attempt comes in ${waitMs} ms`)
          await service.later(5 * SECOND_MS)
          const { state, attempts } = await wiring.settled(id)
          assert.equal(state, 'delivered')
          assert.deepEqual(
            attempts.map(({ attempt, status, reason, responseStart }) => ({ attempt, status, reason, responseStart })),
            [
              { attempt: 1, status, reason: `http_${status}`, responseStart: `no, ${status}` },
              { attempt: 2, status: 200, reason: null, responseStart: null },
            ],
          )
          await receiver.close()
        })
      }

      test('a refused connection, a reset connection and an unknown host name are temporary errors', async () => {
        const reset = await failingOnce({ reset: true })
        const refused = await failingOnce({})
        await refused.receiver.goAway()
        const unknown = await failingOnce({})
        await unknown.wiring.change({ urls: [`http://gone.example:${unknown.receiver.port}/`] })
        const reasons: unknown[] = []
        const sent: [Wiring, string][] = []
        for (const { wiring } of [reset, refused, unknown]) {
          const id = await wiring.track()
          const { state, attempts } = await wiring.attempted(id, 1)
          reasons.push([state, attempts[0]?.reason])
          sent.push([wiring, id])
        }
        assert.deepEqual(reasons, [
          ['pending', 'connection_reset'],
          ['pending', 'connection_refused'],
          ['pending', 'dns_not_found'],
        ])
        await refused.receiver.comeBack()
        await unknown.wiring.change({ urls: [`http://found.example:${unknown.receiver.port}/`] })
        await service.later(5 * SECOND_MS)
        for (const [wiring, id] of sent) assert.equal((await wiring.settled(id)).state, 'delivered')
        for (const { receiver } of [reset, refused, unknown]) await receiver.close()
      })

      test('it is retried for up to four hours, first after about 5 s and later at most every 10 minutes; then it expires', async () => {
        await using receiver = await startReceiver(() => ({ status: 500 }))
        const wiring = await wire(service, { urls: [receiver.url] })
        const id = await wiring.track()
        let delivery = await wiring.attempted(id, 1)
        const firstMs = service.now()
        const waits: number[] = []
        let lastMs = firstMs
        while (delivery.state === 'pending') {
          const waitMs = untilNext(delivery)
          waits.push(waitMs)
          await service.later(Math.max(waitMs, 0))
          const { attemptCount } = delivery
          delivery = await wiring.delivery(id, (now) => now.attemptCount > attemptCount || now.state !== 'pending')
          if (delivery.attemptCount > attemptCount) lastMs = service.now()
        }
        assert.deepEqual([delivery.state, delivery.attemptCount], ['expired', receiver.arrivals.length])
        assert.equal(delivery.reason, 'http_500')
        const [shortest, longest] = [Math.min(...waits.slice(0, -2)), Math.max(...waits)]
        assert.ok((waits[0] as number) <= 5 * SECOND_MS && shortest >= SECOND_MS, `at first ${waits[0]} ms, at least ${shortest} ms`)
        assert.ok(longest > 5 * MINUTE_MS && longest <= 10 * MINUTE_MS, `at most ${longest} ms`)
        const hours = (lastMs - firstMs) / HOUR_MS
        assert.ok(hours > 3.8 && hours < 4.01, `the last attempt came after ${hours} h`)
      })

      test('the four hours can be shortened per destination: a window of one second ends before the first retry', async () => {
        await using receiver = await startReceiver(() => ({ status: 500, body: 'down' }))
        const wiring = await wire(service, { urls: [receiver.url], retryWindowMs: 1_000 })
        const { state, reason, attempts } = await wiring.settled(await wiring.track())
        assert.deepEqual([state, reason, attempts.map(({ status }) => status)], ['expired', 'http_500', [500]])
      })

      test('while the circuit breaker is open, deliveries that were attempted expire with their window, and others do not', async () => {
        await using receiver = await startReceiver(() => ({ status: 500 }))
        const wiring = await wire(service, { urls: [receiver.url], retryWindowMs: MINUTE_MS, maxInFlight: 10 })
        const idsOf = (name: string, count: number): string[] =>
          Array.from({ length: count }, (_, number) => `${wiring.sourceId}-${name}-${number}`)
        const [tried, held] = [idsOf('tried', 10), idsOf('held', 30)]
        const send = (ids: readonly string[]): Promise<void> =>
          wiring.send(ids.map((messageId) => ({ type: 'track', messageId, userId: 'u-1', event: 'Tested' })))
        await send(tried)
        for (const id of tried) await wiring.attempted(id, 1)
        const { breaker } = await service.api<{ breaker: string }>(`/destinations/${wiring.destinationId}/health`)
        assert.notEqual(breaker, 'closed')
        await send(held)
        await service.later(MINUTE_MS + SECOND_MS)
        for (const id of tried) assert.equal((await wiring.settled(id)).state, 'expired')
        // All except those that were used as probes.
        const untried: string[] = []
        for (const id of held) {
          const { attemptCount, state } = await wiring.delivery(id, () => true)
          if (attemptCount > 0) continue
          assert.equal(state, 'pending')
          untried.push(id)
        }
        assert.ok(untried.length >= 25, `${held.length - untried.length} probes`)
        receiver.answer = () => undefined
        await service.later(30 * SECOND_MS)
        for (const id of untried) assert.equal((await wiring.settled(id)).state, 'delivered')
      })

      test('a message that was never attempted does not expire because the service was down', async () => {
        await using own = await startInProcess()
        await using receiver = await startReceiver(() => ({ status: 503, headers: { 'retry-after': '3600' } }))
        const wiring = await wire(own, { urls: [receiver.url] })
        const attempted = await wiring.track()
        await wiring.attempted(attempted, 1)
        const waiting = await wiring.track()
        assert.equal((await wiring.delivery(waiting, () => true)).attemptCount, 0)
        receiver.answer = () => undefined
        await own.restart({ laterMs: 5 * HOUR_MS })
        const { state, attemptCount } = await wiring.settled(waiting)
        assert.deepEqual([state, attemptCount], ['delivered', 1])
        assert.notEqual((await wiring.settled(attempted)).state, 'pending')
      })
    })

    describe('Retry-After', () => {
      test('of a 429 or 503 is respected, and delays the whole destination', async () => {
        for (const status of [429, 503]) {
          const { wiring, receiver } = await failingOnce({ status, headers: { 'retry-after': '120' } })
          const first = await wiring.track()
          const waitMs = untilNext(await wiring.attempted(first, 1))
          assert.ok(waitMs > 110 * SECOND_MS && waitMs < 121 * SECOND_MS, `the next attempt comes in ${waitMs} ms`)
          const second = await wiring.track()
          await service.later(60 * SECOND_MS)
          const { nextAttemptAt } = await service.api<{ nextAttemptAt: string }>(`/destinations/${wiring.destinationId}/health`)
          const healthMs = Date.parse(nextAttemptAt) - service.now()
          assert.ok(healthMs > 50 * SECOND_MS && healthMs < 61 * SECOND_MS, `health says ${healthMs} ms`)
          await sentinel()
          assert.deepEqual([receiver.byMessageId.get(first)?.length, receiver.byMessageId.has(second)], [1, false])
          await service.later(61 * SECOND_MS)
          for (const id of [first, second]) assert.equal((await wiring.settled(id)).state, 'delivered')
          assert.deepEqual([receiver.byMessageId.get(first)?.length, receiver.byMessageId.get(second)?.length], [2, 1])
          await receiver.close()
        }
      })

      test('is respected if it is a date', async () => {
        const date = new Date(service.now() + 300 * SECOND_MS).toUTCString()
        const { wiring, receiver } = await failingOnce({ status: 503, headers: { 'retry-after': date } })
        const waitMs = untilNext(await wiring.attempted(await wiring.track(), 1))
        assert.ok(waitMs > 280 * SECOND_MS && waitMs < 301 * SECOND_MS, `the next attempt comes in ${waitMs} ms`)
        await receiver.close()
      })

      test('longer than the window: one last attempt is made at the end of the window', async () => {
        const { wiring, receiver } = await failingOnce(
          { status: 429, headers: { 'retry-after': '86400' } },
          { retryWindowMs: 60 * SECOND_MS },
        )
        const id = await wiring.track()
        const waitMs = untilNext(await wiring.attempted(id, 1))
        assert.ok(waitMs <= 60 * SECOND_MS, `the next attempt comes in ${waitMs} ms`)
        await service.later(60 * SECOND_MS)
        assert.equal((await wiring.settled(id)).state, 'delivered')
        await receiver.close()
      })
    })

    describe('Permanent failures', () => {
      for (const status of PERMANENT) {
        const why = status < 400 ? ': redirects are not followed' : ''
        test(`${status} is permanent${why}: the delivery fails and is not retried`, async () => {
          await using elsewhere = await startReceiver()
          const { wiring, receiver } = await failingOnce({ status, headers: { location: elsewhere.url, 'retry-after': '1' } })
          const id = await wiring.track()
          const { state, reason, attempts } = await wiring.settled(id)
          assert.deepEqual([state, reason, attempts.map((attempt) => attempt.status)], ['failed', `http_${status}`, [status]])
          await service.later(10 * MINUTE_MS)
          assert.equal((await wiring.settled(await wiring.track())).state, 'delivered')
          assert.deepEqual([receiver.byMessageId.get(id)?.length, elsewhere.arrivals.length], [1, 0])
          await receiver.close()
        })
      }

      test('failed and expired deliveries are kept, can be listed by state and reason, and can be replayed', async () => {
        const failing = await failingOnce({ status: 410 })
        const expiring = await failingOnce({ status: 500 }, { retryWindowMs: 1_000 })
        for (const [{ wiring, receiver }, state, reason] of [
          [failing, 'failed', 'http_410'],
          [expiring, 'expired', 'http_500'],
        ] as const) {
          const id = await wiring.track()
          const { id: deliveryId } = await wiring.settled(id)
          const query = `destinationId=${wiring.destinationId}&state=${state}&reason=${reason}`
          const { data } = await service.api<{ data: { id: string; messageId: string }[] }>(`/deliveries?${query}`)
          assert.deepEqual(
            data.map(({ id, messageId }) => ({ id, messageId })),
            [{ id: deliveryId, messageId: id }],
          )
          await service.api(`/deliveries/${deliveryId}/replay`, { method: 'POST' })
          await receiver.until(() => receiver.byMessageId.get(id)?.length === 2)
          assert.equal((await wiring.settled(id)).state, state, 'the first delivery stays what it came to')
          await receiver.close()
        }
      })
    })
  })
})
