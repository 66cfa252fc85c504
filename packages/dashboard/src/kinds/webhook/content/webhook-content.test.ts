import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Webhook } from '../form/webhook-draft.ts'
import {
  contentChangesOf,
  contentDraftOf,
  contentFieldOf,
  contentProblems,
  EXAMPLE_MAPPING,
  mappingProblem,
  NEW_REQUEST,
  NEW_TRANSFORMATION,
} from './webhook-content.ts'

type Saved = Pick<Webhook, 'request' | 'transformation'>

const CLASSIC: Saved = { request: null, transformation: null }
const SAVED: Saved = {
  request: {
    method: 'PUT',
    path: '/users/{{userId}}',
    headers: { 'X-A': '1' },
    body: { id: { '@path': '$.userId' } },
    format: { wrap: 'items' },
  },
  transformation: { code: 'export default (message) => message', timeoutMs: 50, memoryMb: 8 },
}

test('only what differs from the saved settings is sent', () => {
  for (const saved of [CLASSIC, SAVED]) {
    assert.equal(contentChangesOf(saved, contentDraftOf(saved)), null)
  }
  const draft = contentDraftOf(SAVED)
  assert.deepEqual(contentChangesOf(SAVED, { ...draft, transformation: null }), { transformation: null })
  assert.deepEqual(contentChangesOf(CLASSIC, { ...draft, transformation: null }), { request: SAVED.request })
  const reformatted = {
    ...draft,
    request: { ...(draft.request as NonNullable<typeof draft.request>), body: '{"id":{"@path":"$.userId"}}' },
  }
  assert.equal(contentChangesOf(SAVED, reformatted), null, 'the same mapping, written differently')
  assert.deepEqual(contentChangesOf(CLASSIC, { request: NEW_REQUEST, transformation: NEW_TRANSFORMATION }), {
    request: { method: 'POST', path: '', headers: {}, body: null, format: 'json' },
    transformation: NEW_TRANSFORMATION,
  })
})

test('problems are found at their field', () => {
  assert.deepEqual([...contentProblems({ request: NEW_REQUEST, transformation: NEW_TRANSFORMATION })], [])
  const wrong = {
    request: { ...NEW_REQUEST, path: 'users', headers: [{ name: 'Host', value: '' }], body: '{', format: 'wrap' as const, wrap: '' },
    transformation: { code: ' ', timeoutMs: 0, memoryMb: 65 },
  }
  assert.deepEqual(
    [...contentProblems(wrong).keys()],
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
  const draft = contentDraftOf(SAVED)
  assert.equal(contentFieldOf('transformation.code', draft), 'transformation.code')
  assert.equal(contentFieldOf('request.body.text.@template', draft), 'request.body')
  assert.equal(contentFieldOf('request.headers.X-A', draft), 'request.headers[0].value')
  assert.equal(contentFieldOf('urls[0]', draft), null)
  assert.equal(mappingProblem(EXAMPLE_MAPPING, 'changes.request.body.text.@template', 'No.').line, 3)
})
