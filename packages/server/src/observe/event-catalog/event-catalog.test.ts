import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, type TestContext, test } from 'node:test'
import { newStoreLocation, ON_POSTGRES, type StoreLocation, type TestStore } from '../../store/fixtures/test-store.ts'
import { type Store, StoreUnavailable } from '../../store/store.ts'
import { AT_MS, accepted } from '../fixtures/events.ts'
import { EventCatalog, type EventCatalogOptions } from './event-catalog.ts'
import {
  countsUntil,
  EVENT_COUNTS,
  EVENT_PROPERTIES,
  type EventCounts,
  type EventProperties,
  eventKey,
  eventKeyPrefix,
  FORGET_AFTER_MS,
  HOUR_MS,
  otherEventsKey,
  sum,
} from './event-documents.ts'

const track = (event: string, properties: object = {}) => ({ type: 'track', userId: 'u', event, properties })

let place: StoreLocation
let store: TestStore
/** The store as another node has it open. Only one process can open a SQLite file, so there it is the same. */
let other: TestStore

before(async () => {
  place = await newStoreLocation()
  store = await place.open()
  other = ON_POSTGRES ? await place.open() : store
})

after(async () => {
  await store.close()
  if (ON_POSTGRES) await other.close()
  await place.remove()
})

async function setUp(t: TestContext) {
  const clock = { nowMs: AT_MS }
  const catalogs: EventCatalog[] = []
  t.after(() => Promise.all(catalogs.map((catalog) => catalog.close())))
  const source = await store.resources.createSource({ name: 'web', enabled: true, writeKeys: [randomUUID()], requireOAuth: false })
  function node(of: Store, options: Partial<EventCatalogOptions> = {}): EventCatalog {
    const onError = (error: unknown) => assert.ok(error instanceof StoreUnavailable)
    const catalog = new EventCatalog({ store: of, wallMs: () => clock.nowMs, flushEveryMs: 3_600_000, onError, ...options })
    catalogs.push(catalog)
    return catalog
  }
  const counts = async (event: string) =>
    (await store.documents.get(EVENT_COUNTS, eventKey(source.id, 'track', event)))?.doc as EventCounts | undefined
  const otherEvents = async () => (await store.documents.get(EVENT_COUNTS, otherEventsKey(source.id)))?.doc as EventCounts
  const send = (to: EventCatalog, ...items: object[]) => to.accepted(accepted(source.id, items))
  const all = (kind: string) => store.documents.list(kind, { prefix: eventKeyPrefix(source.id), order: 'key', limit: 1_000 })
  return { clock, source, node, counts, otherEvents, all, send }
}

test('counts of two nodes add up, and are complete after both have closed', async (t) => {
  const { node, counts, otherEvents, source, send } = await setUp(t)
  // A node knows a source from its configuration.
  if (other !== store)
    await new Promise<void>((resolve) =>
      other.configuration().sources.has(source.id) ? resolve() : other.onConfiguration(() => resolve()),
    )
  const nodes = [node(store), node(other)]
  for (let round = 0; round < 5; round++) {
    for (const each of nodes) send(each, track('A', { total: 1 }), track('A'), track(`B${round}`))
    await Promise.all(nodes.map((each) => each.flush()))
  }
  for (const each of nodes) send(each, track('A', { total: 'x' }))
  await Promise.all(nodes.map((each) => each.close()))
  const a = (await counts('A')) as EventCounts
  assert.equal(a.total, 22)
  assert.deepEqual(countsUntil(a.hours, Math.floor(AT_MS / HOUR_MS), 2), [0, 22])
  assert.equal((await counts('B3'))?.total, 2)
  assert.deepEqual([(await otherEvents()).events, (await otherEvents()).total], [6, 0])
  const { doc } = (await store.documents.get(EVENT_PROPERTIES, eventKey(source.id, 'track', 'A'))) ?? {}
  assert.deepEqual(doc, { examined: 22, properties: [['total', AT_MS, AT_MS, [2, 10, 0, 0, 0, 0]]], other: 0 } satisfies EventProperties)
})

