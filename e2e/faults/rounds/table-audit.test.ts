// What the audit of tables finds, given the ids of the rows of two tables.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FinalState } from '../system/destinations.ts'
import { auditTables } from './table-audit.ts'

const OWED = new Map<string, FinalState>([
  ['a', 'delivered'],
  ['b', 'delivered'],
  ['c', 'failed'],
])
const SENT = new Set(['a', 'b', 'c', 'd'])
const audit = (tracks: string, orders = 'ab'): ReturnType<typeof auditTables> =>
  auditTables(
    OWED,
    SENT,
    new Map([
      ['tracks', tracks.split('')],
      ['orders', orders.split('')],
    ]),
  )

test('each delivered message once in each table is right, even if other sent messages are there once', () => {
  for (const tracks of ['ab', 'abc', 'abd'])
    assert.deepEqual(audit(tracks), { checked: 4, missing: new Set(), wrong: 0, problems: [] }, tracks)
})

test('missing, repeated and foreign rows are found, each in its table', () => {
  assert.deepEqual(audit('a'), {
    checked: 4,
    missing: new Set(['b']),
    wrong: 1,
    problems: ['table tracks: 1 acknowledged messages have no row: b'],
  })
  assert.deepEqual(audit('ab', 'abab').problems, ['table orders: 2 messages have more than one row: a,b'])
  assert.deepEqual(audit('abcc').problems, ['table tracks: 1 messages have more than one row: c'])
  assert.deepEqual(audit('abx').problems, ['table tracks: 1 rows are of messages that were never sent: x'])
  assert.equal(audit('aax', 'b').wrong, 4)
})
