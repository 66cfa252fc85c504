// The runner of the upkeep of warehouses: when it is due, who does it, and what happens when a step fails. The steps themselves are those of a loader, which
// e2e/warehouse/upkeep.test.ts runs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WarehouseDestination } from '../../../destinations/warehouse/settings.ts'
import type { DocumentStore, StoredDocument } from '../../../store/port/documents.ts'
import { closeLoad, openLoad, openLoads, storeSchema } from '../../../store/port/warehouse-tables.ts'
import { LEASE_MS, readUpkeep } from '../../../store/port/warehouse-upkeep.ts'
import { type UpkeepStep, WarehouseUpkeep, type WarehouseUpkeepDeps } from './warehouse-upkeep.ts'

const HOUR_MS = 3_600_000
const NOON = Date.UTC(2026, 10, 18, 12)
const OF = { destinationId: 'dst_lake', sourceId: 'src_shop' }
const LAKE = { id: 'dst_lake', type: 'warehouse', enabled: true, paused: false } as WarehouseDestination

/** Documents as the adapters keep them, which the conformance suite tests. */
function documentsInMemory(): DocumentStore {
  const kinds = new Map<string, Map<string, StoredDocument>>()
  const of = (kind: string): Map<string, StoredDocument> => {
    if (!kinds.has(kind)) kinds.set(kind, new Map())
    return kinds.get(kind) as Map<string, StoredDocument>
  }
  return {
    get: async (kind, key) => of(kind).get(key),
    list: async (kind, { prefix = '', after }) =>
      [...of(kind).values()].filter(({ key }) => key.startsWith(prefix) && (after === undefined || key > after.key)),
    async update(kind, keys, change) {
      const stored = new Map(keys.flatMap((key) => (of(kind).has(key) ? [[key, of(kind).get(key) as StoredDocument] as const] : [])))
      for (const [key, made] of change(stored)) {
        if (made === null) of(kind).delete(key)
        else of(kind).set(key, { key, ...made })
      }
    },
    drop: async () => 0,
  }
}

interface Fixture {
  documents: DocumentStore
  time: { nowMs: number }
  steps: (string | null)[]
  failures: string[]
  pending: number
  /** How many nodes are alive. */
  nodeCount: number
  destination: WarehouseDestination
  /** A node. Its timer is `tick`. */
  node: (step?: (cursor: string | null) => Promise<UpkeepStep>) => { upkeep: WarehouseUpkeep; tick: () => Promise<void> }
}

async function fixture(): Promise<Fixture> {
  const documents = documentsInMemory()
  await storeSchema(documents, OF, 0, { name: 'shop', revision: 1, tables: [] }, NOON)
  const made: Fixture = {
    documents,
    time: { nowMs: NOON },
    steps: [],
    failures: [],
    pending: 0,
    nodeCount: 1,
    destination: LAKE,
    node(step = async (cursor) => ({ cursor: cursor === null ? 'b' : null, changed: 1, problems: [] })) {
      const timers = new Set<() => void>()
      const store = {
        documents,
        configuration: () => ({ destinations: new Map([[LAKE.id, made.destination]]) }),
        books: { ledger: async () => [{ destinationId: LAKE.id, pending: made.pending }] },
        nodes: { count: made.nodeCount },
      } as unknown as WarehouseUpkeepDeps['store']
      const upkeep = new WarehouseUpkeep({
        store,
        clock: { wallMs: () => made.time.nowMs, scheduleMs: () => made.time.nowMs },
        step: async (_, cursor) => {
          made.steps.push(cursor)
          return step(cursor)
        },
        setTimer: (run) => {
          timers.add(run)
          return () => timers.delete(run)
        },
        onFailure: (_, error) => made.failures.push((error as Error).message),
        onProblems: () => {},
      })
      upkeep.start()
      return {
        upkeep,
        async tick() {
          const due = [...timers]
          timers.clear()
          for (const run of due) run()
          await upkeep.idle()
        },
      }
    },
  }
  return made
}

test('it runs once a day, half an hour after midnight UTC, in steps', async () => {
  const rig = await fixture()
  const { tick } = rig.node()
  await tick()
  assert.deepEqual(rig.steps, [null, 'b'])
  assert.equal((await readUpkeep(rig.documents, LAKE.id))?.changed, 2)
  await tick()
  rig.time.nowMs += 12 * HOUR_MS
  await tick()
  assert.equal(rig.steps.length, 2)
  rig.time.nowMs += HOUR_MS
  await tick()
  assert.equal(rig.steps.length, 4)
})

