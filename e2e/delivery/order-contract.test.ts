// What the control API answers about ordered destinations, line by line: names of fields, status codes, and what is listed. What the rows look like is
// tested with the stores, and what arrives at receivers in order.test.ts.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { switchyard } from '../system/command-line.ts'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Answer, type Arrival, startReceiver } from '../system/receiver.ts'
import { TOKEN } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { Users } from '../system/user-order.ts'
import { type DestinationSettings, type Wiring, wire } from '../system/wiring.ts'

/** Longer than any test, so that a failed message stays the head of its key. */
const NEVER = { initialMs: 3_600_000, maxMs: 3_600_000, factor: 2 }
const WAITING = { deadlineMs: 60_000 }

let service: InProcessService

before(async () => {
  service = await startInProcess()
})

after(() => service[Symbol.asyncDispose]())

interface Reply {
  status: number
  /** Anything. */
  body: ReturnType<typeof JSON.parse>
}

/** An answer that is given when the test says so. */
function held(): { after: Promise<void>; give: () => void } {
  let give = (): void => {}
  const after = new Promise<void>((resolve) => {
    give = resolve
  })
  return { after, give }
}

async function call(method: string, path: string, body?: unknown): Promise<Reply> {
  const response = await fetch(`${service.url}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: await response.json() }
}

/** A destination whose receiver answers as told, and at which the first message of `a` has failed and two others wait behind it. */
async function waitingFor(answer: (arrival: Arrival) => Answer | undefined, settings: DestinationSettings = {}) {
  await using started = new AsyncDisposableStack()
  const receiver = started.use(await startReceiver(answer))
  const wiring = await wire(service, { urls: [receiver.url], retry: NEVER, order: {}, ...settings })
  const users = new Users()
  await wiring.send([users.message('a'), users.message('b')])
  await wiring.attempted(users.id('a', 1), 1, WAITING)
  await wiring.send([users.message('a'), users.message('a')])
  await orderOf(wiring, ({ waitingMessages }) => waitingMessages === 2)
  const all = started.move()
  return { receiver, wiring, users, order: `/destinations/${wiring.destinationId}/order`, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

/** What is listed, as soon as it meets the condition. */
function orderOf({ destinationId }: Wiring, passes: (order: Reply['body']) => boolean): Promise<Reply['body']> {
  return eventually(async () => (await call('GET', `/destinations/${destinationId}/order`)).body, passes, WAITING)
}

const isUser = (user: string, { messages }: Arrival): boolean => messages[0]?.['userId'] === user
const fails = (status: number) => (arrival: Arrival) => (isUser('a', arrival) ? { status } : undefined)

describe('The API of ordered destinations', () => {
  test('a waiting key is listed with the fields that are promised, and what waits says for which message', async () => {
    await using it = await waitingFor(fails(500))
    const { body: order } = await call('GET', it.order)
    const { since } = order.oldest
    const { deliveryId, nextAttemptAt } = order.data[0].head
    const head = it.users.id('a', 1)
    assert.deepEqual(order, {
      waitingKeys: 1,
      waitingMessages: 2,
      heldKeys: 0,
      keylessMessages: 0,
      oldest: { key: 'a', since, messageId: head, reason: 'http_500' },
      data: [
        {
          key: 'a',
          state: 'waiting',
          waiting: 2,
          since,
          skipping: false,
          head: {
            messageId: head,
            deliveryId,
            state: 'pending',
            attempts: 1,
            reason: 'http_500',
            reasonSentence: order.data[0].head.reasonSentence,
            nextAttemptAt,
          },
        },
      ],
      next: null,
    })
    assert.ok(Date.parse(since) <= Date.now() && Date.parse(nextAttemptAt) > Date.now())
    const expected = { messageId: head, key: 'a' }
    for (const number of [2, 3]) {
      const single = (await it.wiring.delivery(it.users.id('a', number), () => true)) as unknown as Reply['body']
      assert.deepEqual([single.state, single.waitingFor], ['pending', expected])
      const { story, deliveries } = await it.wiring.message(it.users.id('a', number))
      assert.deepEqual((deliveries[0] as unknown as Reply['body']).waitingFor, expected)
      assert.match(story.at(-1)?.sentence ?? '', new RegExp(`Waits for the message "${head}"`))
    }
    const { body: list } = await call('GET', `/deliveries?destinationId=${it.wiring.destinationId}&state=pending`)
    const waits = Object.fromEntries(list.data.map((row: Reply['body']) => [row.messageId, row.waitingFor]))
    assert.deepEqual(waits, { [head]: null, [it.users.id('a', 2)]: expected, [it.users.id('a', 3)]: expected })
  })

  test('a key whose message is in flight for the first time is not listed, and neither is one that only succeeded', async () => {
    const { after: answered, give } = held()
    await using receiver = await startReceiver((arrival) => (isUser('a', arrival) ? { after: answered } : undefined))
    const wiring = await wire(service, { urls: [receiver.url], order: {} })
    const users = new Users()
    await wiring.send([users.message('a'), users.message('a'), users.message('b')])
    assert.equal((await wiring.settled(users.id('b', 1), WAITING)).state, 'delivered')
    const { body } = await call('GET', `/destinations/${wiring.destinationId}/order`)
    assert.deepEqual([body.data, body.oldest, body.waitingKeys, body.waitingMessages], [[], null, 0, 0])
    give()
    assert.equal((await wiring.settled(users.id('a', 2), WAITING)).state, 'delivered')
  })

  test('skip: 404 for a key that does not wait, 409 for a message that is not the head, 400 with the field', async () => {
    await using it = await waitingFor(fails(500))
    const refused = async (body: object): Promise<unknown[]> => {
      const reply = await call('POST', `${it.order}/skip`, body)
      return [reply.status, reply.body.code, reply.body.field]
    }
    assert.deepEqual(await refused({ key: 'b' }), [404, 'key_not_waiting', undefined])
    assert.deepEqual(await refused({ key: 'a', messageId: it.users.id('a', 2) }), [409, 'not_head_of_key', undefined])
    for (const [body, field] of [
      [{}, 'key'],
      [{ key: '' }, 'key'],
      [{ key: 1 }, 'key'],
      [{ key: 'a', messageId: 1 }, 'messageId'],
      [{ key: 'a', unknown: 1 }, 'unknown'],
    ] as const)
      assert.deepEqual([(await refused(body))[0], (await refused(body))[2]], [400, field], JSON.stringify(body))
    const none = await call('POST', '/destinations/dst_none/order/skip', { key: 'a' })
    assert.deepEqual([none.status, none.body.code], [404, 'destination_not_found'])
  })

  test('skip ends the head as cancelled, the next message is sent, and the audit log has no key', async () => {
    await using it = await waitingFor((arrival) => (arrival.messages[0]?.messageId?.endsWith('/a/1') ? { status: 500 } : undefined))
    const head = it.users.id('a', 1)
    const { status, body } = await call('POST', `${it.order}/skip`, { key: 'a', messageId: head })
    assert.deepEqual([status, body.state], [200, 'waiting'])
    const { state, reason } = await it.wiring.settled(head, WAITING)
    assert.deepEqual([state, reason], ['cancelled', 'skipped_by_operator'])
    for (const number of [2, 3]) assert.equal((await it.wiring.settled(it.users.id('a', number), WAITING)).state, 'delivered')
    assert.deepEqual((await call('POST', `${it.order}/skip`, { key: 'a', messageId: head })).status, 404)
    const { body: audit } = await call('GET', '/audit?action=order.skip')
    const own = audit.data.find((entry: Reply['body']) => entry.subject === it.wiring.destinationId)
    assert.deepEqual(own.after, { deliveryId: body.deliveryId, state: 'waiting' })
  })

  test('a head that is skipped during its attempt ends when that is over, unless it succeeds', async () => {
    for (const [status, expected] of [
      [500, 'cancelled'],
      [200, 'delivered'],
    ] as const) {
      const { after: answered, give } = held()
      let attempts = 0
      await using it = await waitingFor((arrival) => {
        if (!arrival.messages[0]?.messageId?.endsWith('/a/1')) return undefined
        attempts++
        return attempts === 1 ? { status: 500 } : { status, after: answered }
      })
      const head = it.users.id('a', 1)
      await call('POST', `${it.order}/retry`, { key: 'a' })
      await it.receiver.until(() => attempts === 2, WAITING)
      const { body } = await call('POST', `${it.order}/skip`, { key: 'a', messageId: head })
      assert.equal(body.done, false)
      assert.equal((await call('GET', it.order)).body.data[0].skipping, true)
      assert.equal((await it.wiring.delivery(head, () => true)).state, 'pending')
      give()
      assert.equal((await it.wiring.settled(head, WAITING)).state, expected)
      assert.equal((await it.wiring.settled(it.users.id('a', 3), WAITING)).state, 'delivered')
    }
  })

  test('a held key: only its failed message can be resumed; skip releases it and changes no delivery', async () => {
    let isBroken = true
    await using it = await waitingFor((arrival) => (isBroken && isUser('a', arrival) ? { status: 400 } : undefined), {
      order: { onFailure: 'hold' },
    })
    const [key] = (await orderOf(it.wiring, ({ heldKeys }) => heldKeys === 1)).data
    assert.deepEqual([key.state, key.head.state, key.head.nextAttemptAt, key.waiting], ['held', 'failed', null, 2])
    const { id: other } = await it.wiring.settled(it.users.id('b', 1), WAITING)
    const { id: behind } = await it.wiring.delivery(it.users.id('a', 2), () => true)
    for (const id of [other, behind]) assert.equal((await call('POST', `/deliveries/${id}/replay`, { resume: true })).status, 409)
    assert.equal((await call('POST', `/deliveries/${key.head.deliveryId}/replay`, { resume: 'yes' })).body.field, 'resume')

    // A replay without it does not release the key. The receiver accepts it.
    isBroken = false
    const { body: replay } = await call('POST', `/deliveries/${key.head.deliveryId}/replay`)
    await eventually(
      async () => (await call('GET', `/deliveries/${replay.id}`)).body,
      ({ state }) => state === 'delivered',
      WAITING,
    )
    assert.equal((await call('GET', it.order)).body.heldKeys, 1)

    // Resumed, it fails again, and the key is held again.
    isBroken = true
    const { status, body: resumed } = await call('POST', `/deliveries/${key.head.deliveryId}/replay`, { resume: true })
    assert.equal(status, 202)
    await eventually(
      async () => (await call('GET', `/deliveries/${resumed.id}`)).body,
      ({ state }) => state === 'failed',
      WAITING,
    )
    const [again] = (await orderOf(it.wiring, ({ heldKeys }) => heldKeys === 1)).data
    assert.equal(again.head.deliveryId, resumed.id)
    assert.equal((await it.wiring.delivery(it.users.id('a', 2), () => true)).attemptCount, 0)

    isBroken = false
    const { status: released } = await call('POST', `${it.order}/skip`, { key: 'a', messageId: it.users.id('a', 1) })
    assert.equal(released, 200)
    for (const number of [2, 3]) assert.equal((await it.wiring.settled(it.users.id('a', number), WAITING)).state, 'delivered')
    assert.equal((await call('GET', `/deliveries/${resumed.id}`)).body.state, 'failed')
    assert.deepEqual((await call('GET', it.order)).body.data, [])
  })

  test('messages without a key are counted, without duplicates; the count survives a restart and is in the metrics', async () => {
    await using receiver = await startReceiver()
    const wiring = await wire(service, { urls: [receiver.url], order: { by: 'properties.account' } })
    const users = new Users()
    const of = (account?: unknown): object => ({ ...users.message('a'), properties: account === undefined ? {} : { account } })
    const keyless = [of(), of(''), of(null), of({}), of([1]), of('x'.repeat(1_025))]
    await wiring.send([...keyless, of('x'), of(1), of(0), of(false), of('x'.repeat(1_024))])
    await wiring.send(keyless.slice(0, 2))
    const { keylessMessages } = await orderOf(wiring, (order) => order.keylessMessages > 0)
    assert.equal(keylessMessages, 6)
    await receiver.until(() => receiver.byMessageId.size === users.total, WAITING)
    const metrics = await (await fetch(`${service.url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text()
    assert.ok(metrics.includes(`switchyard_order_keyless_messages_total{destination="${wiring.destinationId}"} 6\n`), metrics)
    assert.ok(metrics.includes(`switchyard_order_waiting_keys{destination="${wiring.destinationId}"} 0\n`), metrics)
    await service.restart()
    assert.equal((await call('GET', `/destinations/${wiring.destinationId}/order`)).body.keylessMessages, 6)
    const shown = await switchyard({ url: service.url, token: TOKEN }, 'destinations', 'order', wiring.destinationId)
    assert.equal(shown.code, 0, shown.stderr)
    assert.match(shown.stderr, /^No key waits or is held\.$/m)
    assert.match(shown.stderr, /^Waiting keys: 0\. Held keys: 0\. Messages behind them: 0\.$/m)
    assert.match(shown.stderr, /^Messages without a key in the last 24 hours: 6\.$/m)
  })

  test('the setting: defaults, bad values with the field, PATCH replaces the whole object, null removes it', async () => {
    await using receiver = await startReceiver()
    const wiring = await wire(service, { urls: [receiver.url] })
    const path = `/destinations/${wiring.destinationId}`
    const change = async (order: unknown): Promise<Reply> => call('PATCH', path, { order })
    assert.equal((await call('GET', path)).body.order, null)
    assert.deepEqual((await change({})).body.order, { by: 'user', onFailure: 'skip', maxWaiting: 10_000 })
    const full = { by: 'context.groupId', onFailure: 'hold', maxWaiting: 100 }
    assert.deepEqual((await change(full)).body.order, full)
    assert.deepEqual((await change({ maxWaiting: 1_000_000 })).body.order, { by: 'user', onFailure: 'skip', maxWaiting: 1_000_000 })
    for (const [order, field] of [
      [{ by: 'groups.id' }, 'order.by'],
      [{ by: '' }, 'order.by'],
      [{ by: 'context.' }, 'order.by'],
      [{ by: null }, 'order.by'],
      [{ onFailure: 'stop' }, 'order.onFailure'],
      [{ maxWaiting: 99 }, 'order.maxWaiting'],
      [{ maxWaiting: 1_000_001 }, 'order.maxWaiting'],
      [{ maxWaiting: 100.5 }, 'order.maxWaiting'],
      [{ window: 1 }, 'order.window'],
      ['user', 'order'],
      [true, 'order'],
    ] as const) {
      const { status, body } = await change(order)
      assert.deepEqual([status, body.field], [400, field], JSON.stringify(order))
    }
    assert.equal((await call('GET', path)).body.order.maxWaiting, 1_000_000)
    assert.equal((await change(null)).body.order, null)
  })

  test('with hold, a key above the limit goes on collecting, and there is an incident', async () => {
    await using it = await waitingFor(fails(500), { order: { onFailure: 'hold', maxWaiting: 100 } })
    await it.wiring.send(Array.from({ length: 100 }, () => it.users.message('a')))
    const path = `/incidents?rule=order_backlog_growing&destinationId=${it.wiring.destinationId}`
    const [incident] = await eventually(
      async () => (await call('GET', path)).body.data,
      ({ length }) => length === 1,
      WAITING,
    )
    assert.equal(incident.state, 'open')
    assert.match(incident.message, /1 key has more than 100 waiting messages\. Look at/)
    const [key] = (await call('GET', it.order)).body.data
    assert.deepEqual([key.state, key.waiting, key.head.messageId], ['waiting', 102, it.users.id('a', 1)])
  })

  test('too many waiting messages end the head only while the destination is enabled, not paused, and its breaker is closed', async () => {
    await using it = await waitingFor((arrival) => (arrival.messages[0]?.messageId?.endsWith('/a/1') ? { status: 500 } : undefined), {
      order: { maxWaiting: 100 },
    })
    await it.wiring.change({ paused: true })
    await it.wiring.send(Array.from({ length: 100 }, () => it.users.message('a')))
    // Another destination checks once a second, too: by then this one would have ended its head.
    await using other = await waitingFor((arrival) => (arrival.messages[0]?.messageId?.endsWith('/a/1') ? { status: 500 } : undefined), {
      order: { maxWaiting: 100 },
    })
    await other.wiring.send(Array.from({ length: 100 }, () => other.users.message('a')))
    assert.equal((await other.wiring.settled(other.users.id('a', 1), WAITING)).reason, 'order_backlog')
    assert.equal((await it.wiring.delivery(it.users.id('a', 1), () => true)).state, 'pending')
    await it.wiring.change({ paused: false })
    const { state, reason } = await it.wiring.settled(it.users.id('a', 1), WAITING)
    assert.deepEqual([state, reason], ['failed', 'order_backlog'])
    assert.equal((await it.wiring.settled(it.users.id('a', 103), WAITING)).state, 'delivered')
  })
})
