// The routes for SQL: which lake a query is for, who may ask, and how faults are answered. Real queries are in e2e/warehouse/sql.test.ts.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ApiError } from '../../errors.ts'
import { MAX_SAVED_QUERIES, readSavedQueries, saveQuery } from '../../store/port/saved-queries.ts'
import { storeSchema } from '../../store/port/warehouse-tables.ts'
import { startControl } from '../fixtures/start-control.ts'
import { startTwoWorlds } from '../fixtures/two-worlds.ts'
import type { LakeQuery } from '../routes/lake-queries.ts'

const SAVED = { query: 'select 1', savedAtMs: 0, savedBy: { id: 'admin', name: 'admin' }, sourceIds: [] }
const EMPTY = { columns: [], rows: [], truncated: false, warnings: [] }

async function start(t: TestContext, run: (query: LakeQuery) => Promise<typeof EMPTY> = async () => EMPTY, lakes = 1) {
  const fixture = await startControl(t, { queries: { run, tables: async () => [] } })
  for (let at = 0; at < lakes; at++) {
    const warehouse = { engine: 'parquet', url: `file:///lake/${at}` }
    const body = { type: 'warehouse', name: `Lake ${at}`, warehouse }
    assert.equal((await fixture.call('POST', '/api/destinations', body)).status, 201)
  }
  return fixture
}

test('each fault of a query has its status and code, with the line and the column', async (t) => {
  let code: 'sql_invalid' | 'sql_too_large' | 'sql_timed_out' | 'sql_cancelled' | 'sql_failed' | 'sql_busy' = 'sql_invalid'
  const { call } = await start(t, async () => {
    throw new ApiError(code, { message: 'The reason is a sentence.', line: 2, column: null })
  })
  for (const [each, expected] of [
    ['sql_invalid', 400],
    ['sql_too_large', 400],
    ['sql_timed_out', 400],
    ['sql_cancelled', 400],
    ['sql_failed', 400],
    ['sql_busy', 503],
  ] as const) {
    code = each
    const { status, body } = await call('POST', '/api/sql', { query: 'select 1' })
    assert.deepEqual([status, body.code, body.line, body.column], [expected, each, 2, null])
  }
})

test('the lake may be left out only if there is exactly one', async (t) => {
  const none = await start(t, undefined, 0)
  assert.equal((await none.call('POST', '/api/sql', { query: 'select 1' })).body.code, 'not_a_lake')
  const two = await start(t, undefined, 2)
  const { status, body } = await two.call('POST', '/api/sql', { query: 'select 1' })
  assert.deepEqual([status, body.code, body.field], [400, 'not_a_lake', 'destinationId'])
  assert.match(body.message, /Lake 0.*Lake 1/)
})

test('without the package, a query is answered with not_installed', async (t) => {
  const { call } = await startControl(t)
  const warehouse = { engine: 'parquet', url: 'file:///lake' }
  await call('POST', '/api/destinations', { type: 'warehouse', name: 'Lake', warehouse })
  const { status, body } = await call('POST', '/api/sql', { query: 'select 1' })
  assert.deepEqual([status, body.code], [409, 'not_installed'])
})

test('queries are saved for a lake, replaced by name, removed, and gone with the lake', async (t) => {
  const { call } = await start(t)
  const { data: lakes } = (await call('GET', '/api/destinations')).body
  const path = `/api/destinations/${lakes[0].id}/queries`
  const saved = (await call('POST', path, { name: 'Days', query: 'select 1' })).body
  assert.deepEqual([saved.name, saved.query, saved.savedBy.id], ['Days', 'select 1', 'admin'])
  const replaced = (await call('POST', path, { name: 'Days', query: 'select 2' })).body
  assert.equal(replaced.id, saved.id)
  await call('POST', path, { name: 'A', query: 'select 3' })
  const { body } = await call('GET', path)
  assert.deepEqual(
    body.data.map(({ name, query }: { name: string; query: string }) => [name, query]),
    [
      ['A', 'select 3'],
      ['Days', 'select 2'],
    ],
  )
  for (const [given, field] of [
    [{ name: ' x', query: 'x' }, 'name'],
    [{ name: '', query: 'x' }, 'name'],
    [{ name: 'x'.repeat(101), query: 'x' }, 'name'],
    [{ name: 'x', query: '' }, 'query'],
    [{ name: 'x', query: 'x'.repeat(10_001) }, 'query'],
  ] as const)
    assert.deepEqual([(await call('POST', path, given)).body.code, (await call('POST', path, given)).body.field], ['invalid_field', field])
  const { status } = await call('DELETE', `${path}/${saved.id}`)
  const again = await call('DELETE', `${path}/${saved.id}`)
  assert.deepEqual([status, again.status, again.body.code], [204, 404, 'saved_query_not_found'])
  assert.equal((await call('DELETE', `${path}/no-id`)).body.code, 'saved_query_not_found')
  const [entry] = (await call('GET', '/api/audit?action=sql.remove')).body.data
  assert.deepEqual([entry.subject, entry.after.name], [lakes[0].id, 'Days'])
  const webhook = (await call('POST', '/api/destinations', { name: 'Hook', urls: ['https://example.com/'] })).body
  assert.equal((await call('GET', `/api/destinations/${webhook.id}/queries`)).body.code, 'not_a_warehouse')
})

