// What other features do with the order of a destination: docs/decisions/0110-order.md has a line for each.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Answer, type Arrival, type Receiver, startReceiver } from '../system/receiver.ts'
import { eventually } from '../system/signals.ts'
import { acceptedOf, assertOrdered, failsFirst, sentIn, Users } from '../system/user-order.ts'
import { type DestinationSettings, type Wiring, wire } from '../system/wiring.ts'

const RETRY = { initialMs: 100, maxMs: 200, factor: 2 }
const WAITING = { deadlineMs: 60_000 }

let service: InProcessService

before(async () => {
  service = await startInProcess()
})

after(() => service[Symbol.asyncDispose]())

interface Ordered extends AsyncDisposable {
  receiver: Receiver
  wiring: Wiring
  users: Users
}

async function ordered(answer: (arrival: Arrival) => Answer | undefined, settings: DestinationSettings = {}): Promise<Ordered> {
  await using started = new AsyncDisposableStack()
  const receiver = started.use(await startReceiver(answer))
  const wiring = await wire(service, { urls: [receiver.url], retry: RETRY, order: {}, ...settings })
  const everything = started.move()
  return { receiver, wiring, users: new Users(), [Symbol.asyncDispose]: () => everything.disposeAsync() }
}

/** Fails every request of a user until the switch is turned off. */
function breaks(user: string): { answer: (arrival: Arrival) => Answer | undefined; mend(): void } {
  let isBroken = true
  return {
    answer: (arrival) => (isBroken && sentIn(arrival).some((sent) => sent.user === user) ? { status: 500 } : undefined),
    mend() {
      isBroken = false
    },
  }
}

/** The messages that the receiver has accepted, as USER/NUMBER, in the order of their arrival. */
function accepted(receiver: Receiver): string[] {
  return receiver.arrivals
    .filter(({ status }) => status === 200)
    .flatMap((arrival) => sentIn(arrival).map(({ user, number }) => `${user}/${number}`))
}

