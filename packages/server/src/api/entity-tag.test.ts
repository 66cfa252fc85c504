import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entityTag, isNamedIn } from './entity-tag.ts'

test('the tag is the same for the same content, in whatever order, and another for any other content', () => {
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

test('If-Match names one tag, several, or any', () => {
  for (const header of ['"a"', '"b", "a"', 'W/"a"', '*', ' "a" ']) assert.ok(isNamedIn(header, '"a"'), header)
  for (const header of ['', '"b"', 'a', '"a']) assert.ok(!isNamedIn(header, '"a"'), header)
})