test('a query that an earlier build saved, without its sources, is only for callers with all sources', async (t) => {
  const { call, own, store, tokenFor } = await startTwoWorlds(t)
  const lake = { type: 'warehouse', name: 'Lake', warehouse: { engine: 'parquet', url: 'file:///lake' }, sourceIds: [own.source] }
  const { id } = (await call('POST', '/api/destinations', lake)).body
  const path = `/api/destinations/${id}/queries`
  const { sourceIds: _, ...earlier } = SAVED
  for (const name of ['Replaced', 'Removed'])
    assert.notEqual(await saveQuery(store.documents, id, { ...earlier, name } as Parameters<typeof saveQuery>[2], () => true), 'full')
  const token = await tokenFor('editor', [own.source])
  const limited = await call('GET', path, undefined, { token })
  assert.deepEqual([limited.status, limited.body.data], [200, []])
  const { data } = (await call('GET', path)).body
  assert.deepEqual(
    data.map(({ name }: { name: string }) => name),
    ['Removed', 'Replaced'],
  )
  const query = { name: 'Replaced', query: "select 'new'" }
  assert.equal((await call('POST', path, query, { token })).body.code, 'saved_query_name_taken')
  assert.equal((await call('DELETE', `${path}/${data[0].id}`, undefined, { token })).body.code, 'saved_query_not_found')
  assert.deepEqual([(await call('POST', path, query)).status, (await call('DELETE', `${path}/${data[0].id}`)).status], [200, 204])
  assert.equal((await call('GET', path, undefined, { token })).body.data.length, 1, 'its sources are known now')
  const actions = (await call('GET', '/api/audit?limit=100', undefined, { token })).body.data.map(
    ({ action }: { action: string }) => action,
  )
  assert.deepEqual(
    actions.filter((action: string) => action.startsWith('sql.')),
    [],
    'the audit log has the text before',
  )
})

test('a lake has at most 200 saved queries, and one of them can still be replaced', async (t) => {
  const { call, store } = await start(t)
  const { data: lakes } = (await call('GET', '/api/destinations')).body
  const { id } = lakes[0]
  for (let at = 0; at < MAX_SAVED_QUERIES; at++) await saveQuery(store.documents, id, { ...SAVED, name: `q${at}` }, () => true)
  const { status, body } = await call('POST', `/api/destinations/${id}/queries`, { name: 'one more', query: 'select 1' })
  assert.deepEqual([status, body.code], [409, 'too_many_saved_queries'])
  assert.equal((await call('POST', `/api/destinations/${id}/queries`, { name: 'q7', query: 'select 2' })).status, 200)
  await call('DELETE', `/api/destinations/${id}`)
  assert.deepEqual(await readSavedQueries(store.documents, id), [])
})

test('a query that was saved when the lake had more sources is hidden from callers who do not have them', async (t) => {
  const { call, own, other, store, tokenFor } = await startTwoWorlds(t)
  const warehouse = { engine: 'parquet', url: 'file:///lake' }
  const lake = { type: 'warehouse', name: 'Lake', warehouse, sourceIds: [own.source, other.source] }
  const { id } = (await call('POST', '/api/destinations', lake)).body
  const path = `/api/destinations/${id}/queries`
  const token = await tokenFor('editor', [own.source])
  const namesOf = async (options?: { token: string }): Promise<string[]> =>
    (await call('GET', path, undefined, options)).body.data.map(({ name }: { name: string }) => name)
  const wide = (await call('POST', path, { name: 'Wide', query: "select 'zebra'" })).body
  assert.equal((await call('GET', path, undefined, { token })).body.code, 'shared_destination')
  await call('PATCH', `/api/destinations/${id}`, { sourceIds: [own.source] })
  assert.deepEqual(await namesOf({ token }), [])
  const save = (name: string, by?: { token: string }) => call('POST', path, { name, query: 'select 1' }, by)
  const taken = await save('Wide', { token })
  assert.deepEqual([taken.status, taken.body.code], [409, 'saved_query_name_taken'])
  assert.equal((await call('DELETE', `${path}/${wide.id}`, undefined, { token })).body.code, 'saved_query_not_found')
  assert.equal((await save('Mine', { token })).status, 200)
  assert.equal((await save('Of the lake')).status, 200)
  assert.deepEqual(await namesOf({ token }), ['Mine', 'Of the lake'])
  // Tables of a source that the lake had before are still there, so a caller with all sources may have written about them.
  const about = { destinationId: id, sourceId: other.source }
  assert.ok(await storeSchema(store.documents, about, 0, { name: 'zebra', revision: 1, tables: [{ table: 'tracks', columns: [] }] }, 1))
  assert.equal((await save('Of the lake')).status, 200)
  assert.equal((await save('Mine too', { token })).status, 200)
  assert.deepEqual(await namesOf({ token }), ['Mine', 'Mine too'])
  assert.deepEqual(await namesOf(), ['Mine', 'Mine too', 'Of the lake', 'Wide'])
  const tables = async (options?: { token: string }) => (await call('GET', `/api/destinations/${id}/tables`, undefined, options)).body.data
  assert.deepEqual([(await tables({ token })).length, (await tables()).length], [0, 1])
  await call('POST', '/api/sql', { destinationId: id, query: "select 'zebra' from zebra.tracks" })
  await call('POST', '/api/sql', { destinationId: id, query: "select 'gnu'" }, { token })
  const audit = (await call('GET', '/api/audit?limit=100', undefined, { token })).text
  assert.ok(audit.includes('gnu'))
  assert.ok(!audit.includes('zebra') && audit.includes('Mine too'), 'nor does the audit log show them')
})
