import assert from 'node:assert/strict'
import { test } from 'node:test'
import { columnsOf, columnsText, DEFAULT_COLUMNS, labelOf, templateOf, withColumn } from './columns.ts'
import { viewQuery, viewsIn, withView } from './saved-views.ts'

test('columns are read from the address, and anything else is the default', () => {
  assert.deepEqual(columnsOf(null), DEFAULT_COLUMNS)
  assert.deepEqual(columnsOf(',,constructor,<b>'), DEFAULT_COLUMNS)
  assert.deepEqual(columnsOf('received,properties.plan,received'), ['event', 'received', 'properties.plan'])
  assert.equal(columnsText(DEFAULT_COLUMNS), null)
})

test('a column is added at its place and removed', () => {
  const added = withColumn(withColumn(DEFAULT_COLUMNS, 'properties.plan', true), 'messageId', true)
  assert.deepEqual(added, ['received', 'type', 'event', 'user', 'source', 'messageId', 'properties.plan', 'outcome'])
  assert.deepEqual(columnsOf(columnsText(added)), added)
  assert.deepEqual(withColumn(withColumn(added, 'properties.plan', false), 'messageId', false), DEFAULT_COLUMNS)
  assert.equal(labelOf('properties.plan'), 'plan')
  assert.equal(templateOf(['received', 'properties.plan']), '11rem minmax(0, 1fr)')
})

test('views are kept by name, and a damaged storage is an empty list', () => {
  for (const text of [null, '', '{', '7', '[{"name":1}]', '[null]']) assert.deepEqual(viewsIn(text), [])
  const views = withView(withView(withView([], { name: 'b', query: 'x=1' }), { name: 'a', query: '' }), { name: 'b', query: 'x=2' })
  assert.deepEqual(views, [
    { name: 'a', query: '' },
    { name: 'b', query: 'x=2' },
  ])
  assert.deepEqual(viewsIn(JSON.stringify(views)), views)
  assert.equal(
    viewQuery(new URLSearchParams('type=track&other=1&event=&search=a%26b'), ['search', 'type', 'event']),
    'search=a%26b&type=track',
  )
})
