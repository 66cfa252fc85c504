import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { EventCatalog } from '../../observe/event-catalog/event-catalog.ts'
import { routeMessages } from '../../routing/route-messages.ts'
import { accept, STILL, startControl } from '../fixtures/start-control.ts'

const HOUR_MS = 3_600_000
/** Later than the rows of the store, whose times are those of the real clock. */
const NOW_MS = Date.now() + HOUR_MS

async function setUp(t: TestContext) {
  const parts: { catalog?: EventCatalog } = {}
  const { call, store } = await startControl(t, {
    clock: { wallMs: () => NOW_MS, scheduleMs: () => NOW_MS },
    delivery: STILL,
    route: routeMessages,
    flushEvents: async () => parts.catalog?.refresh(),
  })
  const catalog = new EventCatalog({ store, wallMs: () => NOW_MS, onError: assert.ifError, maxEventsPerSource: 6 })
  // It is not closed: every request writes what was counted, and the store is closed before.
  parts.catalog = catalog
  const { body: web } = await call('POST', '/api/sources', { name: 'web' })
  const { body: app } = await call('POST', '/api/sources', { name: 'app' })
  let sent = 0
  async function send(sourceId: string, hoursAgo: number, ...items: JsonObject[]): Promise<void> {
    const batch = items.map((item) => Object.assign(item, { userId: 'u', messageId: `m-${++sent}` }))
    const content = await accept(store, sourceId, batch, {}, { receivedAtMs: NOW_MS - hoursAgo * HOUR_MS })
    catalog.accepted({ sourceId, messages: batch.length, duplicates: 0, bytes: 0, content, repeated: [] })
  }
  async function names(query: string): Promise<string[]> {
    const { status, body } = await call('GET', `/api/events${query}`)
    assert.equal(status, 200, query)
    return body.data.map(({ sourceName, type, event }: Record<string, string | null>) => `${sourceName} ${event ?? type ?? 'other'}`)
  }
  return { call, store, web: web.id as string, app: app.id as string, send, names }
}

const track = (event: string, properties: JsonObject = {}): JsonObject => ({ type: 'track', event, properties })

test('the list is searched, filtered, ordered and read in pages', async (t) => {
  const { call, web, app, send, names } = await setUp(t)
  await send(web, 30, track('Order Completed'), track('Order Completed'), track('Order Completed'), track('100% Done'))
  await send(web, 2, track('Order Refunded'), track('Order Refunded'), { type: 'identify' })
  await send(app, 0, track('Order Completed'))
  assert.deepEqual(await names('?order=lastSeen'), ['app Order Completed', ...(await names(`?order=lastSeen&sourceId=${web}`))])
  assert.equal((await names('?order=lastSeen')).at(0), 'app Order Completed')
  assert.deepEqual((await names('')).slice(0, 2), ['web Order Completed', 'web Order Refunded'])
  assert.deepEqual(await names('?q=oRDER%20C'), ['web Order Completed', 'app Order Completed'])
  assert.deepEqual(await names('?q=%25'), ['web 100% Done'])
  assert.deepEqual(await names('?type=identify'), ['web identify'])
  assert.deepEqual(await names(`?sourceId=${app}`), ['app Order Completed'])
  for (const order of ['count', 'lastSeen']) {
    const all = await names(`?order=${order}`)
    const paged: string[] = []
    for (let cursor = ''; ; ) {
      const { body } = await call('GET', `/api/events?order=${order}&limit=2${cursor}`)
      paged.push(...body.data.map(({ sourceName, type, event }: Record<string, string>) => `${sourceName} ${event ?? type}`))
      if (body.next === null) break
      cursor = `&cursor=${body.next}`
    }
    assert.deepEqual(paged, all)
    assert.equal(all.length, 5)
  }
  const { body } = await call('GET', '/api/events?limit=1')
  const [{ id, firstSeen, lastSeen, hours, ...entry }] = body.data
  assert.match(id, /^src_\w+\.[\w-]{22}$/)
  assert.deepEqual(entry, { sourceId: web, sourceName: 'web', type: 'track', event: 'Order Completed', total: 3, lastDay: 0, lastWeek: 3 })
  assert.deepEqual([firstSeen, lastSeen], Array(2).fill(new Date(NOW_MS - 30 * HOUR_MS).toISOString()))
  assert.deepEqual(hours, Array(24).fill(0))
  const [refunded] = (await call('GET', '/api/events?q=refunded')).body.data
  assert.deepEqual([refunded.hours.at(-3), refunded.lastDay], [2, 2])
  assert.equal((await call('GET', `/api/events?order=lastSeen&cursor=${body.next}`)).body.code, 'invalid_cursor')
  assert.equal((await call('GET', '/api/events?sourceId=src_unknown')).body.code, 'source_not_found')
  const messages = (await call('GET', `/api/messages?sourceId=${web}&event=Order%20Refunded`)).body.data
  assert.deepEqual(
    messages.map(({ event }: JsonObject) => event),
    ['Order Refunded', 'Order Refunded'],
  )
})

