// Replays random traces of the model on two nodes of the real PostgreSQL store, and compares the rows of shipments after every step, and the ledger
// at the end: holder ids, claim numbers, which settlements are refused. This keeps the model consistent with the code. Leases and declarations
// are made by statements of this test, because the store would decide about them by its own clock; membership.test.ts has the real ones.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { randomFrom } from '../../packages/server/src/delivery/fixtures/random.ts'
import {
  accept,
  claimOne,
  ledgerOf,
  NOW_MS,
  newDestination,
  newSource,
  RecordingConsumer,
  settlementOf,
  track,
  until,
} from '../../packages/server/src/store/conformance/fixtures.ts'
import { createDatabase, type TestDatabase } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { openAt } from '../../packages/server/src/store/postgres/fixtures/temp-store.ts'
import type { PostgresStore } from '../../packages/server/src/store/postgres/store.ts'
import { ClaimLost, type Shipment } from '../../packages/server/src/store/store.ts'
import { IS_LONG } from '../system/long-tests.ts'
import type { Step } from './checker.ts'
import { isEnd } from './invariants.ts'
import { createProtocol } from './protocol.ts'
import { type Holder, holderOf, isSent, nodeOf, type State, type Task } from './state.ts'

const TRACES = IS_LONG ? 200 : 15
const LONGEST = 60
const BOUNDS = { nodes: 2, messages: 2, faults: 4, refusals: 2 }
const FATES = { sent: 'delivered', failed: 'failed', retry: 'retry' } as const

let database: TestDatabase
let nodes: { store: PostgresStore; consumer: RecordingConsumer }[]
let sourceId: string
let destinationIds: string[]

before(async () => {
  database = await createDatabase()
  nodes = []
  for (let n = 0; n < BOUNDS.nodes; n++) {
    const store = await openAt(database.url, { leaseMs: 3_600_000 })
    // A node notices that it was declared dead when the trace says so.
    store.membership.heartbeat = async () => {}
    const consumer = new RecordingConsumer()
    store.delivery.attach(consumer)
    nodes.push({ store, consumer })
  }
  const [first, last] = [storeOf(0), storeOf(BOUNDS.nodes - 1)]
  sourceId = (await newSource(first)).id
  destinationIds = []
  for (let left = TRACES * BOUNDS.messages; left > 0; left--) destinationIds.push((await newDestination(first, sourceId)).id)
  await until(
    async () => last.configuration().destinations,
    (known) => destinationIds.every((id) => known.has(id)),
    'the other node knows the destinations',
  )
})
after(async () => {
  for (const { store } of nodes) await store.close()
  await database.drop()
})

/** One trace: the state of the model, and the rows and claims of the real nodes that correspond to it. */
class Replay {
  state: State
  readonly trace: string[] = []
  settled = 0
  refused = 0
  readonly #protocol = createProtocol(BOUNDS)
  readonly #destinationIds: readonly string[]
  readonly #messageIds = Array.from({ length: BOUNDS.messages }, () => randomUUID())
  /** The real holder ids. */
  readonly #holders = new Map<Holder, string>([[0, '0']])
  readonly #shipments = new Map<string, Shipment>()

  constructor(own: readonly string[]) {
    this.state = this.#protocol.initial
    this.#destinationIds = own
  }

  async start(): Promise<void> {
    for (const n of nodes.keys()) await this.#join(n)
  }

