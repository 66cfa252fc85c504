// Deletion requests from end to end: which destinations are notified, what is purged, what is no longer sent, which later messages are
// dropped, and the state of each request.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { verifySignature } from '@switchyard/webhook'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Behaviour, type Receiver, startReceiver } from '../system/receiver.ts'
import { eventually, gate } from '../system/signals.ts'
import { type Delivery, type MessageView, type Wiring, wire } from '../system/wiring.ts'

type DeletionState = 'pending' | 'running' | 'finished' | 'failed'

interface Deletion {
  id: string
  state: DeletionState
  suppress: boolean
  userCount: number
  purged: number
  targets: { userId: string; sourceId: string; destinationId: string | null; deliveryId: string | null; state: DeletionState }[]
}

let service: InProcessService
const receivers: Receiver[] = []

before(async () => {
  service = await startInProcess()
})

after(async () => {
  await service[Symbol.asyncDispose]()
  for (const receiver of receivers) await receiver.close()
})

async function webhook(answer?: Behaviour, settings: object = {}): Promise<{ wiring: Wiring; receiver: Receiver }> {
  const receiver = await startReceiver(answer)
  receivers.push(receiver)
  return { receiver, wiring: await wire(service, { urls: [receiver.url], ...settings }) }
}

const request = (body: { userIds: string[]; sourceIds?: string[]; suppress?: boolean }): Promise<Deletion> =>
  service.api('/deletions', { method: 'POST', body })

const reached = (id: string, state: DeletionState): Promise<Deletion> =>
  eventually(
    () => service.api<Deletion>(`/deletions/${id}`),
    (deletion) => deletion.state === state,
    { what: `the deletion is ${state}` },
  )

const deletesAt = ({ arrivals }: Receiver): typeof arrivals => arrivals.filter(({ messages }) => messages[0]?.type === 'delete')

async function storedOf(wiring: Wiring, userId: string): Promise<(string | null)[]> {
  const { data } = await service.api<{ data: MessageView[] }>(`/messages?sourceId=${wiring.sourceId}&userId=${userId}&type=track`)
  return data.map(({ messageId }) => messageId)
}

