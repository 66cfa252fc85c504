import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JsonObject, Violation } from '@switchyard/protocol'
import { routeMessages } from '../../routing/route-messages.ts'
import { writeStoredBody } from '../../store/port/stored-messages.ts'
import { startControl } from '../fixtures/start-control.ts'

const violation = (rule: string): Violation => {
  return { rule, code: 'wrong_type', path: 'properties.price', expected: 'a number', found: 'a string' }
}

async function setUp(t: TestContext) {
  const { call, store } = await startControl(t, { route: routeMessages })
  const { body: source } = await call('POST', '/api/sources', { name: 'web' })
  const destination = async (change: JsonObject): Promise<string> => {
    const given = { name: 'hook', urls: ['https://example.com/hook'], sourceIds: [source.id], ...change }
    return (await call('POST', '/api/destinations', given)).body.id as string
  }
  let sent = 0
  /** All messages are quarantined. Returns their ids. */
  async function quarantine(count: number, event = 'Bought', sourceId: string = source.id): Promise<string[]> {
    const rule = `track ${event}`
    const items = Array.from({ length: count }, () => ({ type: 'track', event, userId: 'u', messageId: `m-${++sent}` }))
    const about = { ip: null, browser: false, sentAt: null, context: null, integrations: null, trace: null }
    const violations = Object.fromEntries(items.map((_, index) => [index, [violation(rule)]]))
    const { segment } = await store.ingest.accept({
      content: { sourceId, receivedAtMs: Date.now(), ...about, items, violations },
      body: writeStoredBody({ batch: items }),
      messageIds: items.map(({ messageId }) => messageId),
      routing: routeMessages(store.configuration(), sourceId, { sourceId, receivedAtMs: Date.now(), ...about, items }),
      quarantined: items.map((_, index) => ({ index, planId: 'pln_1', violations: [violation(rule)] })),
    })
    return items.map((_, index) => `${segment}-${index}`)
  }
  const totals = async () => (await call('GET', '/api/stats/totals')).body.data.find((row: JsonObject) => row['sourceId'] === source.id)
  return { call, store, sourceId: source.id as string, destination, quarantine, totals }
}

test('messages in quarantine are listed with their violations, and filtered', async (t) => {
  const { call, sourceId, quarantine } = await setUp(t)
  await quarantine(2)
  const [other] = await quarantine(1, 'Refunded')
  const { body } = await call('GET', `/api/quarantine?sourceId=${sourceId}&plan=pln_1&limit=1`)
  assert.deepEqual([body.data[0].id, body.data[0].rule, body.data[0].planId], [other, 'track Refunded', 'pln_1'])
  assert.deepEqual(body.data[0].violations, [violation('track Refunded')])
  const { body: rest } = await call('GET', `/api/quarantine?source=${sourceId}&plan=pln_1&cursor=${body.next}`)
  assert.deepEqual(
    rest.data.map((each: JsonObject) => each['messageId']),
    ['m-2', 'm-1'],
  )
  assert.equal((await call('GET', '/api/quarantine?rule=track%20Bought')).body.data.length, 2)
  assert.equal((await call('GET', '/api/quarantine?sourceId=src_none')).body.data.length, 0)
  assert.equal((await call('GET', '/api/quarantine?cursor=x')).body.code, 'invalid_cursor')
})

test('released messages are routed by the current settings, and the timeline says so', async (t) => {
  const { call, sourceId, destination, quarantine, totals } = await setUp(t)
  const [first = '', second = ''] = await quarantine(2)
  // Attached after the messages were received.
  const takes = await destination({})
  const denies = await destination({ name: 'picky', filter: { events: { deny: ['Bought'] } } })
  const { body: held } = await call('GET', `/api/messages/${first}`)
  assert.deepEqual([held.quarantine, held.skips[0].reason], [{ state: 'held', at: null }, 'quarantined'])
  assert.deepEqual(held.story.map(({ what, sentence }: JsonObject) => [what, sentence]).slice(1), [
    [
      'quarantined',
      'Put in quarantine: it violates the rule "track Bought" (properties.price: expected a number, found a string). It is not sent until it is released.',
    ],
  ])
  const answer = await call('POST', '/api/quarantine/release', { ids: [first, '7-7'] })
  assert.deepEqual(answer.body, { released: 1, kept: 0, more: false })
  const { body: released } = await call('GET', `/api/messages/${first}`)
  assert.equal(released.quarantine.state, 'released')
  assert.deepEqual(
    released.deliveries.map((each: JsonObject) => [each['destinationId'], each['state'], each['replay']]),
    [[takes, 'pending', false]],
  )
  assert.deepEqual([released.skips[0].destinationId, released.skips[0].rule], [denies, 'event_denied'])
  const kinds = released.story.map(({ what }: JsonObject) => what)
  assert.deepEqual(kinds.slice(0, 3), ['received', 'quarantined', 'released'])
  assert.deepEqual(kinds.slice(3).sort(), ['owed', 'skipped', 'waiting'])
  assert.deepEqual((await call('POST', '/api/quarantine/delete', { ids: [first, second] })).body, { deleted: 1, more: false })
  const { body: deleted } = await call('GET', `/api/messages/${second}`)
  assert.equal(deleted.story.at(-1).sentence, 'Deleted from quarantine. It is not sent.')
  const { quarantined, released: count, deleted: gone } = await totals()
  assert.deepEqual([quarantined, count, gone], [0, 1, 1])
  const { body: audit } = await call('GET', '/api/audit?action=quarantine.release')
  assert.deepEqual([audit.data.length, audit.data[0].after], [1, { messages: 1, ids: [first] }])
  assert.equal((await call('GET', `/api/quarantine?source=${sourceId}`)).body.data.length, 0)
})

