// Conformance: what operators see and do about keys of ordered destinations that wait or are held, and what deletions of users do to them.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import type { HeldKey, OrderedClaim, OrderedKey, OrderSettings, Store } from '../../store.ts'
import { untilPurged } from '../deletion-fixtures.ts'
import { accept, counts, ledgerOf, NOW_MS, type StoreFixture, settlementOf, track, until } from '../fixtures.ts'
import { claimOrdered, names, newOrdered, ORDER, settle, usersOfOnePartition } from './ordering.ts'

const ACTOR = { id: 'tok_operator', name: 'operator' }
const HOLD: OrderSettings = { ...ORDER, onFailure: 'hold' }
const PAGE = { limit: 100, cursor: null }

interface Ordered {
  sourceId: string
  destinationId: string
  /** Accepts messages of one user, each in a request of its own. */
  send: (userId: string, ...names: string[]) => Promise<string[]>
  claim: (nowMs?: number) => Promise<OrderedClaim>
  keys: () => Promise<readonly OrderedKey[]>
}

async function ordered(store: () => Store, settings = ORDER): Promise<Ordered> {
  const { sourceId, destinationId } = await newOrdered(store(), settings)
  return {
    sourceId,
    destinationId,
    async send(userId, ...names) {
      const ids = names.map((name) => `${name}-${randomUUID()}`)
      for (const id of ids) await accept(store(), sourceId, [track(id, { userId })], [destinationId])
      return ids
    },
    claim: (nowMs) => claimOrdered(store(), destinationId, nowMs === undefined ? {} : { nowMs }),
    keys: async () => (await store().order.read(destinationId, PAGE)).keys.data,
  }
}

/** The keys that messages of a claim hold if they fail. */
function holdsOf({ shipments }: OrderedClaim): HeldKey[] {
  return shipments.flatMap(({ shipment }) =>
    shipment.parts.flatMap(({ origin, segment, indexes, keys = [] }) =>
      indexes.map((index, at) => ({ key: keys[at] as number, origin, segment, index, attempts: 1, ended: 'failed' as const })),
    ),
  )
}

/** The first message of a user fails, and is attempted again ten seconds later. The others wait. */
async function waitingKey(store: Store, { send, claim }: Ordered, userId: string, ...waiting: string[]): Promise<string> {
  const [head] = await send(userId, `${userId}1`)
  await settle(store, (await claim()).shipments, 'retry', { dueAtMs: NOW_MS + 10_000, request: { reason: 'http_500' } })
  await send(userId, ...waiting)
  assert.deepEqual(names(await claim()), [])
  return head as string
}

/** The first message of a user fails, and holds the key. The others wait. */
async function heldKey(store: Store, { send, claim }: Ordered, userId: string, ...waiting: string[]): Promise<string> {
  const [head] = await send(userId, `${userId}1`)
  const failing = await claim()
  await settle(store, failing.shipments, 'failed', { request: { reason: 'http_500' } }, holdsOf(failing))
  await send(userId, ...waiting)
  assert.deepEqual(names(await claim()), [])
  return head as string
}

async function stateOf(store: Store, deliveryId: string): Promise<[state: string, reason: string | null]> {
  const found = await store.history.delivery(deliveryId)
  return [found?.state ?? 'gone', found?.reason ?? null]
}

