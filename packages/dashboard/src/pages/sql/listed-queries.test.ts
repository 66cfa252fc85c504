import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listedQueries, openedQuery } from './listed-queries.ts'

const STORED = [
  { id: 'qry_1', name: 'Days', query: 'select 1' },
  { id: 'qry_2', name: 'Users', query: 'select 2' },
]
const OWN = [
  { name: 'Days', query: 'select 3' },
  { name: 'Old', query: 'select 4' },
]

test('queries of the lake and of this browser are listed, also if they have the same name', () => {
  const listed = listedQueries(STORED, OWN, true)
  assert.deepEqual(
    listed.map(({ label, query, id }) => [label, query, id]),
    [
      ['Days', 'select 1', 'qry_1'],
      ['Users', 'select 2', 'qry_2'],
      ['Days (only in this browser)', 'select 3', null],
      ['Old (only in this browser)', 'select 4', null],
    ],
  )
  assert.equal(new Set(listed.map(({ key }) => key)).size, 4)
  for (const each of listed) assert.equal(openedQuery(listed, each.key, each.name), each)
})

test('if the name was typed, the first query with this name is the opened one', () => {
  const listed = listedQueries(STORED, OWN, true)
  const opened = (key: string | null, name: string) => openedQuery(listed, key, name)?.query
  assert.deepEqual([opened(null, 'Days'), opened('browser Old', 'Days'), opened(null, 'Old')], ['select 1', 'select 1', 'select 4'])
  assert.deepEqual([opened(null, ''), opened('browser Old', 'New')], [undefined, undefined])
})

test('without access to all sources of the lake, all queries are in this browser', () => {
  assert.deepEqual(
    listedQueries([], OWN, false).map(({ label }) => label),
    ['Days', 'Old'],
  )
})
