// Conformance: no delivery is lost and none is invented. Runs random sequences of operations of ingest, delivery and operators against a model that
// knows the state of each delivery. After every step, the ledger, its recount and the model must agree.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import type { ClaimedShipment, DeliveryState, LedgerRow, Settlement, Store } from '../store.ts'
import { withLetters } from './delivery/dead-letters.ts'
import {
  accept,
  allPages,
  claim,
  counts,
  DAY_MS,
  deliveriesOf,
  type Fate,
  NOW_MS,
  newDestination,
  newSource,
  type OpenStore,
  quarantining,
  RecordingConsumer,
  routingTo,
  type StoreFixture,
  settlementOf,
  track,
  until,
} from './fixtures.ts'

const DESTINATIONS = 3

type Step =
  | { kind: 'accept'; source: number; ids: number[]; to: number[]; own: boolean; held: number[] }
  | { kind: 'releaseQuarantined'; pick: number; count: number; to: number[] }
  | { kind: 'deleteQuarantined'; pick: number; count: number }
  | { kind: 'claim'; destination: number; fresh: number; retries: number }
  | { kind: 'claimOverdue'; destination: number }
  | { kind: 'release'; pick: number }
  | { kind: 'settle'; pick: number; together: boolean; fates: Fate[]; letters: boolean }
  | { kind: 'settleWrongly'; pick: number }
  | { kind: 'settleStale'; pick: number }
  | { kind: 'replay'; pick: number }
  | { kind: 'deleteDestination'; destination: number }
  | { kind: 'drop' }
  | { kind: 'reopen' }

const fate = fc.constantFrom<Fate>('delivered', 'failed', 'expired', 'cancelled', 'retry', 'retry', 'untouched', 'kept')
const destination = fc.nat(DESTINATIONS - 1)
const to = fc.uniqueArray(destination, { maxLength: DESTINATIONS })
const pick = fc.nat(1_000)

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('accept' as const),
      source: fc.nat(1),
      ids: fc.array(fc.nat(40), { minLength: 1, maxLength: 6 }),
      to,
      own: fc.boolean(),
      // The indexes of quarantined messages. Often there are none.
      held: fc.oneof(fc.constant<number[]>([]), fc.uniqueArray(fc.nat(5), { maxLength: 4 })),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('releaseQuarantined' as const), pick, count: fc.nat(3), to }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deleteQuarantined' as const), pick, count: fc.nat(2) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('claim' as const), destination, fresh: fc.nat(3), retries: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('claimOverdue' as const), destination }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('release' as const), pick }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      pick,
      together: fc.boolean(),
      letters: fc.boolean(),
      fates: fc.array(fate, { minLength: 1, maxLength: 7 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('settleWrongly' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('settleStale' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('replay' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deleteDestination' as const), destination }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen' as const) }) },
)

interface Known {
  destinationId: string
  state: DeliveryState
  /** Whether it was accepted before old messages were dropped, so that it may no longer be stored. */
  old: boolean
}

class Model {
  readonly #opened: OpenStore
  readonly #sources: string[] = []
  readonly #destinations: string[] = []
  readonly #deleted = new Set<string>()
  readonly #seen = new Set<string>()
  readonly #deliveries = new Map<string, Known>()
  /** The messages in quarantine, by id, and their sources. */
  readonly #quarantine = new Map<string, string>()
  readonly #ended: string[] = []
  /** By source. */
  readonly #left = new Map<string, { released: number; deleted: number }>()
  #held: ClaimedShipment[] = []
  #stale: ClaimedShipment[] = []
  #epoch = 0
  #consumer = new RecordingConsumer()

  constructor(opened: OpenStore) {
    this.#opened = opened
  }