test('all messages of a source, or of one rule, leave the quarantine in steps', async (t) => {
  const { call, sourceId, destination, quarantine, totals } = await setUp(t)
  const destinationId = await destination({})
  await quarantine(700)
  await quarantine(3, 'Refunded')
  await quarantine(600)
  const removed = await call('POST', '/api/quarantine/delete', { sourceId, rule: 'track Refunded' })
  assert.deepEqual(removed.body, { deleted: 3, more: false })
  const [one, other] = await Promise.all([1, 2].map(() => call('POST', '/api/quarantine/release', { sourceId })))
  assert.equal(one?.body.released + other?.body.released, 1_300)
  const { body: ledger } = await call('GET', '/api/ledger?recount=true')
  assert.equal(ledger.data.find((row: JsonObject) => row['destinationId'] === destinationId).owed, 1_300)
  const { quarantined, released, deleted } = await totals()
  assert.deepEqual([quarantined, released, deleted], [0, 1_300, 3])
})

test('messages are selected by their messageId too, and the ledger counts those in quarantine beside the deliveries', async (t) => {
  const { call, destination, quarantine } = await setUp(t)
  const destinationId = await destination({})
  const elsewhere = await destination({ name: 'elsewhere', sourceIds: [] })
  const ids = await quarantine(4)
  const ledger = async (): Promise<number[][]> => {
    const { body } = await call('GET', '/api/ledger')
    const rows = [destinationId, elsewhere].map((id) => body.data.find((row: JsonObject) => row['destinationId'] === id))
    return rows.map(({ owed, quarantined }) => [owed, quarantined])
  }
  assert.deepEqual(await ledger(), [
    [0, 4],
    [0, 0],
  ])
  const released = await call('POST', '/api/quarantine/release', { ids: ['m-2', ids[0], 'm-1', 'm-none'] })
  assert.deepEqual(released.body, { released: 2, kept: 0, more: false })
  assert.deepEqual((await call('POST', '/api/quarantine/delete', { ids: ['m-2', 'm-3'] })).body, { deleted: 1, more: false })
  assert.deepEqual(await ledger(), [
    [2, 1],
    [0, 0],
  ])
})

test('messages of a deleted source stay in quarantine, and the answer says why', async (t) => {
  const { call, store, sourceId, destination, quarantine, totals } = await setUp(t)
  const destinationId = await destination({})
  const ids = await quarantine(2)
  await call('DELETE', `/api/sources/${sourceId}`)
  for (const selection of [{ ids }, { sourceId }]) {
    const { status, body } = await call('POST', '/api/quarantine/release', selection)
    assert.deepEqual([status, body.code], [409, 'source_deleted'])
  }
  // The source was deleted by another node a moment ago, and this one does not know yet.
  const routing = { shipments: [{ destinationId, indexes: null }], skips: [] }
  assert.deepEqual(await store.quarantine.release(ids.map((id) => ({ id, routing }))), [])
  assert.equal((await totals()).quarantined, 2)
  const { body: other } = await call('POST', '/api/sources', { name: 'shop' })
  const others = await quarantine(1, 'Bought', other.id)
  assert.deepEqual((await call('POST', '/api/quarantine/release', { ids: [...ids, ...others] })).body, {
    released: 1,
    kept: 2,
    more: false,
  })
  assert.deepEqual((await call('POST', '/api/quarantine/delete', { sourceId })).body, { deleted: 2, more: false })
})

test('a selection that is empty, contradictory or unknown is rejected', async (t) => {
  const { call, sourceId } = await setUp(t)
  const refused = async (body: unknown): Promise<string> => {
    const answer = await call('POST', '/api/quarantine/release', body)
    return `${answer.status} ${answer.body.code} ${answer.body.field}`
  }
  assert.equal(await refused({}), '400 invalid_field sourceId')
  assert.equal(await refused({ ids: [] }), '400 invalid_field ids')
  assert.equal(await refused({ ids: ['1-1'], sourceId }), '400 invalid_field sourceId')
  assert.equal(await refused({ rule: 'page' }), '400 invalid_field sourceId')
  assert.equal(await refused({ source: 'src_none' }), '400 invalid_field sourceId')
  assert.equal(await refused({ source: 'src_none', sourceId }), '400 invalid_field source')
  assert.equal(await refused({ ids: Array.from({ length: 1_001 }, (_, at) => `1-${at}`) }), '400 invalid_field ids')
  assert.deepEqual((await call('POST', '/api/quarantine/release', { source: sourceId })).body, { released: 0, kept: 0, more: false })
  const { body: viewer } = await call('POST', '/api/tokens', { name: 'v', role: 'viewer' })
  assert.equal((await call('POST', '/api/quarantine/delete', { source: sourceId }, { token: viewer.token })).status, 403)
})
