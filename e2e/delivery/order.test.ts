// Ordered destinations (docs/decisions/0110-order.md): receivers that fail at random get the messages of each user in the order in which they were
// accepted, and only the user of a failed message waits.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Answer, type Arrival, type Receiver, startReceiver } from '../system/receiver.ts'
import { type Service, startService } from '../system/service.ts'
import { acceptedOf, assertOrdered, failsFirst, sentIn, Users } from '../system/user-order.ts'
import { type Reachable, type Wiring, wire } from '../system/wiring.ts'

const RETRY = { initialMs: 100, maxMs: 400, factor: 2 }
const WAITING = { deadlineMs: 60_000 }

let service: InProcessService

before(async () => {
  service = await startInProcess()
})

after(() => service[Symbol.asyncDispose]())

/** An ordered destination and its receiver, which is closed at the end of the test. */
async function ordered(
  answer: (arrival: Arrival) => Answer | undefined,
  settings: object = {},
): Promise<{ receiver: Receiver; wiring: Wiring } & AsyncDisposable> {
  await using started = new AsyncDisposableStack()
  const receiver = started.use(await startReceiver(answer))
  const wiring = await wire(service, { urls: [receiver.url], retry: RETRY, order: { by: 'user' }, ...settings })
  const everything = started.move()
  return { receiver, wiring, [Symbol.asyncDispose]: () => everything.disposeAsync() }
}

