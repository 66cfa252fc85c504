// Conformance: messages that are delivered in order. The last test compares the store with model/order/order-book.ts along random operations.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { type BookMessage, type BookRow, OrderBook } from '../../../model/order/order-book.ts'
import type { ClaimedShipment, HeldKey, OrderedClaim, OrderedClaimRequest, OrderSettings, Part, Store } from '../../store.ts'
import {
  accept,
  claim,
  counts,
  type Fate,
  ledgerOf,
  messageIdsOf,
  NOW_MS,
  newDestination,
  newSource,
  quarantining,
  routingTo,
  type SettleOptions,
  type StoreFixture,
  settlementOf,
  track,
  until,
} from '../fixtures.ts'

export const ORDER: OrderSettings = { by: 'user', onFailure: 'skip', maxWaiting: 10_000 }

export async function newOrdered(store: Store, order = ORDER): Promise<{ sourceId: string; destinationId: string }> {
  const { id: sourceId } = await newSource(store)
  const { id: destinationId } = await newDestination(store, sourceId, { order, timeoutMs: 100 })
  return { sourceId, destinationId }
}

/** The users `a`, `b` and `c`, whose messages are in one partition, so that their messages of one request are in one shipment. */
let users: readonly string[] = []

/** Messages of users: `a1` is a message of the user `a`. */
function of(...names: string[]): JsonObject[] {
  return names.map((name) => track(`${name}-${randomUUID()}`, { userId: users['abc'.indexOf(name.charAt(0))] as string }))
}

/** Waits until the store gives out the messages of all keys, and returns users of one partition. */
export async function usersOfOnePartition(store: Store): Promise<string[]> {
  const { sourceId, destinationId } = await newOrdered(store)
  const names = Array.from({ length: 100 }, (_, at) => `user${at}`)
  const messages = names.map((userId) => track(`${userId}-${randomUUID()}`, { userId }))
  await accept(store, sourceId, messages, [destinationId])
  const claimed: ClaimedShipment[] = []
  await until(
    async () => claimed.push(...(await claimOrdered(store, destinationId)).shipments),
    () => claimed.flatMap(messageIdsOf).length === names.length,
    'this node delivers all partitions',
  )
  await settle(store, claimed, 'delivered')
  return (claimed.map((one) => messageIdsOf(one).map(nameOf)).find(({ length }) => length >= 3) as string[]).slice(0, 3)
}

export async function claimOrdered(store: Store, destinationId: string, change: Partial<OrderedClaimRequest> = {}): Promise<OrderedClaim> {
  const limits = { maxFresh: 10_000, maxHeads: 10_000, maxWaiting: 10_000, maxBytes: 1e9 }
  return store.delivery.claimOrdered({ destinationId, nowMs: NOW_MS, ...limits, ...change })
}

/** The names of the messages, by shipment. */
export function names(claimed: { shipments: readonly ClaimedShipment[] }): string[] {
  return claimed.shipments.map((shipment) => messageIdsOf(shipment).map(nameOf).join(' '))
}

export function nameOf(messageId: string | null): string {
  return messageId?.split('-')[0] ?? 'gone'
}

/** Settles shipments; `fateOf` is given the name of a message. */
export async function settle(
  store: Store,
  shipments: readonly ClaimedShipment[],
  fateOf: Fate | ((name: string) => Fate),
  options: SettleOptions = {},
  holds: readonly HeldKey[] = [],
): Promise<void> {
  const byId = new Map<string, string>()
  for (const claimed of shipments) {
    const ids = messageIdsOf(claimed).map(nameOf)
    for (const { origin, indexes } of claimed.shipment.parts)
      for (const index of indexes) byId.set(`${origin}-${index}`, ids.shift() as string)
  }
  const fate = (id: string): Fate => (typeof fateOf === 'string' ? fateOf : fateOf(byId.get(id) as string))
  await store.delivery.settle({
    ...settlementOf(
      shipments.map(({ shipment }) => shipment),
      fate,
      options,
    ),
    holds,
  })
}

