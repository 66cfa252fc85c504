import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entityTag, isNamedIn } from './entity-tag.ts'

test('equal content has the same tag, regardless of the order of fields; other content has another tag', () => {
  const tag = entityTag({ id: 'a', list: [1, 2], inner: { x: null, y: '' } })
  assert.match(tag, /^"[\w-]{22}"$/)
  assert.equal(entityTag(JSON.parse('{"inner":{"y":"","x":null},"list":[1,2],"id":"a"}')), tag)
  for (const other of [
    { id: 'a', list: [2, 1], inner: { x: null, y: '' } },
    { id: 'a', list: [1, 2], inner: { x: '', y: null } },
    { id: 'a', list: [1, 2], inner: { x: null } },
    {
      id: 'a',
      list: [1, 2],
      inner: [
        ['x', null],
        ['y', ''],
      ],
    },
  ])
    assert.notEqual(entityTag(other), tag)
})

test('If-Match can contain one tag, several tags, or *', () => {
  for (const header of ['"a"', '"b", "a"', 'W/"a"', '*', ' "a" ']) assert.ok(isNamedIn(header, '"a"'), header)
  for (const header of ['', '"b"', 'a', '"a']) assert.ok(!isNamedIn(header, '"a"'), header)
})