test('an event has properties with types and samples, receivers, and its rule in the tracking plan', async (t) => {
  const { call, store, web, send } = await setUp(t)
  const destination = { sourceIds: [web], urls: ['https://example.com/'] }
  const { body: all } = await call('POST', '/api/destinations', { name: 'all', ...destination })
  const { body: large } = await call('POST', '/api/destinations', { name: 'large', ...destination, subscribe: 'properties.total >= 2' })
  const { body: off } = await call('POST', '/api/destinations', { name: 'off', ...destination, enabled: false })
  await send(web, 5, track('Bought', { total: 1, items: [{ sku: 'a' }], to: { city: 'Rome' } }), track('Viewed', { total: 9 }))
  await send(web, 0, track('Bought', { total: 2 }), track('Bought', { total: '3', note: 'x'.repeat(200), ['__proto__']: true }))
  const [{ id }] = (await call('GET', '/api/events?q=bought')).body.data
  const { body } = await call('GET', `/api/events/${id}`)
  assert.deepEqual([body.total, body.examined, body.recentMessages, body.hours.length, body.days.length], [3, 3, 3, 168, 90])
  assert.deepEqual(body.hours.at(-1), { at: new Date(Math.floor(NOW_MS / HOUR_MS) * HOUR_MS).toISOString(), count: 2 })
  const shown = body.properties.map(({ path, types, presence, samples }: JsonObject) => [path, types, presence, samples])
  assert.deepEqual(shown[0], [
    'total',
    [
      { type: 'number', share: 0.6667 },
      { type: 'string', share: 0.3333 },
    ],
    1,
    ['"3"', '2', '1'],
  ])
  assert.deepEqual(
    shown.slice(1).map(([path, types, , samples]: [string, { type: string }[], number, string[]]) => [path, types[0]?.type, samples]),
    [
      ['items', 'array', ['[{"sku":"a"}]']],
      ['to', 'object', []],
      ['items[].sku', 'string', ['"a"']],
      ['to.city', 'string', ['"Rome"']],
      ['note', 'string', [`"${'x'.repeat(99)}…`]],
      ['__proto__', 'boolean', ['true']],
    ],
  )
  const receivers = body.destinations.map(({ destinationId, sent, skips }: JsonObject) => [destinationId, sent, skips])
  const [, , [skip]] = receivers[1]
  assert.deepEqual(receivers[0], [all.id, 3, []])
  assert.deepEqual([receivers[1][0], receivers[1][1], skip.reason, skip.rule, skip.count], [large.id, 1, 'filtered', 'subscribe', 2])
  assert.match(skip.message, /subscribe expression: properties.total >= 2/)
  assert.deepEqual([receivers[2][0], receivers[2][1], receivers[2][2][0].reason], [off.id, 0, 'destination_disabled'])
  assert.equal(body.plan, null)

  const rule = { type: 'track', event: 'Bought', mode: 'observe', owner: 'shop', schema: {} } as const
  await store.resources.createPlan({ name: 'shop plan', unplanned: 'allow', rules: [rule], sourceIds: [web] })
  const planned = (await call('GET', `/api/events/${id}`)).body.plan
  assert.deepEqual([planned.name, planned.rule], ['shop plan', { mode: 'observe', description: null, owner: 'shop' }])
  const [viewed] = (await call('GET', '/api/events?q=viewed')).body.data
  assert.equal((await call('GET', `/api/events/${viewed.id}`)).body.plan.rule, null)
})

test('events beyond the limit are shown as one entry, and unknown ids are not found', async (t) => {
  const { call, web, send, names } = await setUp(t)
  await send(web, 0, ...Array.from({ length: 10 }, (_, at) => track(`E${at}`)))
  await names('')
  const other = (await call('GET', '/api/events')).body.data.find(({ type }: JsonObject) => type === null)
  assert.equal(other.total, 4)
  const { body } = await call('GET', `/api/events/${other.id}`)
  assert.deepEqual([body.total, body.properties, body.destinations, body.event], [4, [], [], null])
  for (const id of [
    `${web}.unknown`,
    'src_unknown.x',
    '__proto__',
    '..%2F',
    'x'.repeat(500),
    '%00.%00',
    `${web}.%00`,
    `${web}.%F0%9F%98%80`,
  ])
    assert.equal((await call('GET', `/api/events/${id}`)).body.code, 'event_not_found', id)
})