test('an accepted message is counted in a later turn of the event loop', async (t) => {
  const { node, counts, send } = await setUp(t)
  const catalog = node(store)
  let reads = 0
  const item = track('A')
  send(catalog, Object.defineProperty({ ...item }, 'event', { get: () => (reads++, 'A'), enumerable: true }))
  assert.equal(reads, 0)
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(reads > 0)
  await catalog.flush()
  assert.equal((await counts('A'))?.total, 1)
})

test('events beyond the limit of a source are counted as other, until old events are dropped', async (t) => {
  const { node, source, counts, otherEvents, all, clock, send } = await setUp(t)
  const catalog = node(store, { maxEventsPerSource: 2 })
  send(catalog, track('A'), track('B', { a: 1 }), track('C', { secret: 1 }))
  await catalog.flush()
  assert.deepEqual([(await counts('A'))?.total, (await counts('B'))?.total, await counts('C')], [1, 1, undefined])
  send(catalog, track('A'), track('C'), track('C'))
  await catalog.flush()
  assert.equal((await counts('A'))?.total, 2)
  assert.deepEqual([(await otherEvents()).events, (await otherEvents()).total], [2, 3])
  assert.equal((await all(EVENT_PROPERTIES)).length, 2)
  clock.nowMs += FORGET_AFTER_MS + HOUR_MS
  const later = (event: string) => {
    const message = accepted(source.id, [track(event)])
    return { ...message, content: { ...message.content, receivedAtMs: clock.nowMs } }
  }
  catalog.accepted(later('A'))
  await catalog.flush()
  assert.equal(await counts('B'), undefined, 'not seen for 90 days')
  // The source seems to be full: its events are counted again, and the next message finds room.
  clock.nowMs += HOUR_MS
  for (const event of ['D', 'D']) {
    catalog.accepted(later(event))
    await catalog.flush()
  }
  assert.equal((await counts('D'))?.total, 1)
  assert.deepEqual([(await otherEvents()).events, (await otherEvents()).total], [2, 4])
})

test('counts that could not be written are written later', async (t) => {
  const { node, source, counts, all, send } = await setUp(t)
  let problem: Error | null = new StoreUnavailable('the disk is full')
  const documents: Store['documents'] = {
    ...store.documents,
    update: (...args) => (problem === null ? store.documents.update(...args) : Promise.reject(problem)),
  }
  const catalog = node({
    ...store,
    documents,
    configuration: () => store.configuration(),
    onConfiguration: (l) => store.onConfiguration(l),
  })
  send(catalog, track('A', { a: 1 }), ...Array.from({ length: 150 }, (_, at) => track(`B${at}`)))
  await catalog.flush()
  assert.equal(await counts('A'), undefined)
  send(catalog, track('A', { b: 1 }))
  problem = null
  await catalog.flush()
  assert.equal((await counts('A'))?.total, 2)
  assert.equal(sum((await all(EVENT_COUNTS)).map(({ doc }) => (doc as EventCounts).total)), 152)
  const properties = await store.documents.get(EVENT_PROPERTIES, eventKey(source.id, 'track', 'A'))
  assert.deepEqual(
    (properties?.doc as EventProperties | undefined)?.properties.map(([path]) => path),
    ['a', 'b'],
  )
})

test('closing does not wait until thousands of events are written', async (t) => {
  const { node, all, send } = await setUp(t)
  const catalog = node(store, { closeWithinMs: 0 })
  send(catalog, ...Array.from({ length: 1_000 }, (_, at) => track(`E${at}`)))
  await catalog.close()
  assert.ok((await all(EVENT_COUNTS)).length < 1_000)
})

test('deleting a source deletes its events, and what is counted afterwards is not written', async (t) => {
  const { node, source, all, send } = await setUp(t)
  const catalog = node(store)
  send(catalog, track('A', { a: 1 }), { type: 'page', userId: 'u' })
  await catalog.flush()
  await store.resources.deleteSource(source.id)
  send(catalog, track('A'))
  await catalog.flush()
  for (const kind of [EVENT_COUNTS, EVENT_PROPERTIES]) assert.deepEqual(await all(kind), [])
})
