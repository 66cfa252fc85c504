// The routes for SQL: which lake a query is for, who may ask, and how faults are answered. Real queries are in e2e/warehouse/sql.test.ts.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ApiError } from '../../errors.ts'
import { startControl } from '../fixtures/start-control.ts'
import type { LakeQuery } from '../routes/lake-queries.ts'

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