describe('Ordered destinations', () => {
  for (const [name, settings] of Object.entries({
    'one message per request': {},
    'one request at a time': { maxInFlight: 1 },
    batches: { batch: { size: 7, lingerMs: 20 } },
    'batches without a linger time': { batch: { size: 3, lingerMs: 0 } },
  })) {
    test(`the messages of each user arrive in order although the receiver fails: ${name}`, async () => {
      await using it = await ordered(failsFirst(), settings)
      const { receiver, wiring } = it
      const users = new Users()
      for (let request = 0; request < 30; request++) {
        const names = Array.from({ length: 1 + (request % 5) }, (_, at) => `u${(request * 3 + at * at) % 7}`)
        await wiring.send(names.map((user) => users.message(user)))
      }
      await receiver.until(() => acceptedOf(receiver) === users.total, WAITING)
      assertOrdered(receiver.arrivals)
    })
  }

  test('only the user of a failed message waits', async () => {
    let isBroken = true
    await using it = await ordered((arrival) => (isBroken && sentIn(arrival)[0]?.user === 'broken' ? { status: 500 } : undefined))
    const { receiver, wiring } = it
    const users = new Users()
    await wiring.send([users.message('broken')])
    await wiring.attempted(users.id('broken', 1), 2)
    for (let at = 0; at < 20; at++) await wiring.send([users.message('broken'), users.message(`other${at % 3}`)])
    await receiver.until(() => acceptedOf(receiver) === 20, WAITING)
    assert.equal((await wiring.delivery(users.id('broken', 2), () => true)).attemptCount, 0)
    isBroken = false
    await receiver.until(() => acceptedOf(receiver) === users.total, WAITING)
    assertOrdered(receiver.arrivals)
  })

  for (const [by, waits] of [
    ['user', 'a/2'],
    ['source', 'b/1'],
  ] as const) {
    test(`the messages of a destination with two sources wait for others of the same ${by}`, async () => {
      const nameOf = ({ user, number }: { user: string; number: number }): string => `${user}/${number}`
      let isBroken = true
      const answer = (arrival: Arrival) => (isBroken && sentIn(arrival).map(nameOf).includes('a/1') ? { status: 500 } : undefined)
      await using it = await ordered(answer, { order: { by } })
      const { receiver, wiring } = it
      const hasArrived = (): boolean => receiver.arrivals.flatMap(sentIn).map(nameOf).includes(waits)
      const other = await wire(service)
      await wiring.change({ sourceIds: [wiring.sourceId, other.sourceId] })
      const users = new Users()
      await wiring.send([users.message('a')])
      await wiring.attempted(users.id('a', 1), 1)
      await wiring.send([users.message('b')])
      await other.send([users.message('a'), users.message('c')])
      await receiver.until(() => acceptedOf(receiver) === 2, WAITING)
      assert.equal(hasArrived(), false)
      isBroken = false
      await receiver.until(() => acceptedOf(receiver) === users.total, WAITING)
      assert.equal(hasArrived(), true)
    })
  }

  test('a message that fails for good lets the next one pass with skip, and holds its user with hold', async () => {
    const refuses = (arrival: Arrival): Answer | undefined =>
      arrival.messages[0]?.messageId?.endsWith('a/1') ? { status: 400 } : undefined
    await using skip = await ordered(refuses)
    await using hold = await ordered(refuses, { order: { by: 'user', onFailure: 'hold' } })
    const [skipped, held] = [new Users(), new Users()]
    for (const [{ wiring }, users] of [
      [skip, skipped],
      [hold, held],
    ] as const) {
      await wiring.send([users.message('a'), users.message('b'), users.message('a')])
      assert.equal((await wiring.settled(users.id('a', 1))).state, 'failed')
      assert.equal((await wiring.settled(users.id('b', 1))).state, 'delivered')
    }
    assert.equal((await skip.wiring.settled(skipped.id('a', 2))).state, 'delivered')
    await hold.wiring.send([held.message('c')])
    assert.equal((await hold.wiring.settled(held.id('c', 1))).state, 'delivered')
    assert.equal((await hold.wiring.delivery(held.id('a', 2), () => true)).state, 'pending')
  })

  test('with more waiting messages than allowed, the one that fails is given up, and the key goes on in order', async () => {
    await using it = await ordered((arrival) => (arrival.messages[0]?.messageId?.endsWith('busy/1') ? { status: 500 } : undefined), {
      order: { by: 'user', maxWaiting: 100 },
      retry: { initialMs: 60_000, maxMs: 60_000, factor: 2 },
    })
    const { receiver, wiring } = it
    const users = new Users()
    await wiring.send([users.message('busy')])
    await wiring.attempted(users.id('busy', 1), 1)
    await wiring.send(Array.from({ length: 101 }, () => users.message('busy')))
    assert.equal((await wiring.settled(users.id('busy', 1))).reason, 'order_backlog')
    await receiver.until(() => acceptedOf(receiver) === 101, WAITING)
    const accepted = receiver.arrivals.slice(1).map((arrival) => arrival.messages[0]?.messageId)
    assert.deepEqual(
      accepted,
      Array.from({ length: 101 }, (_, at) => users.id('busy', at + 2)),
    )
  })

  test('messages without a key are sent in any order, and everything goes on when the setting is removed', async () => {
    await using it = await ordered(failsFirst(2), { order: { by: 'properties.account' } })
    const { receiver, wiring } = it
    const users = new Users()
    await wiring.send([users.message('a'), { ...users.message('a'), properties: { account: 'x' } }])
    await wiring.change({ order: null })
    await wiring.send([users.message('a')])
    await receiver.until(() => acceptedOf(receiver) === 3, WAITING)
  })

  test('the order survives kill -9', async () => {
    await using first = await startService()
    let killed: Service = first
    const current: Reachable = {
      get url() {
        return killed.url
      },
      api: (...request) => killed.api(...request),
    }
    await using receiver = await startReceiver(failsFirst(4))
    const wiring = await wire(current, { urls: [receiver.url], retry: RETRY, order: {} })
    const users = new Users()
    for (let round = 0; round < 3; round++) {
      for (let request = 0; request < 10; request++) await wiring.send([users.message(`u${request % 3}`), users.message(`u${request % 2}`)])
      killed.kill('SIGKILL')
      await killed.ended
      killed = await killed.restart()
    }
    await receiver.until(() => acceptedOf(receiver) === users.total, WAITING)
    assertOrdered(receiver.arrivals, { afterDeath: true })
  })

  test('bad settings are refused with the field', async () => {
    await using it = await ordered(() => undefined)
    const bad: [object, string][] = [
      [{ by: 'nothing.known' }, 'order.by'],
      [{ by: 'context..groupId' }, 'order.by'],
      [{ onFailure: 'stop' }, 'order.onFailure'],
      [{ maxWaiting: 99 }, 'order.maxWaiting'],
      [{ maxWaiting: 1_000_001 }, 'order.maxWaiting'],
      [{ unknown: 1 }, 'order.unknown'],
    ]
    for (const [order, field] of bad)
      await assert.rejects(it.wiring.change({ order }), (error: Error) => error.message.includes(field), JSON.stringify(order))
  })
})