  /** The steps that have a counterpart here: no answer of the database is lost, no process is killed, and no statement is late. */
  possible(): Step<State>[] {
    const left = / is killed$|, but gets no answer$| at the same moment$| as a new node: /
    return [...this.#protocol.steps(this.state)]
      .filter(({ name }) => !left.test(name))
      .flatMap((step) => {
        // Otherwise few settlements would be refused: nodes fail while they have something in flight, and others notice.
        const [, n] = /^FAULT: node (\d) (?:freezes|is cut off)/.exec(step.name) ?? []
        const isBusy = this.state.messages.some(({ tasks }) =>
          tasks.some(({ stage, holder }) => nodeOf(holder) === Number(n) && isSent(stage)),
        )
        if (n !== undefined && !isBusy) return []
        return n !== undefined || step.name.includes('declares') || step.name === 'a lease passes'
          ? Array<Step<State>>(5).fill(step)
          : [step]
      })
  }

  get isOver(): boolean {
    return isEnd(this.state) && this.state.messages.every(({ tasks }) => tasks.length === 0)
  }

  async take({ name, apply }: Step<State>): Promise<void> {
    const before = this.state
    this.state = this.#protocol.copy(before)
    apply(this.state)
    this.trace.push(name)
    const [, n, what] = /node (\d) (.*)$/.exec(name) ?? []
    if (what === undefined) return this.#passLease()
    const m = Number(/message (\d)/.exec(what)?.[1])
    const verb = what.split(' ')[0] as string
    if (verb === 'stores') await this.#store(Number(n), m, what.endsWith('itself'))
    else if (verb === 'acknowledges') await this.#store(Number(n), m, true)
    else if (verb === 'claims') await this.#claim(Number(n), m)
    else if (verb === 'settles') await this.#settle(Number(n), m, before)
    else if (verb === 'declares') await this.#declareDead(before)
    else if (verb === 'joins') await this.#join(Number(n))
    else if (verb === 'renews') await storeOf(Number(n)).membership.check()
    // The answer of the database has arrived with the statement.
    const answered = [...this.#protocol.steps(this.state)].find((step) =>
      step.name.startsWith(`node ${n} has ${verb === 'claims' ? 'claimed' : 'stored'}`),
    )
    if ((verb === 'stores' || verb === 'claims') && answered !== undefined) await this.take(answered)
  }

  async compare(): Promise<void> {
    const expected = this.state.messages.map(({ rows }) => rows.map(({ holder, claim }) => `${this.#holders.get(holder)} ${claim}`))
    const rows = await database.query<{ public: string; holder: string; claim: number }>(
      `SELECT d.id AS public, s.holder, s.claim FROM switchyard.shipments s JOIN switchyard.destinations d ON d.num = s.destination WHERE d.id = ANY ($1)`,
      [this.#destinationIds],
    )
    const actual = this.#destinationIds.map((id) =>
      rows.filter((row) => row.public === id).map(({ holder, claim }) => `${holder} ${claim}`),
    )
    assert.deepEqual(actual, expected, this.trace.join('\n'))
  }

  async compareLedger(): Promise<void> {
    for (const [m, { owed, delivered, failed, rows }] of this.state.messages.entries()) {
      const expected = { owed, delivered, pending: rows.length, failed, expired: 0, cancelled: 0 }
      assert.deepEqual(await ledgerOf(storeOf(0), this.#destinationIds[m] as string), expected, this.trace.join('\n'))
    }
  }

  async #store(n: number, m: number, isOwn: boolean): Promise<void> {
    const { store, consumer } = nodes[n] as (typeof nodes)[number]
    consumer.reserves = isOwn
    const before = consumer.received.length
    await accept(store, sourceId, [track(this.#messageIds[m] as string)], [this.#destinationIds[m] as string])
    const task = this.state.messages[m]?.tasks.at(-1)
    if (task?.stage !== 'stored') return assert.equal(consumer.received.length, before, 'nothing is handed over')
    assert.equal(consumer.received.length, before + 1, 'the shipment is handed over')
    this.#shipments.set(keyOf(m, task), consumer.received.at(-1)?.shipment as Shipment)
  }

  async #claim(n: number, m: number): Promise<void> {
    const { shipment } = await claimOne(storeOf(n), this.#destinationIds[m] as string)
    this.#shipments.set(keyOf(m, this.state.messages[m]?.tasks.at(-1) as Task), shipment)
  }

  async #settle(n: number, m: number, before: State): Promise<void> {
    const left = new Set(this.state.messages[m]?.tasks.map((task) => keyOf(m, task)))
    const task = before.messages[m]?.tasks.find((each) => !left.has(keyOf(m, each))) as Task
    const shipment = this.#shipments.get(keyOf(m, task)) as Shipment
    const fate = FATES[task.stage as keyof typeof FATES]
    try {
      await storeOf(n).delivery.settle(settlementOf([shipment], fate, { dueAtMs: NOW_MS - 1 }))
      this.settled++
    } catch (error) {
      assert.ok(error instanceof ClaimLost, String(error))
      this.refused++
    }
  }

  async #join(n: number): Promise<void> {
    const { membership } = storeOf(n)
    await membership.check()
    this.#holders.set(holderOf(n, this.state.nodes[n]?.joins as number), membership.holder)
  }

  async #passLease(): Promise<void> {
    const gone = this.state.nodes.flatMap(({ joins, hasLease }, n) => (hasLease ? [] : [this.#holders.get(holderOf(n, joins))]))
    await database.query(`UPDATE switchyard.nodes SET expires_at = now() - interval '1 second' WHERE holder = ANY ($1::bigint[])`, [gone])
  }

  /** The statements of membership.ts. */
  async #declareDead(before: State): Promise<void> {
    const dead = before.members.filter((holder) => !this.state.members.includes(holder)).map((holder) => this.#holders.get(holder))
    await database.query(
      `WITH gone AS (DELETE FROM switchyard.nodes WHERE holder = ANY ($1::bigint[]))
      UPDATE switchyard.shipments SET holder = 0 WHERE holder = ANY ($1::bigint[])`,
      [dead],
    )
  }
}

function storeOf(n: number): PostgresStore {
  return (nodes[n] as (typeof nodes)[number]).store
}

function keyOf(m: number, { holder, id, claim }: Task): string {
  return `${m} ${holder} ${id} ${claim}`
}

test('the real store changes the same rows and refuses the same settlements as the model, along random traces', async (t) => {
  let [steps, settled, refused] = [0, 0, 0]
  for (let seed = 1; seed <= TRACES; seed++) {
    const random = randomFrom(seed)
    const replay = new Replay(destinationIds.splice(0, BOUNDS.messages))
    await replay.start()
    while (replay.trace.length < LONGEST && !replay.isOver) {
      const possible = replay.possible()
      await replay.take(possible[Math.floor(random() * possible.length)] as Step<State>)
      await replay.compare()
    }
    await replay.compareLedger()
    steps += replay.trace.length
    settled += replay.settled
    refused += replay.refused
  }
  t.diagnostic(`${TRACES} traces, ${steps} steps: ${settled} settlements, ${refused} refused`)
  assert.ok(settled > 0 && refused > 0, `${settled} settlements, ${refused} refused`)
})
