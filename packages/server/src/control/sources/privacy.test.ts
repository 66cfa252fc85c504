// The privacy rules of a source in the control API, and their preview.

import assert from 'node:assert/strict'
import test from 'node:test'
import { accept } from '../../store/conformance/fixtures.ts'
import { startControl } from '../fixtures/start-control.ts'

const RULES = [
  { path: 'traits.email', action: 'hash' },
  { path: 'properties.products.*.buyer', action: 'mask' },
]

test('a source has no privacy rules unless they are given', async (t) => {
  const { call } = await startControl(t)
  assert.deepEqual((await call('POST', '/api/sources', { name: 'Shop' })).body.privacy, [])
})

test('privacy rules are saved, replaced and removed, each time with an audit entry', async (t) => {
  const { call, store } = await startControl(t)
  const { body: created, status } = await call('POST', '/api/sources', { name: 'Shop', privacy: RULES })
  assert.deepEqual([status, created.privacy], [201, RULES])
  const path = `/api/sources/${created.id}`
  assert.deepEqual((await call('PATCH', path, { name: 'Store' })).body.privacy, RULES)
  const [first] = RULES
  assert.deepEqual((await call('PATCH', path, { privacy: [first] })).body.privacy, [first])
  assert.deepEqual(store.configuration().sources.get(created.id)?.privacy, [first])
  assert.deepEqual((await call('PATCH', path, { privacy: null })).body.privacy, [])
  const { body: audit } = await call('GET', '/api/audit?action=source.update')
  const [removed] = audit.data
  assert.deepEqual([removed.before.privacy, removed.after.privacy], [[first], []])
})

const refused: [title: string, privacy: unknown, field: string][] = [
  ['an object', {}, 'privacy'],
  ['a rule without a path', [{ action: 'drop' }], 'privacy[0].path'],
  ['an unknown action', [{ path: 'traits.a', action: 'encrypt' }], 'privacy[0].action'],
  ['an unknown field', [{ path: 'traits.a', action: 'drop', salt: 'x' }], 'privacy[0].salt'],
  ['an empty key', [...RULES, { path: 'traits..a', action: 'drop' }], 'privacy[2].path'],
  ['a path that is too long', [{ path: 'a'.repeat(501), action: 'drop' }], 'privacy[0].path'],
  ['a field that the service needs', [{ path: 'messageId', action: 'drop' }], 'privacy[0].path'],
  ['an action that the field does not allow', [{ path: 'userId', action: 'drop' }], 'privacy[0].action'],
  ['the same path twice', [...RULES, { path: 'traits.email', action: 'drop' }], 'privacy[2]'],
  ['101 rules', Array.from({ length: 101 }, (_, nth) => ({ path: `traits.a${nth}`, action: 'drop' })), 'privacy'],
]
for (const [title, privacy, field] of refused) {
  test(`privacy rules are refused: ${title}`, async (t) => {
    const { call } = await startControl(t)
    const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
    for (const answer of [
      await call('POST', '/api/sources', { name: 'Store', privacy }),
      await call('PATCH', `/api/sources/${source.id}`, { privacy }),
      await call('POST', `/api/sources/${source.id}/privacy/preview`, { privacy }),
    ]) {
      assert.deepEqual([answer.status, answer.body.field], [400, field], answer.text)
    }
  })
}

test('a preview shows a given message before and after', async (t) => {
  const { call, store } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop', privacy: RULES })
  const message = { type: 'identify', userId: 'u', messageId: 'm', traits: { email: 'alice@example.com' } }
  const { status, body } = await call('POST', `/api/sources/${source.id}/privacy/preview`, { message })
  assert.equal(status, 200)
  const [{ messageId, before, after }] = body.data
  assert.deepEqual([messageId, before], ['m', message])
  assert.match(after.traits.email, /^[0-9a-f]{64}$/)
  assert.deepEqual(
    body.rules,
    RULES.map((rule, nth) => ({ ...rule, messages: nth === 0 ? 1 : 0 })),
  )
  const dropped = await call('POST', `/api/sources/${source.id}/privacy/preview`, {
    message,
    privacy: [{ path: 'traits', action: 'drop' }],
  })
  assert.deepEqual(dropped.body.data[0].after, { type: 'identify', userId: 'u', messageId: 'm' })
  assert.deepEqual(store.configuration().sources.get(source.id)?.privacy, RULES)
  assert.equal((await call('POST', '/api/sources/nope/privacy/preview', {})).body.code, 'source_not_found')
})

test('a preview without a message uses the newest stored messages of the source', async (t) => {
  const { call, store } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const { body: other } = await call('POST', '/api/sources', { name: 'Other' })
  const message = (nth: number) => ({ type: 'identify', userId: `u${nth}`, messageId: `m${nth}`, traits: { email: `a${nth}` } })
  await accept(store, source.id, [message(1), message(2)], {}, { context: { app: 'x' } })
  await accept(store, other.id, [message(3)])
  const { body } = await call('POST', `/api/sources/${source.id}/privacy/preview`, {
    privacy: [
      { path: 'traits.email', action: 'drop' },
      { path: 'context.app', action: 'drop' },
    ],
  })
  assert.deepEqual(
    body.data.map((each: { messageId: string; before: unknown; after: unknown }) => [each.messageId, each.before, each.after]),
    [2, 1].map((nth) => [
      `m${nth}`,
      { ...message(nth), context: { app: 'x' } },
      { type: 'identify', userId: `u${nth}`, messageId: `m${nth}`, traits: {}, context: {} },
    ]),
  )
  assert.deepEqual(
    body.rules.map(({ messages }: { messages: number }) => messages),
    [2, 2],
  )
  assert.equal((await call('POST', `/api/sources/${source.id}/privacy/preview`, { limit: 1 })).body.data.length, 1)
})

test('a preview that hashes too many values is refused', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const message = { properties: { list: Array.from({ length: 20_001 }, () => 1) } }
  const privacy = [{ path: 'properties.list.*', action: 'hash' }]
  const answer = await call('POST', `/api/sources/${source.id}/privacy/preview`, { message, privacy })
  assert.deepEqual([answer.status, answer.body.field], [400, 'privacy'])
})
