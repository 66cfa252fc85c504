// The comparison of requests with published facts notices each kind of difference.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GatewayRequest } from '../gateway/recording-gateway.ts'
import type { PublishedRequest } from './facts/published-fact.ts'
import { requestDifferences } from './request-differences.ts'

const PUBLISHED: PublishedRequest = {
  request: 'POST https://api.example.com/events?key=1',
  headers: { Authorization: 'Bearer token' },
  body: { user: 'u-1', events: [{ name: 'Tested' }] },
}

function arrived(body: unknown, change: Partial<GatewayRequest> = {}): GatewayRequest {
  const text = JSON.stringify(body)
  const headers = { authorization: 'Bearer token', 'content-type': 'application/json' }
  const request = { number: 1, method: 'POST', host: 'api.example.com', path: '/events?key=1', headers, body: text }
  return { ...request, bytes: Buffer.from(text), ...change }
}

const BODY = { events: [{ name: 'Tested' }], user: 'u-1' }

test('the same request, with the fields of the body in another order: no difference', () => {
  assert.deepEqual(requestDifferences([PUBLISHED], [arrived(BODY)]), [])
})

for (const [what, requests] of [
  ['no request', []],
  ['another method', [arrived(BODY, { method: 'PUT' })]],
  ['another query', [arrived(BODY, { path: '/events?key=2' })]],
  ['another host', [arrived(BODY, { host: 'example.com' })]],
  ['another header', [arrived(BODY, { headers: { authorization: 'Bearer other' } })]],
  ['a missing field', [arrived({ events: BODY.events })]],
  ['a further field', [arrived({ ...BODY, more: true })]],
] as const)
  test(`${what}: the published request is missing`, () => {
    assert.match(requestDifferences([PUBLISHED], requests)[0] ?? '', /^missing: /)
  })

test('a second request that is not published is a difference', () => {
  const differences = requestDifferences([PUBLISHED], [arrived(BODY), arrived({ other: 1 })])
  assert.deepEqual(differences, ['not published: POST https://api.example.com/events?key=1 {"other":1}'])
})

test('a part of a body: other fields may be there, but lists have the same length', () => {
  const { body: _, ...rest } = PUBLISHED
  const published = { ...rest, partOfBody: { events: [{ name: 'Tested' }] } }
  assert.deepEqual(requestDifferences([published], [arrived({ ...BODY, more: true })]), [])
  assert.equal(requestDifferences([published], [arrived({ ...BODY, events: [] })]).length, 2)
})

test('a part of a query, and the fields of a form', () => {
  const form = { bytes: Buffer.from('a=1&b=x%20y'), headers: { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' } }
  const published = { request: 'POST https://api.example.com/events', partOfQuery: { key: '1' }, body: { a: '1', b: 'x y' } }
  assert.deepEqual(requestDifferences([published], [arrived('', form)]), [])
  assert.equal(requestDifferences([{ ...published, partOfQuery: { key: '2' } }], [arrived('', form)]).length, 2)
})
