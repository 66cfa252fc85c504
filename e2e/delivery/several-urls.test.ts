// A webhook with several URLs: all are tried at once, one success is enough, and only URLs that failed
// temporarily are tried again.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Behaviour, type Receiver, startReceiver } from '../system/receiver.ts'
import { type Delivery, type Wiring, wire } from '../system/wiring.ts'

let service: InProcessService
const receivers: Receiver[] = []

before(async () => {
  service = await startInProcess()
})

after(async () => {
  await service[Symbol.asyncDispose]()
  for (const receiver of receivers) await receiver.close()
})

/** One URL for each behaviour. */
async function webhook(...behaviours: Behaviour[]): Promise<{ wiring: Wiring; at: Receiver[] }> {
  const at = await Promise.all(behaviours.map((behaviour) => startReceiver(behaviour)))
  receivers.push(...at)
  return { wiring: await wire(service, { urls: at.map(({ url }) => url), timeoutMs: 3_000 }), at }
}

const taken: Behaviour = () => undefined
const answering =
  (status: number): Behaviour =>
  () => ({ status })
const counts = (at: readonly Receiver[]): number[] => at.map(({ arrivals }) => arrivals.length)
/** The results at each URL, by attempt. */
const statuses = ({ attempts }: Delivery, at: readonly Receiver[]): (number | null)[][] => {
  const rows: (number | null)[][] = []
  for (const { attempt, url, status } of attempts) {
    rows[attempt - 1] ??= []
    rows[attempt - 1]?.splice(
      at.findIndex((receiver) => receiver.url === url),
      0,
      status,
    )
  }
  return rows
}

describe('Several configured URLs', () => {
  test('every URL is tried at once', async () => {
    let release = (): void => {}
    const all = new Promise<void>((resolve) => {
      release = resolve
    })
    // No receiver answers before all have got a request: requests one after another would time out.
    const wait: Behaviour = () => ({ after: all })
    const { wiring, at } = await webhook(wait, wait, wait, wait, wait)
    await wiring.change({ timeoutMs: 5_000 })
    const id = await wiring.track()
    for (const receiver of at) await receiver.until(() => receiver.arrivals.length === 1)
    release()
    const delivery = await wiring.settled(id)
    assert.equal(delivery.state, 'delivered')
    assert.ok(delivery.attempts.every(({ attempt, status }) => attempt === 1 && status === 200))
    assert.deepEqual(delivery.attempts.map(({ url }) => url).sort(), at.map(({ url }) => url).sort())
    const bodies = new Set(at.map(({ arrivals }) => arrivals[0]?.bytes.toString()))
    assert.equal(bodies.size, 1, 'all get the same')
  })

  test('a URL that hangs does not delay messages that another URL has accepted', async () => {
    const { wiring, at } = await webhook(taken, () => ({ hang: true }))
    const [taking, hanging] = at as [Receiver, Receiver]
    await wiring.change({ maxInFlight: 2, timeoutMs: 5_000 })
    await wiring.send(Array.from({ length: 40 }, (_, n) => ({ type: 'track', messageId: `held-up-${n}`, userId: 'u-1', event: 'Tested' })))
    // If deliveries waited for the URL that hangs, it would get no more requests than may be in flight.
    await hanging.until(() => hanging.open() >= 10, { state: () => `${hanging.open()} open, ${taking.byMessageId.size} taken` })
    await taking.until(() => taking.byMessageId.size === 40)
    const delivery = await wiring.delivery('held-up-39', ({ attempts }) => attempts.length === 2, { what: 'the timeout is on record' })
    assert.deepEqual(
      new Map(delivery.attempts.map(({ url, status, reason }) => [url, status ?? reason])),
      new Map<string, number | string | null>([
        [taking.url, 200],
        [hanging.url, 'timeout'],
      ]),
    )
  })

  test('when sending to any one of them succeeds, the message is processed and the other URLs are not retried', async () => {
    for (const others of [answering(500), answering(404), (): object => ({ reset: true }), (): object => ({ hang: true })]) {
      const { wiring, at } = await webhook(others, taken, others)
      const id = await wiring.track()
      assert.equal((await wiring.settled(id)).state, 'delivered')
      const what = 'the failures are on record, too, once they are known'
      const delivery = await wiring.delivery(id, ({ attempts }) => attempts.length === 3, { what })
      assert.equal(delivery.state, 'delivered')
      assert.equal(delivery.attempts.filter(({ status }) => status === 200).length, 1)
      await service.later(600_000)
      await wiring.settled(await wiring.track())
      assert.deepEqual(
        at.map(({ byMessageId }) => byMessageId.get(id)?.length),
        [1, 1, 1],
      )
    }
  })

  test('when none succeeds, the URLs that failed temporarily are retried, and only those', async () => {
    const { wiring, at } = await webhook(answering(400), answering(503), answering(500))
    const id = await wiring.track()
    assert.deepEqual(statuses(await wiring.attempted(id, 1), at), [[400, 503, 500]])
    ;(at[2] as Receiver).answer = answering(410)
    await service.later(5_000)
    await wiring.attempted(id, 2)
    ;(at[1] as Receiver).answer = taken
    await service.later(10_000)
    const delivery = await wiring.settled(id)
    assert.deepEqual([delivery.state, delivery.attemptCount], ['delivered', 3])
    assert.deepEqual(counts(at), [1, 3, 2])
    assert.deepEqual(statuses(delivery, at), [[400, 503, 500], [503, 410], [200]])
  })

  test('when no URL is left to retry, the delivery fails', async () => {
    const all = await webhook(answering(400), answering(404))
    assert.deepEqual((await all.wiring.settled(await all.wiring.track())).state, 'failed')
    const { wiring, at } = await webhook(answering(400), answering(503))
    const id = await wiring.track()
    assert.equal((await wiring.attempted(id, 1)).state, 'pending')
    ;(at[1] as Receiver).answer = answering(404)
    await service.later(5_000)
    const { state, reason } = await wiring.settled(id)
    assert.deepEqual([state, reason], ['failed', 'http_404'])
    assert.deepEqual(counts(at), [1, 2])
  })

  test('a replay tries every URL again', async () => {
    const { wiring, at } = await webhook(answering(400), answering(404))
    const id = await wiring.track()
    const { id: deliveryId } = await wiring.settled(id)
    ;(at[0] as Receiver).answer = taken
    const replay = await service.api<{ id: string }>(`/deliveries/${deliveryId}/replay`, { method: 'POST' })
    for (const receiver of at) await receiver.until(() => receiver.arrivals.length === 2)
    const { deliveries } = await wiring.message(id)
    assert.deepEqual(
      deliveries.map(({ id, replay }) => [id, replay]),
      [
        [deliveryId, false],
        [replay.id, true],
      ],
    )
  })

  test('retries use the present URLs of the destination, not those that were removed', async () => {
    const { wiring, at } = await webhook(answering(500))
    const next = await startReceiver()
    receivers.push(next)
    const id = await wiring.track()
    await wiring.attempted(id, 1)
    await wiring.change({ urls: [next.url] })
    await service.later(5_000)
    assert.equal((await wiring.settled(id)).state, 'delivered')
    assert.deepEqual([counts(at), next.byMessageId.get(id)?.length], [[1], 1])
  })
})