describe('Ordered destinations', () => {
  test('several URLs: a message has ended when one URL has accepted it', async () => {
    await using dead = await startReceiver(() => ({ status: 500 }))
    await using live = await ordered(failsFirst(3))
    await live.wiring.change({ urls: [dead.url, live.receiver.url] })
    for (let nth = 0; nth < 10; nth++) await live.wiring.send([live.users.message('a'), live.users.message('b')])
    await live.receiver.until(() => acceptedOf(live.receiver) === live.users.total, WAITING)
    assertOrdered(live.receiver.arrivals)
  })

  test('a message that the transformation drops, or that it fails for, lets the next one pass', async () => {
    const code = `export default (event) => {
      if (event.properties.number === 1) return null
      if (event.properties.number === 2) throw new Error('no')
      return event
    }`
    await using it = await ordered(() => undefined, { transformation: { code } })
    await it.wiring.send([it.users.message('a'), it.users.message('a'), it.users.message('a')])
    const states = []
    for (const number of [1, 2, 3]) states.push((await it.wiring.settled(it.users.id('a', number), WAITING)).state)
    assert.deepEqual(states, ['cancelled', 'failed', 'delivered'])
    assert.deepEqual(accepted(it.receiver), ['a/3'])
  })

  test('dead letters have no key: they do not wait for other messages of the user', async () => {
    await using letters = await ordered(() => undefined)
    await using it = await ordered((arrival) => (sentIn(arrival)[0]?.user === 'a' ? { status: 400 } : undefined), {
      deadLetter: letters.wiring.destinationId,
    })
    await it.wiring.send([it.users.message('a'), it.users.message('b')])
    assert.equal((await it.wiring.settled(it.users.id('a', 1), WAITING)).state, 'failed')
    await letters.receiver.until(() => letters.receiver.arrivals.length === 1, WAITING)
    assert.equal(letters.receiver.arrivals[0]?.messages[0]?.['type'], 'dead_letter')
  })

  test('a message that is released from quarantine is outside the order, and its timeline says so', async () => {
    const user = breaks('a')
    await using it = await ordered(user.answer)
    const schema = { type: 'object', properties: { number: { type: 'string' } } }
    const rule = { type: 'track', event: 'Quarantined', mode: 'quarantine', schema }
    const body = { name: `plan of ${it.wiring.sourceId}`, rules: [rule], sourceIds: [it.wiring.sourceId] }
    await service.api('/plans', { method: 'POST', body })
    await it.wiring.send([{ ...it.users.message('a'), event: 'Quarantined' }])
    await it.wiring.send([it.users.message('a')])
    await it.wiring.attempted(it.users.id('a', 2), 1, WAITING)
    await it.wiring.send([it.users.message('a')])
    const attempts = (): number => it.receiver.byMessageId.get(it.users.id('a', 1))?.length ?? 0
    assert.equal(attempts(), 0)
    await service.api('/quarantine/release', { method: 'POST', body: { sourceId: it.wiring.sourceId } })
    // It is attempted although an earlier message of its user is not delivered.
    await it.receiver.until(() => attempts() > 0, WAITING)
    assert.equal((await it.wiring.delivery(it.users.id('a', 3), () => true)).attemptCount, 0)
    const { story } = await it.wiring.message(it.users.id('a', 1))
    assert.ok(
      story.some(({ sentence }) => sentence === 'Queued for "receiver", outside the order of its key.'),
      story.map(({ sentence }) => sentence).join('\n'),
    )
    user.mend()
    await it.receiver.until(() => acceptedOf(it.receiver) === 3, WAITING)
    const before = accepted(it.receiver)
    assert.ok(before.indexOf('a/2') < before.indexOf('a/3'))
  })

  test('the key is that of the message as it was received, not as the transformation changes it', async () => {
    const code = 'export default (event) => ({ ...event, userId: "everybody" })'
    let isBroken = true
    const of = ({ messages }: Arrival, user: string): boolean => messages[0]?.messageId?.includes(`/${user}/`) === true
    await using it = await ordered((arrival) => (isBroken && of(arrival, 'a') ? { status: 500 } : undefined), { transformation: { code } })
    await it.wiring.send([it.users.message('a')])
    await it.wiring.attempted(it.users.id('a', 1), 1, WAITING)
    await it.wiring.send([it.users.message('a'), it.users.message('b')])
    assert.equal((await it.wiring.settled(it.users.id('b', 1), WAITING)).state, 'delivered')
    assert.equal(it.receiver.byMessageId.get(it.users.id('b', 1))?.[0]?.messages[0]?.['userId'], 'everybody')
    assert.equal((await it.wiring.delivery(it.users.id('a', 2), () => true)).attemptCount, 0)
    isBroken = false
    await it.receiver.until(() => acceptedOf(it.receiver) === 3, WAITING)
    assertOrdered(it.receiver.arrivals)
  })

  test('a test of the destination is outside the order: it does not wait for the key that its message would have', async () => {
    const user = breaks('a')
    await using it = await ordered(user.answer, { order: { by: 'type' } })
    await it.wiring.send([it.users.message('a')])
    await it.wiring.attempted(it.users.id('a', 1), 1, WAITING)
    const answer = await service.api<{ ok: boolean }>(`/destinations/${it.wiring.destinationId}/test`, { method: 'POST', body: {} })
    assert.ok(accepted(it.receiver).length > 0, JSON.stringify(answer))
    user.mend()
    assert.equal((await it.wiring.settled(it.users.id('a', 1), WAITING)).state, 'delivered')
  })

  test('a replay is outside the order: it does not wait for its user', async () => {
    const broken = { is: false }
    await using it = await ordered((arrival) =>
      broken.is && arrival.messages.some(({ messageId }) => messageId === it.users.id('a', 2)) ? { status: 500 } : undefined,
    )
    await it.wiring.send([it.users.message('a')])
    const { id } = await it.wiring.settled(it.users.id('a', 1), WAITING)
    broken.is = true
    await it.wiring.send([it.users.message('a')])
    await it.wiring.attempted(it.users.id('a', 2), 1, WAITING)
    await service.api(`/deliveries/${id}/replay`, { method: 'POST', body: {} })
    await it.receiver.until(() => accepted(it.receiver).filter((name) => name === 'a/1').length === 2, WAITING)
    broken.is = false
    assert.equal((await it.wiring.settled(it.users.id('a', 2), WAITING)).state, 'delivered')
  })

  test('a pause stops all users, and afterwards each goes on in order', async () => {
    const user = breaks('a')
    await using it = await ordered(user.answer)
    await it.wiring.send([it.users.message('a'), it.users.message('b')])
    await it.wiring.attempted(it.users.id('a', 1), 1, WAITING)
    await it.wiring.change({ paused: true })
    for (let nth = 0; nth < 3; nth++) await it.wiring.send([it.users.message('a'), it.users.message('b')])
    const before = accepted(it.receiver).length
    user.mend()
    assert.equal((await it.wiring.delivery(it.users.id('b', 4), () => true)).state, 'pending')
    assert.equal(accepted(it.receiver).length, before)
    await it.wiring.change({ paused: false })
    await it.receiver.until(() => acceptedOf(it.receiver) === it.users.total, WAITING)
    assertOrdered(it.receiver.arrivals)
  })

  test('Retry-After of a 429 stops all users of the destination', async () => {
    let isLimited = true
    await using it = await ordered(() => {
      if (!isLimited) return undefined
      isLimited = false
      return { status: 429, headers: { 'retry-after': '1' } }
    })
    await it.wiring.send([it.users.message('a')])
    await it.receiver.until(() => it.receiver.arrivals.length === 1, WAITING)
    await it.wiring.send([it.users.message('b'), it.users.message('a')])
    await it.receiver.until(() => acceptedOf(it.receiver) === 3, WAITING)
    const [limited, ...others] = it.receiver.arrivals
    for (const { atMs } of others) assert.ok(atMs - (limited as Arrival).atMs >= 900, 'it arrived before the time that the receiver gave')
    assertOrdered(it.receiver.arrivals)
  })

  test('a deletion ends what waits of the user, and its delete message follows what the user sent before', async () => {
    const user = breaks('a')
    await using it = await ordered(user.answer)
    await it.wiring.send([it.users.message('a'), it.users.message('b')])
    await it.wiring.attempted(it.users.id('a', 1), 1, WAITING)
    await it.wiring.send([it.users.message('a'), it.users.message('b')])
    await service.api('/deletions', { method: 'POST', body: { userIds: ['a'], sourceIds: [it.wiring.sourceId], suppress: false } })
    user.mend()
    await it.receiver.until(() => it.receiver.arrivals.some(({ messages }) => messages[0]?.['type'] === 'delete'), WAITING)
    await it.wiring.send([it.users.message('a')])
    await it.receiver.until(() => accepted(it.receiver).includes('a/3'), WAITING)
    const types = it.receiver.arrivals.filter(({ status }) => status === 200).map(({ messages: [first] }) => first)
    const deleted = types.findIndex((message) => message?.['type'] === 'delete')
    const last = types.findIndex((message) => message?.messageId === it.users.id('a', 3))
    assert.ok(deleted < last, 'what the user sent after the deletion arrived before the delete message')
    await eventually(
      () => service.api<{ data: { destinationId: string; pending: number }[] }>('/ledger'),
      ({ data }) => data.find(({ destinationId }) => destinationId === it.wiring.destinationId)?.pending === 0,
      { what: 'nothing is pending', ...WAITING },
    )
  })

  test('a change of the setting counts from acceptance: what was accepted before keeps its key', async () => {
    const user = breaks('a')
    await using it = await ordered(user.answer)
    await it.wiring.send([it.users.message('a'), it.users.message('a')])
    await it.wiring.attempted(it.users.id('a', 1), 1, WAITING)
    await it.wiring.change({ order: { by: 'properties.number' } })
    await it.wiring.send([it.users.message('a')])
    // Another key now, so it does not wait.
    await it.wiring.attempted(it.users.id('a', 3), 1, WAITING)
    assert.equal((await it.wiring.delivery(it.users.id('a', 2), () => true)).attemptCount, 0)
    user.mend()
    await it.receiver.until(() => acceptedOf(it.receiver) === 3, WAITING)
    const before = accepted(it.receiver)
    assert.ok(before.indexOf('a/1') < before.indexOf('a/2'))
  })

  test('a change of the batch settings keeps the order', async () => {
    await using it = await ordered(failsFirst(3))
    for (const batch of [{ size: 1 }, { size: 5, lingerMs: 20 }, { size: 1 }]) {
      await it.wiring.change({ batch })
      for (let nth = 0; nth < 6; nth++) await it.wiring.send([it.users.message('a'), it.users.message('b'), it.users.message('a')])
    }
    await it.receiver.until(() => acceptedOf(it.receiver) === it.users.total, WAITING)
    assertOrdered(it.receiver.arrivals)
  })
})
