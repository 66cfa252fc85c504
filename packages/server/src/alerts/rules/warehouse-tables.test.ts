import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TableNotice } from '../../store/port/warehouse-tables.ts'
import { DAY_MS } from './rule.ts'
import { warehouseTables } from './warehouse-tables.ts'

const NOW_MS = 30 * DAY_MS
const QUIET = { nowMs: NOW_MS, notices: [] as TableNotice[], isActive: true, pendingNow: 3, reason: null as string | null }
const notice = (kind: TableNotice['kind'], table: string | null, agoMs = 0): TableNotice => ({
  kind,
  table,
  message: `The cause of ${table}.`,
  sinceMs: NOW_MS - agoMs,
  lastMs: NOW_MS - agoMs,
})
const judged = (change: object) => warehouseTables.judge({ ...QUIET, ...change }, {})
const sentence = (change: object): string => warehouseTables.opened('Lake', judged(change).details)

test('tables that cannot be loaded come before limits and tables that were created again', () => {
  assert.equal(judged({}).verdict, 'close')
  assert.equal(judged({ notices: null }).verdict, 'close')
  const all = [notice('recreated', 'shop.a'), notice('limit', 'shop.b'), notice('failing', 'shop.c', 5), notice('failing', 'shop.d')]
  const { verdict, sinceMs, details } = judged({ notices: all })
  assert.deepEqual([verdict, NOW_MS - sinceMs, details['kind'], details['tables']], ['open', 5, 'failing', 2])
  assert.equal(warehouseTables.severity(details), 'critical')
  assert.match(sentence({ notices: all }), /^2 tables of "Lake" cannot be loaded \(shop\.c, shop\.d\): The cause of shop\.c\. /)
  // Nothing is retried any more.
  assert.equal(judged({ notices: all, pendingNow: 0 }).details['kind'], 'limit')
  assert.equal(judged({ notices: all.slice(0, 1) }).details['kind'], 'recreated')
})

test('a limit and a table that was created again are listed for a day', () => {
  assert.equal(judged({ notices: [notice('limit', null, DAY_MS - 1)] }).verdict, 'open')
  assert.equal(judged({ notices: [notice('limit', null, DAY_MS), notice('recreated', 'shop.a', DAY_MS)] }).verdict, 'close')
})

test('a package that is missing is said', () => {
  assert.match(sentence({ reason: 'warehouse_not_installed' }), /switchyard warehouse install/)
  assert.equal(judged({ reason: 'warehouse_not_installed', pendingNow: 0 }).verdict, 'close')
})