describe('Deletion requests', () => {
  test('one delete message per user, source and destination: delivered, recorded and signed like any other', async () => {
    const { wiring, receiver } = await webhook(undefined, { sharedSecret: 'a secret' })
    const { id, targets } = await request({ userIds: ['u-1', 'u-2', 'u-1'], sourceIds: [wiring.sourceId] })
    assert.deepEqual(
      targets.map(({ userId, sourceId, destinationId }) => ({ userId, sourceId, destinationId })),
      ['u-1', 'u-2'].map((userId) => ({ userId, sourceId: wiring.sourceId, destinationId: wiring.destinationId })),
    )
    const finished = await reached(id, 'finished')
    assert.deepEqual(
      finished.targets.map(({ state }) => state),
      ['finished', 'finished'],
    )
    assert.equal(receiver.arrivals.length, 2)
    for (const { headers, bytes, messages } of receiver.arrivals) {
      assert.deepEqual(Object.keys(messages[0] ?? {}).sort(), ['timestamp', 'type', 'userId'])
      assert.match(String(messages[0]?.['timestamp']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.deepEqual([headers['x-attempt'], headers['user-agent']], ['1', 'Switchyard/1.0'])
      assert.ok(verifySignature(bytes, headers['x-signature'], 'a secret'))
    }
    const delivery = await service.api<Delivery>(`/deliveries/${finished.targets[0]?.deliveryId}`)
    assert.deepEqual([delivery.state, delivery.attempts[0]?.status], ['delivered', 200])
  })

  test('a delete message is retried like any other; meanwhile the request is running, and it fails if the message is refused', async () => {
    const { wiring } = await webhook(({ number }) => (number === 1 ? { status: 503 } : undefined))
    const refusing = await webhook(() => ({ status: 404 }))
    const { id } = await request({ userIds: ['u-1'], sourceIds: [wiring.sourceId] })
    const running = await eventually(
      () => service.api<Deletion>(`/deletions/${id}`),
      ({ targets }) => targets[0]?.state === 'running',
    )
    assert.equal(running.state, 'running')
    await service.later(5_000)
    await reached(id, 'finished')
    const refused = await request({ userIds: ['u-1'], sourceIds: [refusing.wiring.sourceId] })
    const failed = await reached(refused.id, 'failed')
    assert.deepEqual(
      failed.targets.map(({ state }) => state),
      ['failed'],
    )
  })

  test('a request is pending until its delete messages have been attempted', async () => {
    const { opened, open } = gate()
    const { wiring, receiver } = await webhook(() => ({ after: opened }))
    const { id, state } = await request({ userIds: ['u-1'], sourceIds: [wiring.sourceId] })
    assert.ok(state === 'pending' || state === 'running', state)
    await receiver.until(() => receiver.arrivals.length === 1)
    assert.notEqual((await service.api<Deletion>(`/deletions/${id}`)).state, 'finished')
    open()
    await reached(id, 'finished')
  })

  test('the user’s stored messages of that source are purged, and no others', async () => {
    const { wiring } = await webhook()
    const { wiring: other } = await webhook()
    const [gone, kept, elsewhere] = [
      await wiring.track({ userId: 'u-gone' }),
      await wiring.track({ userId: 'u-kept' }),
      await other.track({ userId: 'u-gone' }),
    ]
    for (const [own, id] of [
      [wiring, gone],
      [wiring, kept],
      [other, elsewhere],
    ] as const)
      await own.settled(id)
    const { id } = await request({ userIds: ['u-gone'], sourceIds: [wiring.sourceId] })
    assert.equal((await reached(id, 'finished')).purged, 1)
    assert.deepEqual(
      [await storedOf(wiring, 'u-gone'), await storedOf(wiring, 'u-kept'), await storedOf(other, 'u-gone')],
      [[], [kept], [elsewhere]],
    )
  })

  test('pending deliveries of the user’s messages are cancelled, with the reason', async () => {
    const { wiring, receiver } = await webhook(() => ({ status: 500 }))
    const gone = await wiring.track({ userId: 'u-gone' })
    const kept = await wiring.track({ userId: 'u-kept' })
    const [{ id: goneId }] = [await wiring.attempted(gone, 1), await wiring.attempted(kept, 1)]
    receiver.answer = () => undefined
    const { id } = await request({ userIds: ['u-gone'], sourceIds: [wiring.sourceId] })
    await service.later(5_000)
    await reached(id, 'finished')
    assert.equal((await wiring.settled(kept)).state, 'delivered')
    const cancelled = await eventually(
      () => service.api<Delivery>(`/deliveries/${goneId}`),
      ({ state }) => state !== 'pending',
    )
    assert.deepEqual([cancelled.state, cancelled.reason, cancelled.request], ['cancelled', 'message_deleted', null])
    assert.deepEqual([receiver.byMessageId.get(gone)?.length, receiver.byMessageId.get(kept)?.length], [1, 2])
    const { data } = await service.api<{ data: { destinationId: string; owed: number; delivered: number; cancelled: number }[] }>('/ledger')
    const row = data.find(({ destinationId }) => destinationId === wiring.destinationId)
    assert.deepEqual([row?.owed, row?.delivered, row?.cancelled], [3, 2, 1])
  })

  test('deliveries that were never attempted are cancelled too, whether they are in the store or in memory', async () => {
    const resting = await webhook(() => ({ status: 503, headers: { 'retry-after': '100' } }))
    await resting.wiring.attempted(await resting.wiring.track(), 1)
    const gathering = await webhook(undefined, { batch: { size: 4, lingerMs: 60_000 } })
    for (const { wiring, receiver } of [resting, gathering]) {
      const calls = ['u-gone', 'u-kept', 'u-gone', 'u-kept'].map((userId, at) => {
        return { type: 'track', event: 'Tested', userId, messageId: `${wiring.sourceId}-${at}` }
      })
      await wiring.send(calls.slice(0, 3))
      receiver.answer = () => undefined
      const { id } = await request({ userIds: ['u-gone'], sourceIds: [wiring.sourceId] })
      await eventually(
        () => service.api<Deletion>(`/deletions/${id}`),
        ({ purged }) => purged === 2,
      )
      await wiring.send(calls.slice(3))
      await wiring.send(
        [1, 2, 3].map((at) => ({ type: 'track', event: 'Filling', userId: 'u-other', messageId: `${wiring.sourceId}-f${at}` })),
      )
      await service.later(100_000)
      await reached(id, 'finished')
      await receiver.until(() => calls.filter(({ messageId }) => receiver.byMessageId.has(messageId)).length === 2)
      assert.deepEqual(
        calls.map(({ messageId }) => receiver.byMessageId.has(messageId)),
        [false, true, false, true],
      )
    }
  })

  test('suppress: new messages of the user are dropped, and accepted again when the suppression is removed', async () => {
    const { wiring, receiver } = await webhook()
    const { id } = await request({ userIds: ['u-hushed'], sourceIds: [wiring.sourceId], suppress: true })
    await reached(id, 'finished')
    const dropped = await wiring.track({ userId: 'u-hushed' })
    const kept = await wiring.track({ userId: 'u-kept' })
    await receiver.until(() => receiver.byMessageId.has(kept))
    await assert.rejects(wiring.message(dropped), /message_not_found/)
    const listed = await service.api<{ data: { userId: string; sourceId: string }[] }>('/suppressions')
    assert.ok(listed.data.some(({ userId, sourceId }) => userId === 'u-hushed' && sourceId === wiring.sourceId))
    await eventually(
      () => service.api<{ data: { sourceId: string; suppressed: number }[] }>('/stats/totals'),
      ({ data }) => data.find(({ sourceId }) => sourceId === wiring.sourceId)?.suppressed === 1,
      { what: 'one is counted as suppressed' },
    )
    assert.deepEqual(await service.api('/suppressions?userId=u-hushed', { method: 'DELETE' }), { removed: 1 })
    const taken = await wiring.track({ userId: 'u-hushed' })
    await receiver.until(() => receiver.byMessageId.has(taken))
    assert.ok(!receiver.byMessageId.has(dropped))
  })

  test('without suppress, which is the default, new messages of the user are accepted', async () => {
    const { wiring } = await webhook()
    const { id, suppress } = await request({ userIds: ['u-back'], sourceIds: [wiring.sourceId] })
    assert.equal(suppress, false)
    await reached(id, 'finished')
    const later = await wiring.track({ userId: 'u-back' })
    assert.equal((await wiring.settled(later)).state, 'delivered')
    assert.deepEqual(await storedOf(wiring, 'u-back'), [later])
  })

  test('only the named sources are affected, or all if none is named; a source without a webhook is purged, and no message is sent', async () => {
    await using own = await startInProcess()
    await using receiver = await startReceiver()
    const [one, two, bare] = [await wire(own, { urls: [receiver.url] }), await wire(own, { urls: [receiver.url] }), await wire(own)]
    const ids: string[] = []
    for (const wiring of [one, two, bare]) ids.push(await wiring.track({ userId: 'u-1' }))
    await one.settled(ids[0] as string)
    await two.settled(ids[1] as string)
    const all = (): Promise<{ data: MessageView[] }> => own.api('/messages?userId=u-1&type=track')
    const named = await own.api<Deletion>('/deletions', { method: 'POST', body: { userIds: ['u-1'], sourceIds: [one.sourceId] } })
    await eventually(
      () => own.api<Deletion>(`/deletions/${named.id}`),
      ({ state }) => state === 'finished',
    )
    assert.deepEqual([(await all()).data.length, deletesAt(receiver).length], [2, 1])
    const whole = await own.api<Deletion>('/deletions', { method: 'POST', body: { userIds: ['u-1'] } })
    const { targets } = await eventually(
      () => own.api<Deletion>(`/deletions/${whole.id}`),
      ({ state }) => state === 'finished',
    )
    assert.deepEqual([(await all()).data.length, deletesAt(receiver).length], [0, 3])
    const told = new Map(targets.map(({ sourceId, destinationId }) => [sourceId, destinationId]))
    assert.deepEqual(
      [one, two, bare].map(({ sourceId }) => told.get(sourceId)),
      [one.destinationId, two.destinationId, null],
    )
    const { data } = await own.api<{ data: { id: string; state: string }[] }>('/deletions')
    assert.deepEqual(
      data.map(({ id, state }) => [id, state]),
      [
        [whole.id, 'finished'],
        [named.id, 'finished'],
      ],
      'newest first',
    )
  })

  test('for a source that hashes user ids, the raw id is given, messages with either are purged, and only the hash is sent', async () => {
    const { wiring, receiver } = await webhook()
    const plain = await webhook()
    const userId = `raw-${wiring.sourceId}`
    await wiring.settled(await wiring.track({ userId }))
    await service.api(`/sources/${wiring.sourceId}`, { method: 'PATCH', body: { privacy: [{ path: 'userId', action: 'hash' }] } })
    const messageId = await wiring.track({ userId })
    await wiring.settled(messageId)
    await plain.wiring.settled(await plain.wiring.track({ userId }))
    const hash = String((await wiring.message(messageId)).message?.['userId'])
    assert.match(hash, /^[0-9a-f]{64}$/)
    const sourceIds = [wiring.sourceId, plain.wiring.sourceId]
    const { id } = await request({ userIds: [userId], sourceIds, suppress: true })
    const { targets, purged, userCount } = await reached(id, 'finished')
    assert.deepEqual(
      new Set(targets.map((target) => [target.userId, target.sourceId, target.destinationId].join(' '))),
      new Set([
        [hash, wiring.sourceId, wiring.destinationId].join(' '),
        [userId, plain.wiring.sourceId, plain.wiring.destinationId].join(' '),
      ]),
    )
    assert.equal(targets.length, 2)
    assert.deepEqual([purged, userCount], [3, 2])
    assert.deepEqual(
      [deletesAt(receiver), deletesAt(plain.receiver)].map((arrivals) => arrivals.map(({ messages }) => messages[0]?.['userId'])),
      [[hash], [userId]],
    )
    for (const one of [userId, hash]) assert.deepEqual(await storedOf(wiring, one), [])
    assert.deepEqual(await storedOf(plain.wiring, userId), [])
    // The suppression has the raw id, which is compared before it is hashed.
    await wiring.track({ userId })
    assert.deepEqual(await storedOf(wiring, hash), [])
    // The hash, copied from a stored message, is not hashed again.
    const other = await wiring.track({ userId: 'another' })
    const otherHash = String((await wiring.message(other)).message?.['userId'])
    const second = await request({ userIds: [otherHash], sourceIds: [wiring.sourceId] })
    assert.equal((await reached(second.id, 'finished')).purged, 1)
  })

  test('a request and its delete messages survive a restart', async () => {
    await using own = await startInProcess()
    await using receiver = await startReceiver(() => ({ status: 503 }))
    await wire(own, { urls: [receiver.url] })
    const { id } = await own.api<Deletion>('/deletions', { method: 'POST', body: { userIds: ['u-1', 'u-2'] } })
    await receiver.until(() => receiver.arrivals.length === 2)
    receiver.answer = () => undefined
    await own.restart({ laterMs: 10_000 })
    await eventually(
      () => own.api<Deletion>(`/deletions/${id}`),
      ({ state }) => state === 'finished',
    )
    assert.equal(deletesAt(receiver).length, 4)
  })

  test('a request has 1 to 5000 users; unknown sources are refused', async () => {
    const userIds = Array.from({ length: 5_001 }, (_, at) => `u-${at}`)
    for (const body of [{ userIds: [] }, { userIds }, { userIds: ['u-1'], sourceIds: ['src_none'] }]) {
      await assert.rejects(request(body), /: 400 .*invalid_field/)
    }
    const bare = await wire(service)
    const { id, userCount } = await request({ userIds: userIds.slice(1), sourceIds: [bare.sourceId] })
    assert.equal(userCount, 5_000)
    await reached(id, 'finished')
  })
})
