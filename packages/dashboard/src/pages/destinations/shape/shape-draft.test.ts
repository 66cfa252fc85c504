import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  EXAMPLE_MAPPING,
  isShapeChanged,
  mappingProblem,
  NEW_REQUEST,
  NEW_TRANSFORMATION,
  type Shape,
  shapeChangesOf,
  shapeDraftOf,
  shapeFieldOf,
  shapeProblems,
} from './shape-draft.ts'

const CLASSIC: Shape = { request: null, transformation: null, subscriptions: null }
const SAVED: Shape = {
  request: {
    method: 'PUT',
    path: '/users/{{userId}}',
    headers: { 'X-A': '1' },
    body: { id: { '@path': '$.userId' } },
    format: { wrap: 'items' },
  },
  transformation: { code: 'export default (message) => message', timeoutMs: 50, memoryMb: 8 },
  subscriptions: null,
}

test('only what differs from the saved settings is sent', () => {
  for (const saved of [CLASSIC, SAVED]) {
    assert.equal(shapeChangesOf(saved, shapeDraftOf(saved)), null)
    assert.equal(isShapeChanged(saved, shapeDraftOf(saved)), false)
  }
  const draft = shapeDraftOf(SAVED)
  assert.deepEqual(shapeChangesOf(SAVED, { ...draft, transformation: null }), { transformation: null })
  assert.deepEqual(shapeChangesOf(CLASSIC, { ...draft, transformation: null }), { request: SAVED.request })
  const reformatted = {
    ...draft,
    request: { ...(draft.request as NonNullable<typeof draft.request>), body: '{"id":{"@path":"$.userId"}}' },
  }
  assert.equal(shapeChangesOf(SAVED, reformatted), null, 'the same mapping, written differently')
  assert.deepEqual(shapeChangesOf(CLASSIC, { request: NEW_REQUEST, transformation: NEW_TRANSFORMATION, subscriptions: null }), {
    request: { method: 'POST', path: '', headers: {}, body: null, format: 'json' },
    transformation: NEW_TRANSFORMATION,
  })
})

test('problems are found at their field', () => {
  assert.deepEqual([...shapeProblems({ request: NEW_REQUEST, transformation: NEW_TRANSFORMATION, subscriptions: null })], [])
  const wrong = {
    request: { ...NEW_REQUEST, path: 'users', headers: [{ name: 'Host', value: '' }], body: '{', format: 'wrap' as const, wrap: '' },
    transformation: { code: ' ', timeoutMs: 0, memoryMb: 65 },
    subscriptions: null,
  }
  assert.deepEqual(
    [...shapeProblems(wrong).keys()],
    [
      'request.path',
      'request.headers[0].name',
      'request.body',
      'request.format.wrap',
      'transformation.code',
      'transformation.timeoutMs',
      'transformation.memoryMb',
    ],
  )
})

test('an error of the API is shown at its field, and in the mapping at its line', () => {
  const draft = shapeDraftOf(SAVED)
  assert.equal(shapeFieldOf('changes.transformation.code', draft), 'transformation.code')
  assert.equal(shapeFieldOf('request.body.text.@template', draft), 'request.body')
  assert.equal(shapeFieldOf('request.headers.X-A', draft), 'request.headers[0].value')
  assert.equal(shapeFieldOf('urls[0]', draft), null)
  assert.equal(mappingProblem(EXAMPLE_MAPPING, 'changes.request.body.text.@template', 'No.').line, 3)
})