  get #store(): Store {
    return this.#opened.store
  }

  async start(): Promise<void> {
    for (let at = 0; at < 2; at++) this.#sources.push((await newSource(this.#store)).id)
    for (let at = 0; at < DESTINATIONS; at++) this.#destinations.push((await newDestination(this.#store, this.#sources[0] as string)).id)
    this.#store.delivery.attach(this.#consumer)
  }

  async run(one: Step): Promise<void> {
    switch (one.kind) {
      case 'accept':
        return this.#accept(one)
      case 'claim': {
        const destinationId = this.#destinations[one.destination] as string
        const { shipments } = await claim(this.#store, destinationId, { nowMs: NOW_MS * 2, maxFresh: one.fresh, maxRetries: one.retries })
        assert.ok(shipments.length <= one.fresh + one.retries)
        return this.#hold(shipments)
      }
      case 'claimOverdue':
        return this.#hold(await this.#store.delivery.claimOverdue(this.#destinations[one.destination] as string, NOW_MS * 2, 2))
      case 'release': {
        const released = this.#take(one.pick)
        if (released === undefined) return
        this.#store.delivery.release([released.shipment])
        this.#stale.push(released)
        if (this.#deleted.has(released.shipment.destinationId)) this.#end([released], 'cancelled')
        return
      }
      case 'settle':
        return this.#settle(one)
      case 'settleWrongly': {
        const held = this.#held[one.pick % Math.max(1, this.#held.length)]
        if (held === undefined) return
        const right = settlementOf([held.shipment], 'delivered')
        await assert.rejects(this.#store.delivery.settle({ ...right, records: [] }))
        return
      }
      case 'settleStale': {
        const stale = this.#stale[one.pick % Math.max(1, this.#stale.length)]
        if (stale === undefined) return
        await assert.rejects(this.#store.delivery.settle(settlementOf([stale.shipment], 'delivered')))
        return
      }
      case 'replay':
        return this.#replay(one.pick)
      case 'releaseQuarantined':
      case 'deleteQuarantined':
        return this.#endQuarantine(one)
      case 'deleteDestination': {
        const id = this.#destinations[one.destination] as string
        assert.equal(await this.#store.resources.deleteDestination(id), !this.#deleted.has(id))
        this.#deleted.add(id)
        return this.#cancelUnheld()
      }
      case 'drop':
        await this.#store.dropExpired(Date.now() + 100 * DAY_MS)
        for (const known of this.#deliveries.values()) known.old = true
        // messageIds may be forgotten together with their messages, so none of them is used again.
        this.#epoch++
        return
      case 'reopen':
        await this.#opened.reopen()
        this.#stale.push(...this.#held)
        this.#held = []
        this.#consumer = new RecordingConsumer()
        this.#store.delivery.attach(this.#consumer)
        this.#cancelUnheld()
    }
  }

  /** Compares the ledgers of all destinations, after the store's background work has ended. */
  async agrees(): Promise<void> {
    const expected = this.#destinations.map((destinationId): LedgerRow => {
      const row = { destinationId, ...counts() }
      for (const known of this.#deliveries.values()) {
        if (known.destinationId !== destinationId) continue
        row.owed++
        row[known.state]++
      }
      return row
    })
    const own = (rows: LedgerRow[]): LedgerRow[] => this.#destinations.flatMap((id) => rows.filter((row) => row.destinationId === id))
    const pendingOf = (rows: LedgerRow[]): string => rows.map(({ pending }) => pending).join()
    const rowsThatWere = expected.filter(({ destinationId, owed }) => owed > 0 || !this.#deleted.has(destinationId))
    const ledger = await until(
      async () => own(await this.#store.books.ledger()),
      (rows) => this.#deleted.size === 0 || pendingOf(rows) === pendingOf(rowsThatWere),
      'the deleted destinations are owed nothing that is not held',
    )
    assert.deepEqual(ledger, rowsThatWere, 'the ledger and the model')
    assert.deepEqual(own(await this.#store.books.recount()), rowsThatWere, 'the recount and the model')
    await this.#quarantineAgrees()
  }

  async #quarantineAgrees(): Promise<void> {
    const sourceCounts = await this.#store.books.sourceCounts()
    const recount = await this.#store.books.recountQuarantined()
    for (const sourceId of this.#sources) {
      const held = [...this.#quarantine.values()].filter((of) => of === sourceId).length
      const counted = sourceCounts.find((row) => row.sourceId === sourceId)
      const { released = 0, deleted = 0 } = this.#left.get(sourceId) ?? {}
      assert.deepEqual([counted?.quarantined ?? 0, counted?.released ?? 0, counted?.deleted ?? 0], [held, released, deleted])
      assert.equal(recount.find((row) => row.sourceId === sourceId)?.quarantined ?? 0, held, 'the recount of the quarantine')
    }
  }

  /** Checks that each delivery is listed once, with the state that it has in the model. */
  async isListed(): Promise<void> {
    for (const destinationId of this.#destinations) {
      const listed = await allPages((page) => this.#store.history.deliveries({ destinationId }, page), 7)
      const names = new Set(listed.map(({ id }) => id))
      assert.equal(names.size, listed.length, 'each once')
      for (const { id, state } of listed) assert.equal(state, this.#deliveries.get(id)?.state, id)
      for (const [id, known] of this.#deliveries) {
        if (known.destinationId !== destinationId || (known.old && known.state !== 'pending')) continue
        assert.ok(names.has(id), `${id} is listed`)
        assert.equal((await this.#store.history.delivery(id))?.state, known.state)
      }
    }
  }

  async #accept({ source, ids, to, own, held }: Step & { kind: 'accept' }): Promise<void> {
    const sourceId = this.#sources[source] as string
    const messageIds = ids.map((id) => `${this.#epoch}-${id}`)
    const expected: number[] = []
    for (const [index, messageId] of messageIds.entries()) {
      const key = `${source} ${messageId}`
      if (this.#seen.has(key)) expected.push(index)
      this.#seen.add(key)
    }
    this.#consumer.reserves = own
    const destinationIds = to.map((at) => this.#destinations[at] as string)
    const items = messageIds.map((messageId) => track(messageId))
    const quarantined = held.filter((index) => index < items.length)
    const routing = quarantined.length === 0 ? {} : quarantining(quarantined)
    const { segment, duplicates } = await accept(this.#store, sourceId, items, destinationIds, routing)
    assert.deepEqual(duplicates, expected)
    assert.equal(segment === null, expected.length === ids.length)
    this.#hold(this.#consumer.received.splice(0))
    if (segment === null) return
    for (const index of messageIds.keys()) {
      const message = await this.#store.history.message(`${segment}-${index}`)
      if (expected.includes(index)) {
        assert.equal(message, undefined)
        continue
      }
      const isHeld = quarantined.includes(index)
      if (isHeld) this.#quarantine.set(`${segment}-${index}`, sourceId)
      assert.equal(message?.quarantine?.state, isHeld ? 'held' : undefined)
      const live = isHeld ? [] : destinationIds.filter((id) => !this.#deleted.has(id))
      assert.deepEqual(message?.deliveries.map(({ destinationId }) => destinationId).sort(), live.sort())
      for (const { id, destinationId } of message?.deliveries ?? []) {
        this.#deliveries.set(id, { destinationId, state: 'pending', old: false })
      }
    }
  }

  #hold(claimed: readonly ClaimedShipment[]): void {
    for (const each of claimed) {
      for (const { shipment } of this.#held) assert.notEqual(shipment.id, each.shipment.id, 'a claim is exclusive')
      this.#held.push(each)
    }
  }

  #take(pick: number): ClaimedShipment | undefined {
    return this.#held.splice(pick % Math.max(1, this.#held.length), 1)[0]
  }

  async #settle({ pick, together, fates, letters }: Step & { kind: 'settle' }): Promise<void> {
    const first = this.#take(pick)
    if (first === undefined) return
    const done = [first]
    const { destinationId } = first.shipment
    if (together) {
      const others = this.#held.filter(({ shipment }) => shipment.destinationId === destinationId)
      this.#held = this.#held.filter((each) => !others.includes(each))
      done.push(...others)
    }
    const fateOf = new Map(done.flatMap(({ shipment }) => deliveriesOf(shipment)).map((id, at) => [id, fates[at % fates.length] as Fate]))
    const without = settlementOf(
      done.map(({ shipment }) => shipment),
      (id) => fateOf.get(id) as Fate,
    )
    // The dead-letter destination of each destination is the next one; the last one has none.
    const to = letters ? this.#destinations[this.#destinations.indexOf(destinationId) + 1] : undefined
    const settlement = to === undefined ? without : withLetters(without, done, to)
    await this.#store.delivery.settle(settlement)
    if (to !== undefined) await this.#owe(settlement, to)
    for (const each of done) {
      const kept = settlement.kept.find(({ shipment }) => shipment === each.shipment)
      if (kept === undefined) this.#stale.push(each)
      else this.#held.push({ ...each, shipment: { ...each.shipment, parts: kept.parts } })
    }
    for (const [id, became] of fateOf) {
      const known = this.#deliveries.get(id)
      assert.equal(known?.state, 'pending', `${id} was owed`)
      if (became === 'kept') continue
      const isOwed = became === 'retry' || became === 'untouched'
      known.state = isOwed ? (this.#deleted.has(destinationId) ? 'cancelled' : 'pending') : became
    }
  }

  /** The dead letters are owed to their destination, each once, unless it was deleted. */
  async #owe({ letters = [] }: Settlement, destinationId: string): Promise<void> {
    for (const { messageId } of letters.flatMap(({ items }) => items)) {
      const deliveries = (await this.#store.history.message(messageId))?.deliveries ?? []
      assert.deepEqual(
        deliveries.map((delivery) => delivery.destinationId),
        this.#deleted.has(destinationId) ? [] : [destinationId],
      )
      for (const { id } of deliveries) this.#deliveries.set(id, { destinationId, state: 'pending', old: false })
    }
  }

  async #replay(pick: number): Promise<void> {
    const names = [...this.#deliveries.keys()]
    const id = names[pick % Math.max(1, names.length)]
    if (id === undefined) return
    const known = this.#deliveries.get(id) as Known
    const result = await this.#store.replays.replay(id)
    if (result.ok) {
      assert.ok(known.state !== 'pending' && !this.#deleted.has(known.destinationId))
      this.#deliveries.set(result.deliveryId, { destinationId: known.destinationId, state: 'pending', old: false })
    } else if (!known.old) assert.equal(result.reason, known.state === 'pending' ? 'still_pending' : 'destination_gone')
  }

  /** Messages that have left the quarantine already are picked too. */
  async #endQuarantine(one: Step & { kind: 'releaseQuarantined' | 'deleteQuarantined' }): Promise<void> {
    const all = [...this.#quarantine]
    const picked = all.slice(one.pick % Math.max(1, all.length)).slice(0, one.count + 1)
    const ids = [...picked.map(([id]) => id), ...this.#ended.slice(-1)]
    const outcome = one.kind === 'releaseQuarantined' ? 'released' : 'deleted'
    const to = one.kind === 'releaseQuarantined' ? one.to.map((at) => this.#destinations[at] as string) : []
    const ended =
      outcome === 'deleted'
        ? await this.#store.quarantine.delete(ids)
        : await this.#store.quarantine.release(ids.map((id) => ({ id, routing: routingTo(to) })))
    assert.deepEqual([...ended].sort(), picked.map(([id]) => id).sort())
    for (const [id, sourceId] of picked) {
      this.#quarantine.delete(id)
      this.#ended.push(id)
      const left = this.#left.get(sourceId) ?? { released: 0, deleted: 0 }
      this.#left.set(sourceId, { ...left, [outcome]: left[outcome] + 1 })
      const message = await this.#store.history.message(id)
      assert.equal(message?.quarantine?.state, outcome)
      const live = to.filter((destinationId) => !this.#deleted.has(destinationId))
      assert.deepEqual(message?.deliveries.map(({ destinationId }) => destinationId).sort(), live.sort())
      for (const delivery of message?.deliveries ?? [])
        this.#deliveries.set(delivery.id, { destinationId: delivery.destinationId, state: 'pending', old: false })
    }
  }

  #end(shipments: readonly ClaimedShipment[], state: DeliveryState): void {
    for (const { shipment } of shipments) for (const id of deliveriesOf(shipment)) (this.#deliveries.get(id) as Known).state = state
  }

  #cancelUnheld(): void {
    const held = new Set(this.#held.flatMap(({ shipment }) => deliveriesOf(shipment)))
    for (const [id, known] of this.#deliveries) {
      if (known.state === 'pending' && this.#deleted.has(known.destinationId) && !held.has(id)) known.state = 'cancelled'
    }
  }
}

export function conservation({ open }: StoreFixture): void {
  test('no sequence of operations loses or invents deliveries', { timeout: 600_000 }, async () => {
    const opened = await open({ retentionDays: 7 })
    const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40, size: 'max' }), async (steps) => {
      const model = new Model(opened)
      await model.start()
      for (const one of steps) {
        await model.run(one)
        await model.agrees()
      }
      await model.isListed()
    })
    try {
      await fc.assert(property, { numRuns: Number(process.env['CONFORMANCE_RUNS'] ?? 3), endOnFailure: true })
    } finally {
      await opened.dispose()
    }
  })
}