export function ordering({ store, reopen }: StoreFixture): void {
  before(async () => {
    users = await usersOfOnePartition(store())
  })

  test('ordered messages are claimed in the order of acceptance, apart from those without a key', async () => {
    const { sourceId, destinationId } = await newOrdered(store(), { ...ORDER, by: 'properties.account' })
    const withAccount = (name: string, account: unknown): JsonObject => track(`${name}-${randomUUID()}`, { properties: { account } })
    await accept(store(), sourceId, [withAccount('a1', 'a'), withAccount('none', null), withAccount('b1', 7)], [destinationId])
    await accept(store(), sourceId, [withAccount('list', []), withAccount('long', 'x'.repeat(1_025))], [destinationId])
    await accept(store(), sourceId, [withAccount('a2', 'a')], [destinationId])
    assert.deepEqual(names(await claim(store(), destinationId)), ['none', 'list long'])
    const claimed = await claimOrdered(store(), destinationId)
    const found = names(claimed).flatMap((shipment) => shipment.split(' '))
    assert.deepEqual([[...found].sort(), claimed.more, claimed.nextHeadAtMs], [['a1', 'a2', 'b1'], false, null])
    assert.ok(found.indexOf('a1') < found.indexOf('a2'))
    const keys = claimed.shipments.flatMap(({ shipment }) => shipment.parts.flatMap((part) => part.keys ?? []))
    const keyOf = (name: string): number => keys[found.indexOf(name)] as number
    assert.equal(keyOf('a1'), keyOf('a2'))
    assert.notEqual(keyOf('a1'), keyOf('b1'))
    assert.deepEqual(names(await claimOrdered(store(), destinationId)), [])
  })

  test('ordered messages of one request share an origin, although each partition has a shipment', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    const sent = Array.from({ length: 40 }, (_, at) => track(`${at}-${randomUUID()}`, { userId: `user${at}` }))
    const [repeated] = sent as [JsonObject]
    await accept(store(), sourceId, [...sent, repeated], [destinationId])
    const { shipments } = await claimOrdered(store(), destinationId)
    const parts = shipments.flatMap(({ shipment }) => shipment.parts)
    assert.equal(new Set(parts.map(({ origin }) => origin)).size, 1)
    assert.deepEqual(
      parts.flatMap(({ indexes }) => indexes).sort((a, b) => a - b),
      [...sent.keys()],
    )
    await settle(store(), shipments, (name) => (name === '7' ? 'failed' : 'delivered'))
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 40, delivered: 39, failed: 1 }))
    const message = await store().history.message(sent[7]?.['messageId'] as string)
    assert.equal(message?.deliveries.length, 1)
    const found = await store().history.delivery(message.deliveries[0]?.id as string)
    assert.deepEqual([found?.destinationId, found?.state], [destinationId, 'failed'])
  })

  test('ordered messages are not handed over in memory', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    await accept(store(), sourceId, of('a1'), [destinationId])
    assert.deepEqual(names(await claimOrdered(store(), destinationId)), ['a1'])
  })

  test('after a retry, only the key waits, and nothing of it is claimed until its head has ended', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    await accept(store(), sourceId, of('a1', 'b1'), [destinationId])
    const first = await claimOrdered(store(), destinationId)
    await settle(store(), first.shipments, (name) => (name === 'a1' ? 'retry' : 'delivered'), { dueAtMs: NOW_MS + 10 })
    await accept(store(), sourceId, of('a2', 'b2', 'a3'), [destinationId])
    await accept(store(), sourceId, of('a4'), [destinationId])
    const others = await claimOrdered(store(), destinationId)
    assert.deepEqual([names(others), others.nextHeadAtMs], [['b2'], NOW_MS + 10])
    await settle(store(), others.shipments, 'delivered')
    const head = await claimOrdered(store(), destinationId, { nowMs: NOW_MS + 10 })
    assert.deepEqual([names(head), head.shipments[0]?.shipment.attempt, head.shipments[0]?.shipment.order?.row], [['a1'], 1, 'head'])
    assert.deepEqual(names(await claimOrdered(store(), destinationId, { nowMs: NOW_MS + 10 })), [], 'the head is in flight')
    await settle(store(), head.shipments, 'delivered')
    const rest = await claimOrdered(store(), destinationId)
    assert.deepEqual(names(rest), ['a2 a3', 'a4'])
    await settle(store(), rest.shipments, 'delivered')
    await accept(store(), sourceId, of('a5'), [destinationId])
    const last = await claimOrdered(store(), destinationId)
    assert.deepEqual([names(last), last.shipments[0]?.shipment.order?.row], [['a5'], 'fresh'], 'the key is free again')
    await settle(store(), last.shipments, 'delivered')
    assert.deepEqual(counts(await ledgerOf(store(), destinationId)), counts({ owed: 7, delivered: 7 }))
  })

  test('messages that go back to the store keep their place, also before those that wait', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    await accept(store(), sourceId, of('a1'), [destinationId])
    await accept(store(), sourceId, of('a2', 'b1'), [destinationId])
    await accept(store(), sourceId, of('a3'), [destinationId])
    const [head, held] = (await claimOrdered(store(), destinationId, { maxFresh: 2 })).shipments as [ClaimedShipment, ClaimedShipment]
    await settle(store(), [head], 'retry', { dueAtMs: NOW_MS })
    assert.deepEqual(names(await claimOrdered(store(), destinationId, { maxHeads: 0 })), [], 'a3 waits from now on')
    await settle(store(), (await claimOrdered(store(), destinationId)).shipments, 'delivered')
    await settle(store(), [held], (name) => (name === 'b1' ? 'delivered' : 'kept'))
    store().delivery.release([held.shipment])
    assert.deepEqual(names(await claimOrdered(store(), destinationId, { maxFresh: 0 })), [], 'a fresh message of the key is before it')
    assert.deepEqual(names(await claimOrdered(store(), destinationId)), ['a2', 'a3'])
  })

  test('while messages of a key are on their way back, its other messages share no shipment with messages of other keys', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    await accept(store(), sourceId, of('a1', 'b1'), [destinationId])
    const [held] = (await claimOrdered(store(), destinationId)).shipments as [ClaimedShipment]
    const leaving = held.shipment.parts.flatMap(({ keys = [] }) => keys.slice(0, 1))
    for (const nth of [2, 3, 4]) {
      // PostgreSQL gives them, and the test gives them back. SQLite keeps them in the store.
      await accept(store(), sourceId, of(`a${nth}`, `c${nth}`), [destinationId])
      const { shipments } = await claimOrdered(store(), destinationId, { leaving })
      const [own, others] = [true, false].map((isOwn) =>
        shipments.filter((one) => names({ shipments: [one] })[0]?.startsWith('a') === isOwn),
      )
      assert.deepEqual(names({ shipments: others as ClaimedShipment[] }), [`c${nth}`])
      assert.ok(names({ shipments: own as ClaimedShipment[] }).every((name) => /^a\d$/.test(name)))
      store().delivery.release((own as ClaimedShipment[]).map(({ shipment }) => shipment))
      await settle(store(), others as ClaimedShipment[], 'delivered')
    }
    await settle(store(), [held], (name) => (name === 'b1' ? 'delivered' : 'kept'))
    store().delivery.release([held.shipment])
    const { shipments } = await claimOrdered(store(), destinationId)
    assert.deepEqual(names({ shipments }), ['a1', 'a2', 'a3', 'a4'])
    await settle(store(), shipments, 'delivered')
    await accept(store(), sourceId, of('a5', 'b5'), [destinationId])
    assert.deepEqual(names(await claimOrdered(store(), destinationId)), ['a5 b5'], 'the key is free again')
  })

  test('while messages of a key are on their way back, many new ones of the key do not keep others from being claimed', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    await accept(store(), sourceId, of('a1', 'b1'), [destinationId])
    const [held] = (await claimOrdered(store(), destinationId)).shipments as [ClaimedShipment]
    const leaving = held.shipment.parts.flatMap(({ keys = [] }) => keys.slice(0, 1))
    const later = Array.from({ length: 40 }, (_, at) => `a${at + 2}`)
    for (const name of later) await accept(store(), sourceId, of(name), [destinationId])
    await accept(store(), sourceId, of('c1', 'a42', 'c2'), [destinationId])
    await accept(store(), sourceId, of('c3'), [destinationId])
    const others: string[] = []
    for (let claims = 0; claims < 10; claims++) {
      const { shipments } = await claimOrdered(store(), destinationId, { leaving, maxFresh: 8 })
      const isOwn = (one: ClaimedShipment): boolean => names({ shipments: [one] })[0]?.startsWith('a') ?? false
      store().delivery.release(shipments.filter(isOwn).map(({ shipment }) => shipment))
      const taken = shipments.filter((one) => !isOwn(one))
      others.push(...names({ shipments: taken }))
      if (taken.length > 0) await settle(store(), taken, 'delivered')
    }
    assert.deepEqual(others, ['c1 c2', 'c3'])
    await settle(store(), [held], (name) => (name === 'b1' ? 'delivered' : 'kept'))
    store().delivery.release([held.shipment])
    const { shipments } = await claimOrdered(store(), destinationId)
    assert.deepEqual(names({ shipments }), ['a1', ...later, 'a42'])
    await settle(store(), shipments, 'delivered')
  })

  test('everything keeps its place when the store is opened again', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    await accept(store(), sourceId, of('a1', 'b1'), [destinationId])
    await settle(store(), (await claimOrdered(store(), destinationId)).shipments, 'retry', { dueAtMs: NOW_MS })
    for (const name of ['a2', 'c1', 'b2', 'a3']) await accept(store(), sourceId, of(name), [destinationId])
    assert.deepEqual(names(await claimOrdered(store(), destinationId, { maxHeads: 0, maxFresh: 3 })), ['c1'])
    await reopen()
    await usersOfOnePartition(store())
    // What was held is attempted again only after the deadline of a request.
    const shipments = await until(
      async () => (await claimOrdered(store(), destinationId)).shipments,
      ({ length }) => length > 0,
      'it can be claimed again',
    )
    assert.deepEqual(names({ shipments }), ['a1 b1', 'c1'])
    await settle(store(), shipments, 'delivered')
    assert.deepEqual(names(await claimOrdered(store(), destinationId)).sort(), ['a2', 'a3', 'b2'])
  })

  test('heads are claimed in the order in which they are due, so successive probes have different keys', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    for (const [at, name] of ['a1', 'b1', 'c1'].entries()) {
      await accept(store(), sourceId, of(name), [destinationId])
      await settle(store(), (await claimOrdered(store(), destinationId)).shipments, 'retry', { dueAtMs: NOW_MS + 3 - at })
    }
    const probed: string[] = []
    for (const dueAtMs of [4, 5, 6, 7].map((ms) => NOW_MS + ms)) {
      const probe = await claimOrdered(store(), destinationId, { nowMs: NOW_MS + 10, maxHeads: 1, maxFresh: 0, maxWaiting: 0 })
      probed.push(...names(probe))
      await settle(store(), probe.shipments, 'retry', { dueAtMs })
    }
    assert.deepEqual(probed, ['c1', 'b1', 'a1', 'c1'])
  })

  test('a held key stays held, also if nothing waits, until it is released', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    await accept(store(), sourceId, of('a1', 'b1'), [destinationId])
    const { shipments } = await claimOrdered(store(), destinationId)
    const { origin, segment, keys = [] } = (shipments[0] as ClaimedShipment).shipment.parts[0] as Part
    const hold = { key: keys[0] as number, origin, segment, index: 0 }
    await settle(store(), shipments, (name) => (name === 'a1' ? 'failed' : 'delivered'), {}, [hold])
    await accept(store(), sourceId, of('a2', 'b2'), [destinationId])
    assert.deepEqual(names(await claimOrdered(store(), destinationId)), ['b2'])
    assert.deepEqual(names(await claimOrdered(store(), destinationId)), [])
    assert.deepEqual(counts(await ledgerOf(store(), destinationId)), counts({ owed: 4, delivered: 1, failed: 1, pending: 2 }))
  })

  test('a claim stays within its limits, and says whether there is more', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    for (const name of ['a1', 'b1', 'a2', 'b2']) await accept(store(), sourceId, of(name), [destinationId])
    const two = await claimOrdered(store(), destinationId, { maxFresh: 2 })
    assert.deepEqual([names(two), two.more], [['a1', 'b1'], true])
    await settle(store(), two.shipments, 'retry', { dueAtMs: NOW_MS })
    const none = await claimOrdered(store(), destinationId, { maxHeads: 0 })
    assert.deepEqual([names(none), none.more], [[], false])
    const one = await claimOrdered(store(), destinationId, { maxHeads: 1 })
    assert.deepEqual([names(one), one.nextHeadAtMs], [['a1'], NOW_MS])
    assert.deepEqual(names(await claimOrdered(store(), destinationId, { maxBytes: -1 })), [])
  })

  test('duplicates leave the order of the others as it is', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    const [a1, b1, a2] = of('a1', 'b1', 'a2') as [JsonObject, JsonObject, JsonObject]
    await accept(store(), sourceId, [b1], [destinationId])
    await accept(store(), sourceId, [a1, b1, a2], [destinationId])
    const claimed = await claimOrdered(store(), destinationId)
    assert.deepEqual(names(claimed), ['b1', 'a1 a2'])
    const [one, other] = claimed.shipments[1]?.shipment.parts[0]?.keys ?? []
    assert.equal(one, other)
  })

  test('a deleted destination cancels fresh, retried and waiting messages', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    await accept(store(), sourceId, of('a1'), [destinationId])
    await settle(store(), (await claimOrdered(store(), destinationId)).shipments, 'retry')
    await accept(store(), sourceId, of('a2'), [destinationId])
    assert.deepEqual(names(await claimOrdered(store(), destinationId)), [])
    await accept(store(), sourceId, of('b1'), [destinationId])
    await store().resources.deleteDestination(destinationId)
    const pending = async (): Promise<number | undefined> =>
      (await store().books.ledger()).find((row) => row.destinationId === destinationId)?.pending
    await until(pending, (count) => count === 0, 'all deliveries are cancelled')
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 3, cancelled: 3 }))
  })

  test('messages that are released from quarantine are outside the order', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    const { segment } = await accept(store(), sourceId, of('a1', 'a2'), [destinationId], quarantining([0]))
    await store().quarantine.release([{ id: `${segment}-0`, routing: routingTo([destinationId]) }])
    assert.deepEqual(names(await claim(store(), destinationId)), ['a1'])
    assert.deepEqual(names(await claimOrdered(store(), destinationId)), ['a2'])
  })

  test('a delete message has the key of its user, and its place is that of the deletion', async () => {
    const { sourceId, destinationId } = await newOrdered(store())
    await accept(store(), sourceId, of('a1', 'b1'), [destinationId])
    await settle(store(), (await claimOrdered(store(), destinationId)).shipments, (name) => (name === 'b1' ? 'retry' : 'delivered'))
    await store().deletions.create({ userIds: [users[1] as string], sourceIds: [sourceId], suppress: false })
    await accept(store(), sourceId, of('a2'), [destinationId])
    const fresh = await claimOrdered(store(), destinationId, { maxHeads: 0 })
    assert.deepEqual(names(fresh), ['a2'], 'the delete message waits for b1')
    const head = await claimOrdered(store(), destinationId, { nowMs: NOW_MS * 2 })
    assert.equal(head.shipments[0]?.shipment.order?.row, 'head')
    await settle(store(), head.shipments, 'cancelled')
    const [{ shipment }] = (await claimOrdered(store(), destinationId)).shipments as [ClaimedShipment]
    assert.deepEqual([shipment.order?.row, shipment.parts[0]?.keys], ['waiting', head.shipments[0]?.shipment.parts[0]?.keys])
  })

  test('random operations give the same shipments as the order book', async () => {
    const random = randomFrom(7)
    for (let round = 0; round < 6; round++) await new Comparison(store(), random, await newOrdered(store())).run(60)
  })
}