export function orderOperations({ store, reopen }: StoreFixture): void {
  before(async () => void (await usersOfOnePartition(store())))

  test('a waiting key is listed with its text, its head and the number of messages behind it, oldest first', async () => {
    const its = await ordered(store)
    const alice = await waitingKey(store(), its, 'alice', 'a2', 'a3')
    await waitingKey(store(), its, 'bob')
    const view = await store().order.read(its.destinationId, PAGE)
    assert.deepEqual([view.waitingKeys, view.heldKeys, view.waitingMessages], [2, 0, 2])
    const counts = { destinationId: its.destinationId, waitingKeys: 2, heldKeys: 0, waitingMessages: 2 }
    assert.deepEqual(
      (await store().order.allCounts()).find(({ destinationId }) => destinationId === its.destinationId),
      counts,
    )
    const [first, second] = view.keys.data as [OrderedKey, OrderedKey]
    assert.deepEqual([first.key, first.state, first.waiting, second.key, second.waiting], ['alice', 'waiting', 2, 'bob', 0])
    const { head } = first
    assert.deepEqual(
      [head.messageId, head.state, head.attempts, head.reason, head.dueAtMs],
      [alice, 'pending', 1, 'http_500', NOW_MS + 10_000],
    )
    assert.deepEqual([view.oldest?.key, (await stateOf(store(), head.deliveryId))[0]], ['alice', 'pending'])
    const page = await store().order.read(its.destinationId, { limit: 1, cursor: null })
    const rest = await store().order.read(its.destinationId, { limit: 1, cursor: page.keys.next })
    assert.deepEqual(
      [...page.keys.data, ...rest.keys.data].map(({ key }) => key),
      ['alice', 'bob'],
    )
    assert.deepEqual([rest.keys.next, rest.oldest?.key], [null, 'alice'])
  })

  test('the text of a key is found when the destination orders by something else now', async () => {
    const its = await ordered(store, { ...ORDER, by: 'properties.account' })
    await accept(
      store(),
      its.sourceId,
      [track(randomUUID(), { userId: 'u', properties: { account: 'acme', list: ['u'] } })],
      [its.destinationId],
    )
    await settle(store(), (await its.claim()).shipments, 'retry')
    await store().resources.updateDestination(its.destinationId, () => ({ order: { ...ORDER, by: 'source' } }))
    assert.deepEqual(
      (await its.keys()).map(({ key }) => key),
      ['acme'],
    )
  })

  test('a waiting delivery names the message that it waits for, in the list and by itself', async () => {
    const its = await ordered(store)
    const head = await waitingKey(store(), its, 'alice', 'a2')
    await its.send('carol', 'c1')
    const { data } = await store().history.deliveries({ destinationId: its.destinationId }, PAGE)
    const waits = data.map(({ waitingFor, userId, attempts }) => `${userId} ${attempts} ${waitingFor?.messageId} ${waitingFor?.key}`)
    assert.deepEqual(new Set(waits), new Set([`alice 0 ${head} alice`, 'alice 1 undefined undefined', 'carol 0 undefined undefined']))
    for (const row of data) assert.deepEqual((await store().history.delivery(row.id))?.waitingFor, row.waitingFor)
  })

  test('a message does not wait behind the key of another message of its request, although it mentions that user', async () => {
    const its = await ordered(store)
    const heads = [await waitingKey(store(), its, 'alice'), await waitingKey(store(), its, 'bob')]
    const mentions = (userId: string, other: string): JsonObject => track(randomUUID(), { userId, properties: { invitedBy: other } })
    await accept(store(), its.sourceId, [mentions('alice', 'bob'), mentions('bob', 'alice')], [its.destinationId])
    assert.deepEqual(names(await its.claim()), [])
    const { data } = await store().history.deliveries({ destinationId: its.destinationId }, PAGE)
    const waiting = data.filter(({ attempts }) => attempts === 0)
    const found: string[] = []
    for (const { id, userId } of waiting) {
      const detail = await store().history.delivery(id)
      found.push(`${userId} ${detail?.waitingFor?.key} ${heads.indexOf(detail?.waitingFor?.messageId ?? '')}`)
    }
    assert.deepEqual(found.sort(), ['alice alice 0', 'bob bob 1'])
  })

  test('skipping ends the head as cancelled, and the key goes on in order; the ledger balances', async () => {
    const its = await ordered(store)
    const messageId = await waitingKey(store(), its, 'alice', 'a2', 'a3')
    await waitingKey(store(), its, 'bob', 'b2')
    const { order } = store()
    assert.deepEqual(await order.skip(its.destinationId, 'nobody', undefined), { ok: false, reason: 'not_waiting' })
    assert.deepEqual(await order.skip(its.destinationId, 'alice', 'another message'), { ok: false, reason: 'not_head' })
    const audit = { actor: ACTOR, action: 'order.skip', subject: its.destinationId, before: null, after: null }
    const skipped = await order.skip(its.destinationId, 'alice', messageId, audit)
    assert.ok(skipped.ok && skipped.isOver)
    assert.deepEqual(await stateOf(store(), skipped.deliveryId), ['cancelled', 'skipped_by_operator'])
    const rest = await its.claim()
    assert.deepEqual(names(rest), ['a2', 'a3'])
    await settle(store(), rest.shipments, 'delivered')
    assert.deepEqual(
      (await its.keys()).map(({ key }) => key),
      ['bob'],
    )
    assert.deepEqual(counts(await ledgerOf(store(), its.destinationId)), counts({ owed: 5, delivered: 2, cancelled: 1, pending: 2 }))
    const entries = (await store().history.audit({ subject: its.destinationId, action: 'order.skip' }, PAGE)).data
    assert.deepEqual(
      entries.map(({ after }) => after),
      [{ deliveryId: skipped.deliveryId, state: 'waiting' }],
      'the key is not in the audit log',
    )
  })

  test('a head that is being attempted when it is skipped ends when the attempt is over', async () => {
    const its = await ordered(store)
    await waitingKey(store(), its, 'alice', 'a2')
    const running = await its.claim(NOW_MS + 10_000)
    assert.deepEqual(names(running), ['alice1'])
    const skipped = await store().order.skip(its.destinationId, 'alice', undefined)
    assert.ok(skipped.ok && !skipped.isOver)
    assert.deepEqual(
      (await its.keys()).map(({ skipping }) => skipping),
      [true],
    )
    assert.deepEqual(names(await its.claim(NOW_MS + 10_000)), [])
    await settle(store(), running.shipments, 'retry', { dueAtMs: NOW_MS + 20_000 })
    assert.deepEqual(await stateOf(store(), skipped.deliveryId), ['cancelled', 'skipped_by_operator'])
    const rest = await its.claim()
    assert.deepEqual(names(rest), ['a2'])
    await settle(store(), rest.shipments, 'retry')
    assert.deepEqual(
      (await its.keys()).map(({ skipping, head }) => [skipping, head.state]),
      [[false, 'pending']],
      'the next head is not skipped',
    )
    assert.deepEqual(counts(await ledgerOf(store(), its.destinationId)), counts({ owed: 2, cancelled: 1, pending: 1 }))
  })

  test('if that attempt succeeds, the head is delivered', async () => {
    const its = await ordered(store)
    await waitingKey(store(), its, 'alice', 'a2')
    const running = await its.claim(NOW_MS + 10_000)
    assert.ok((await store().order.skip(its.destinationId, 'alice', undefined)).ok)
    await settle(store(), running.shipments, 'delivered')
    assert.deepEqual(names(await its.claim()), ['a2'])
    assert.deepEqual(counts(await ledgerOf(store(), its.destinationId)), counts({ owed: 2, delivered: 1, pending: 1 }))
  })

  test('a head that was claimed and given back without an attempt ends soon after it is skipped', async () => {
    const its = await ordered(store)
    await waitingKey(store(), its, 'alice', 'a2')
    const claimed = await its.claim(NOW_MS + 10_000)
    const skipped = await store().order.skip(its.destinationId, 'alice', undefined)
    assert.ok(skipped.ok && !skipped.isOver)
    store().delivery.release(claimed.shipments.map(({ shipment }) => shipment))
    await until(
      () => stateOf(store(), skipped.deliveryId),
      ([state]) => state === 'cancelled',
      'the head has ended',
    )
    assert.deepEqual(names(await its.claim()), ['a2'])
  })

  test('skipping one key of a failed batch leaves the other keys of its request as they are', async () => {
    const its = await ordered(store)
    await accept(
      store(),
      its.sourceId,
      [track(`x1-${randomUUID()}`, { userId: 'x' }), track(`y1-${randomUUID()}`, { userId: 'y' })],
      [its.destinationId],
    )
    const { shipments } = await its.claim()
    const parts = shipments.flatMap(({ shipment }) => shipment.parts)
    const settlement = settlementOf(
      shipments.map(({ shipment }) => shipment),
      'retry',
    )
    const [draft] = settlement.remaining
    assert.ok(draft !== undefined)
    await store().delivery.settle({ ...settlement, remaining: [{ ...draft, unit: true, parts }] })
    assert.ok((await store().order.skip(its.destinationId, 'x', undefined)).ok)
    assert.deepEqual(
      (await its.keys()).map(({ key }) => key),
      ['y'],
    )
    const left = await its.claim(NOW_MS + 5_000)
    assert.deepEqual(names(left), ['y1'])
    await settle(store(), left.shipments, 'delivered')
    assert.deepEqual(counts(await ledgerOf(store(), its.destinationId)), counts({ owed: 2, cancelled: 1, delivered: 1 }))
  })

  test('a head can be made due at once', async () => {
    const its = await ordered(store)
    await waitingKey(store(), its, 'alice', 'a2')
    const result = await store().order.retryNow(its.destinationId, 'alice', undefined)
    assert.deepEqual([result.ok && result.isOver, (await its.keys())[0]?.head.dueAtMs], [true, 0])
    const head = await its.claim(NOW_MS)
    assert.deepEqual(names(head), ['alice1'])
    await settle(store(), head.shipments, 'retry', { dueAtMs: NOW_MS + 30_000 })
    assert.equal((await its.keys())[0]?.head.dueAtMs, NOW_MS + 30_000)
    const skipped = await store().order.skip(its.destinationId, 'alice', undefined)
    assert.ok(skipped.ok && skipped.isOver, 'the head is found where it was stored again')
  })

  test('a held key is released by skipping it, which changes no delivery', async () => {
    const its = await ordered(store, HOLD)
    const messageId = await heldKey(store(), its, 'alice', 'a2')
    const view = await store().order.read(its.destinationId, PAGE)
    assert.deepEqual([view.waitingKeys, view.heldKeys, view.waitingMessages], [0, 1, 1])
    const head = view.keys.data[0]?.head
    assert.deepEqual(
      [head?.messageId, head?.state, head?.attempts, head?.reason, head?.dueAtMs],
      [messageId, 'failed', 1, 'http_500', null],
    )
    assert.equal(
      (await store().history.deliveries({ destinationId: its.destinationId, state: 'pending' }, PAGE)).data[0]?.waitingFor?.isHeld,
      true,
    )
    const skipped = await store().order.skip(its.destinationId, 'alice', undefined)
    assert.deepEqual([skipped.ok && skipped.state, await stateOf(store(), head?.deliveryId ?? '')], ['held', ['failed', 'http_500']])
    assert.deepEqual(names(await its.claim()), ['a2'])
    assert.deepEqual(await store().order.skip(its.destinationId, 'alice', undefined), { ok: false, reason: 'not_waiting' })
  })

  test('a resumed head comes before what waits; if it fails again, the key is held again', async () => {
    const its = await ordered(store, HOLD)
    await heldKey(store(), its, 'alice', 'a2')
    const [held] = await its.keys()
    const { deliveryId } = held?.head ?? { deliveryId: '' }
    const plain = await store().replays.replay(deliveryId)
    assert.ok(plain.ok)
    assert.deepEqual(
      (await its.keys()).map(({ state }) => state),
      ['held'],
      'a replay without resume does not release it',
    )
    const resumed = await store().replays.replay(deliveryId, undefined, { resume: true })
    assert.ok(resumed.ok)
    assert.deepEqual(
      (await its.keys()).map(({ state, head }) => [state, head.deliveryId]),
      [['waiting', resumed.deliveryId]],
    )
    assert.deepEqual(await store().replays.replay(deliveryId, undefined, { resume: true }), { ok: false, reason: 'holds_no_key' })
    await reopen()
    const head = await until(its.claim, ({ shipments }) => shipments.length > 0, 'the resumed head can be claimed')
    assert.deepEqual([names(head), head.shipments[0]?.shipment.attempt, head.shipments[0]?.shipment.replay], [['alice1'], 0, true])
    await settle(store(), head.shipments, 'failed', {}, holdsOf(head))
    const [again] = await its.keys()
    assert.deepEqual([again?.state, again?.head.deliveryId], ['held', resumed.deliveryId])
    assert.deepEqual(names(await its.claim()), [])
    const second = await store().replays.replay(resumed.deliveryId, undefined, { resume: true })
    assert.ok(second.ok)
    const last = await its.claim()
    await settle(store(), last.shipments, 'retry', { dueAtMs: NOW_MS + 1 })
    const retried = await its.claim(NOW_MS + 1)
    assert.deepEqual([names(retried), retried.shipments[0]?.shipment.attempt], [['alice1'], 1])
    await settle(store(), retried.shipments, 'delivered')
    const rest = await its.claim()
    assert.deepEqual(names(rest), ['a2'])
    await settle(store(), rest.shipments, 'delivered')
    assert.equal((await store().history.delivery(second.deliveryId))?.orderPlace, 'resumed')
    assert.equal((await store().history.delivery(plain.deliveryId))?.orderPlace, 'outside')
    assert.deepEqual(counts(await ledgerOf(store(), its.destinationId)), counts({ owed: 5, delivered: 2, failed: 2, pending: 1 }))
  })

  test('heads of keys of which too many messages wait can be claimed, and no others', async () => {
    const its = await ordered(store)
    const many = Array.from({ length: 101 }, () => 'a')
    await waitingKey(store(), its, 'alice')
    await accept(
      store(),
      its.sourceId,
      many.map(() => track(`a-${randomUUID()}`, { userId: 'alice' })),
      [its.destinationId],
    )
    await waitingKey(store(), its, 'bob', 'b2')
    assert.deepEqual([await store().order.crowded(its.destinationId, 100), await store().order.crowded(its.destinationId, 101)], [1, 0])
    assert.deepEqual(await store().delivery.claimCrowded(its.destinationId, 101, 10), [])
    const heads = await store().delivery.claimCrowded(its.destinationId, 100, 10)
    assert.deepEqual(names({ shipments: heads.map(({ claimed }) => claimed) }), ['alice1'])
    assert.equal(heads[0]?.keys.size, 1)
    assert.deepEqual(await store().delivery.claimCrowded(its.destinationId, 100, 10), [], 'it is claimed')
    await settle(
      store(),
      heads.map(({ claimed }) => claimed),
      'failed',
    )
    assert.equal(names(await its.claim()).length, 1)
  })

  test('of heads of one request that are due at the same time, only those with too many waiting messages can be claimed', async () => {
    const its = await ordered(store)
    const users = Array.from({ length: 30 }, (_, at) => `user${at}`)
    await accept(
      store(),
      its.sourceId,
      users.map((userId) => track(`${userId}-${randomUUID()}`, { userId })),
      [its.destinationId],
    )
    const { shipments } = await its.claim()
    const settlement = settlementOf(
      shipments.map(({ shipment }) => shipment),
      'retry',
      { dueAtMs: NOW_MS + 10_000 },
    )
    // Each message was sent in a request of its own, so each is the head of its key.
    const remaining = settlement.remaining.flatMap((draft) =>
      draft.parts.flatMap(({ indexes, keys = [], ...part }) =>
        indexes.map((index, at) => ({ ...draft, parts: [{ ...part, indexes: [index], keys: [keys[at] as number] }] })),
      ),
    )
    await store().delivery.settle({ ...settlement, remaining })
    const many = Array.from({ length: 101 }, () => track(randomUUID(), { userId: 'user17' }))
    await accept(store(), its.sourceId, many, [its.destinationId])
    assert.deepEqual(names(await its.claim()), [])
    const heads = await store().delivery.claimCrowded(its.destinationId, 100, 20)
    assert.deepEqual(
      heads.map(({ claimed, keys }) => [names({ shipments: [claimed] }), keys.size]),
      [[['user17'], 1]],
    )
    assert.equal(names(await its.claim(NOW_MS + 10_000)).length, 29, 'the others can still be attempted')
  })

  test('overdue heads can be claimed, whether they are due or not', async () => {
    const its = await ordered(store)
    await waitingKey(store(), its, 'alice', 'a2')
    assert.deepEqual(await store().delivery.claimOverdue(its.destinationId, NOW_MS - 1, 10), [])
    const overdue = await store().delivery.claimOverdue(its.destinationId, NOW_MS, 10)
    assert.deepEqual([names({ shipments: overdue }), overdue[0]?.shipment.order?.row], [['alice1'], 'head'])
    await settle(store(), overdue, 'expired')
    assert.deepEqual(names(await its.claim()), ['a2'])
  })

  test('a key that a deleted message held is released, and nothing shows the key', async () => {
    const its = await ordered(store, HOLD)
    await heldKey(store(), its, 'mallory', 'm2')
    const { id } = await store().deletions.create({ userIds: ['mallory'], sourceIds: [its.sourceId], suppress: false })
    await untilPurged(store(), id, 2)
    const view = await store().order.read(its.destinationId, PAGE)
    assert.ok(!JSON.stringify(view).includes('mallory'))
    assert.equal(view.heldKeys, 0)
    const rest = await its.claim()
    assert.equal(names(rest).length, 2, 'the waiting message, which is cancelled, and the delete message')
  })

  test('a deleted head is due at once, so that the delete message does not wait for its retry', async () => {
    const its = await ordered(store)
    await waitingKey(store(), its, 'mallory', 'm2')
    const { id } = await store().deletions.create({ userIds: ['mallory'], sourceIds: [its.sourceId], suppress: false })
    await untilPurged(store(), id, 2)
    const [key] = await its.keys()
    assert.deepEqual([key?.key, key?.head.messageId, key?.head.dueAtMs], [null, null, 0])
    const pending = (await store().history.deliveries({ destinationId: its.destinationId }, PAGE)).data
    assert.ok(!JSON.stringify(pending.filter(({ type }) => type !== 'delete')).includes('mallory'))
    const head = await its.claim(NOW_MS)
    assert.deepEqual(names(head), ['gone'])
  })
}