test('a destination that is paused, or has no tables yet, is left alone', async () => {
  const rig = await fixture()
  const { tick, upkeep } = rig.node()
  rig.destination = { ...LAKE, paused: true }
  await upkeep.want(LAKE.id)
  await tick()
  assert.deepEqual(rig.steps, [])
  rig.destination = LAKE
  await tick()
  assert.deepEqual(rig.steps, [null, 'b'])
  const empty = await fixture()
  for (const { key } of await empty.documents.list('warehouse-schema', { order: 'key', limit: 10 }))
    await empty.documents.update('warehouse-schema', [], () => new Map([[key, null]]))
  await empty.node().tick()
  assert.deepEqual(empty.steps, [])
})

test('one node does it at a time, and another one continues where a node that died has stopped', async () => {
  const rig = await fixture()
  rig.nodeCount = 2
  let begun = (): void => {}
  const hasBegun = new Promise<void>((resolve) => (begun = resolve))
  const dying = rig.node(async (cursor) => {
    if (cursor === null) return { cursor: 'b', changed: 1, problems: [] }
    begun()
    return new Promise(() => {})
  })
  void dying.tick()
  await hasBegun
  const other = rig.node()
  await other.tick()
  assert.deepEqual(rig.steps, [null, 'b'])
  rig.time.nowMs += LEASE_MS + 1
  await other.tick()
  assert.deepEqual(rig.steps, [null, 'b', 'b'])
  const run = await readUpkeep(rig.documents, LAKE.id)
  assert.deepEqual([run?.changed, run?.finishedAtMs, run?.holder], [2, rig.time.nowMs, null])
})

test('a service that is alone continues at once after a restart', async () => {
  const rig = await fixture()
  let begun = (): void => {}
  const hasBegun = new Promise<void>((resolve) => (begun = resolve))
  const killed = rig.node((cursor) => {
    if (cursor === null) return Promise.resolve({ cursor: 'b', changed: 1, problems: [] })
    begun()
    return new Promise(() => {})
  })
  void killed.tick()
  await hasBegun
  await rig.node().tick()
  assert.deepEqual(rig.steps, [null, 'b', 'b'])
})

test('a step that fails is shown, and repeated later, or at once when somebody asks', async () => {
  const rig = await fixture()
  let isBroken = true
  const { tick, upkeep } = rig.node(async (cursor) => {
    if (cursor !== null && isBroken) throw new Error('the bucket is away')
    return { cursor: cursor === null ? 'b' : null, changed: 1, problems: [{ code: 'file_missing', message: 'gone' }] }
  })
  await tick()
  assert.deepEqual([rig.steps, rig.failures], [[null, 'b'], ['the bucket is away']])
  assert.equal((await readUpkeep(rig.documents, LAKE.id))?.error, 'the bucket is away')
  await tick()
  assert.equal(rig.steps.length, 2)
  rig.time.nowMs += 61_000
  await tick()
  assert.deepEqual(rig.steps, [null, 'b', 'b'])
  isBroken = false
  await upkeep.want(LAKE.id)
  await upkeep.idle()
  await tick()
  // The rest of the run, and the one that was asked for.
  assert.deepEqual(rig.steps.slice(3), ['b', null, 'b'])
  const run = await readUpkeep(rig.documents, LAKE.id)
  assert.deepEqual([run?.error, run?.problems.length, run?.wantedAtMs], [null, 2, null])
})

test('loads whose outcome is recorded are not open any more, even if a process ended before it noted that', async () => {
  const rig = await fixture()
  await openLoad(rig.documents, LAKE.id, 'load_1', NOON)
  await openLoad(rig.documents, LAKE.id, 'load_2', NOON)
  await closeLoad(rig.documents, LAKE.id, 'load_2')
  rig.pending = 1
  const { tick, upkeep } = rig.node()
  await tick()
  assert.deepEqual(await openLoads(rig.documents, LAKE.id), ['load_1'])
  rig.pending = 0
  await upkeep.want(LAKE.id)
  await upkeep.idle()
  assert.deepEqual(await openLoads(rig.documents, LAKE.id), [])
})