/** The store and the book side by side. */
class Comparison {
  readonly #store: Store
  readonly #random: () => number
  readonly #ids: { sourceId: string; destinationId: string }
  readonly #book = new OrderBook()
  readonly #messages = new Map<string, BookMessage>()
  readonly #held: { claimed: ClaimedShipment; row: BookRow }[] = []
  #nowMs = NOW_MS
  #last = 0

  constructor(store: Store, random: () => number, ids: { sourceId: string; destinationId: string }) {
    this.#store = store
    this.#random = random
    this.#ids = ids
  }

  async run(steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      const choice = this.#random()
      if (choice < 0.35) await this.#accept()
      else if (choice < 0.65) await this.#claim()
      else if (choice < 0.9) await this.#settle()
      else if (choice < 0.95) this.#release()
      else this.#nowMs += 5
    }
  }

  async #accept(): Promise<void> {
    const users = Array.from({ length: 1 + this.#below(3) }, () => this.#below(3))
    const items = users.map((user) => of(`${'abc'[user]}${++this.#last}`)[0] as JsonObject)
    const messages = users.map((key, at) => ({ id: this.#last - users.length + at + 1, key }))
    for (const [at, item] of items.entries()) this.#messages.set(item['messageId'] as string, messages[at] as BookMessage)
    this.#book.accept(messages)
    await accept(this.#store, this.#ids.sourceId, items, [this.#ids.destinationId])
  }

  async #claim(): Promise<void> {
    const [heads, fresh, waiting] = [this.#below(3), this.#below(3), this.#below(2) * 1_000]
    const rows = this.#book.claim({ now: this.#nowMs, heads, fresh, waiting })
    const limits = { nowMs: this.#nowMs, maxHeads: heads, maxFresh: fresh, maxWaiting: waiting }
    const { shipments } = await claimOrdered(this.#store, this.#ids.destinationId, limits)
    const found = shipments.map((claimed) => ({ claimed, text: this.#textOf(claimed) }))
    assert.deepEqual(found.map(({ text }) => text).sort(), rows.map(textOfRow).sort())
    for (const { claimed, text } of found) this.#held.push({ claimed, row: rows.find((row) => textOfRow(row) === text) as BookRow })
  }

  async #settle(): Promise<void> {
    const [held] = this.#held.splice(this.#below(this.#held.length), 1)
    if (held === undefined) return
    const fates = held.row.messages.map((): Fate => (this.#random() < 0.6 ? 'delivered' : 'retry'))
    const at = (fate: Fate) => held.row.messages.filter((_, index) => fates[index] === fate)
    const retry = at('retry').length > 0 ? [at('retry')] : []
    this.#book.settle(held.row.id, { ended: at('delivered'), retry, retryAt: this.#nowMs + 3, hold: [] })
    const ids = messageIdsOf(held.claimed).map(nameOf)
    await settle(this.#store, [held.claimed], (name) => fates[ids.indexOf(name)] as Fate, { dueAtMs: this.#nowMs + 3 })
  }

  #release(): void {
    const [held] = this.#held.splice(this.#below(this.#held.length), 1)
    if (held === undefined) return
    this.#book.release(held.row.id)
    this.#store.delivery.release([held.claimed.shipment])
  }

  #textOf(claimed: ClaimedShipment): string {
    const row = claimed.shipment.order?.row
    return `${row} ${messageIdsOf(claimed)
      .map((id) => this.#messages.get(id as string)?.id)
      .join()}`
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit)
  }
}

function textOfRow({ row, messages }: BookRow): string {
  return `${row} ${messages.map(({ id }) => id).join()}`
}

/** Mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
