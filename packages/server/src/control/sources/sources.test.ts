import assert from 'node:assert/strict'
import test from 'node:test'
import { startControl } from '../fixtures/start-control.ts'
import { generateWriteKey } from './sources.ts'

test('a source is created with defaults and a generated write key', async (t) => {
  const { call, store } = await startControl(t)
  const { status, body } = await call('POST', '/api/sources', { name: 'Shop' })
  assert.equal(status, 201)
  const { id, createdAt, writeKeys, ...rest } = body
  assert.deepEqual(rest, { name: 'Shop', description: null, enabled: true, requireOAuth: false, origin: null, privacy: [], builtIn: false })
  assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000)
  assert.equal(writeKeys.length, 1)
  assert.match(writeKeys[0], /^[A-Za-z0-9_-]{32}$/)
  assert.deepEqual(store.configuration().sources.get(id)?.writeKeys, writeKeys)
  assert.deepEqual((await call('GET', `/api/sources/${id}`)).body, body)
})

test('a source can be created with existing write keys', async (t) => {
  const { call } = await startControl(t)
  const { body } = await call('POST', '/api/sources', {
    name: 'Shop',
    writeKeys: ['old-key', 'older.key'],
    enabled: false,
    requireOAuth: true,
  })
  assert.deepEqual([body.writeKeys, body.enabled, body.requireOAuth], [['old-key', 'older.key'], false, true])
})

test('viewers, who cannot send, see only the ends of write keys: in sources, in the list and in the audit log', async (t) => {
  const { call } = await startControl(t)
  const { token } = (await call('POST', '/api/tokens', { name: 'Vera', role: 'viewer' })).body
  const writeKeys = ['a-long-write-key-1234', 'short-key']
  const { id } = (await call('POST', '/api/sources', { name: 'Shop', writeKeys })).body
  await call('PATCH', `/api/sources/${id}`, { name: 'Store' })
  await call('DELETE', `/api/sources/${id}/write-keys/short-key`)
  const paths = [`/api/sources/${id}`, '/api/sources', '/api/audit']
  for (const path of paths) {
    const { status, body } = await call('GET', path, undefined, { token })
    assert.equal(status, 200)
    assert.doesNotMatch(JSON.stringify(body), /a-long-write|short-key/, path)
    assert.match(JSON.stringify(body), /"…1234"/, path)
    assert.match(JSON.stringify((await call('GET', path)).body), /"a-long-write-key-1234"/, 'admins see them')
  }
  const entries = (await call('GET', '/api/audit', undefined, { token })).body.data as { action: string; after: { writeKeys: string[] } }[]
  assert.deepEqual(entries.find(({ action }) => action === 'source.create')?.after.writeKeys, ['…1234', '…'])
})

test('a change affects only the given fields', async (t) => {
  const { call } = await startControl(t)
  const { body: before } = await call('POST', '/api/sources', { name: 'Shop' })
  const { status, body } = await call('PATCH', `/api/sources/${before.id}`, { name: 'Store' })
  assert.equal(status, 200)
  assert.deepEqual(body, { ...before, name: 'Store' })
  assert.deepEqual((await call('PATCH', `/api/sources/${before.id}`, { enabled: false })).body, { ...body, enabled: false })
  assert.deepEqual((await call('PATCH', `/api/sources/${before.id}`, {})).body, { ...body, enabled: false })
})

test('a deleted source no longer exists', async (t) => {
  const { call } = await startControl(t)
  const { body } = await call('POST', '/api/sources', { name: 'Shop' })
  const deleted = await call('DELETE', `/api/sources/${body.id}`)
  assert.deepEqual([deleted.status, deleted.text], [204, ''])
  for (const [method, sent] of [['GET'], ['PATCH', {}], ['DELETE']] as const) {
    const answer = await call(method, `/api/sources/${body.id}`, sent)
    assert.deepEqual([answer.status, answer.body.code], [404, 'source_not_found'], method)
  }
})

const refused: [title: string, body: unknown, code: string, field: string][] = [
  ['no name', {}, 'invalid_field', 'name'],
  ['an empty name', { name: '' }, 'invalid_field', 'name'],
  ['a blank name', { name: ' ' }, 'invalid_field', 'name'],
  ['a name of 101 characters', { name: 'x'.repeat(101) }, 'invalid_field', 'name'],
  ['a name of several lines', { name: 'a\nb' }, 'invalid_field', 'name'],
  ['a numeric name', { name: 7 }, 'invalid_field', 'name'],
  ['enabled as text', { name: 'x', enabled: 'true' }, 'invalid_field', 'enabled'],
  ['an id of its own', { name: 'x', id: 'mine' }, 'unknown_field', 'id'],
  ['a write key with a colon', { name: 'x', writeKeys: ['a:b'] }, 'invalid_field', 'writeKeys[0]'],
  ['a write key with a space', { name: 'x', writeKeys: ['ok', 'a b'] }, 'invalid_field', 'writeKeys[1]'],
  ['a write key that a path would lose', { name: 'x', writeKeys: ['..'] }, 'invalid_field', 'writeKeys[0]'],
  ['the same write key twice', { name: 'x', writeKeys: ['a', 'a'] }, 'invalid_field', 'writeKeys[1]'],
  ['no write keys at all', { name: 'x', writeKeys: [] }, 'invalid_field', 'writeKeys'],
]
test('an invalid source is rejected', async (t) => {
  const { call, store } = await startControl(t)
  for (const [title, sent, code, field] of refused) {
    await t.test(`refuses ${title}`, async () => {
      const { status, body } = await call('POST', '/api/sources', sent)
      assert.deepEqual([status, body.code, body.field], [400, code, field])
    })
  }
  assert.equal(store.configuration().sources.size, 0)
})

test('write keys are added and removed, but the last one cannot be removed', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop', writeKeys: ['first'] })
  const path = `/api/sources/${source.id}/write-keys`

  const last = await call('DELETE', `${path}/first`)
  assert.deepEqual([last.status, last.body.code], [409, 'last_write_key'])

  const generated = await call('POST', path)
  assert.equal(generated.status, 201)
  assert.match(generated.body.key, /^[A-Za-z0-9_-]{32}$/)
  assert.deepEqual(generated.body.writeKeys, ['first', generated.body.key])
  assert.deepEqual((await call('POST', path, { key: 'x'.repeat(100) })).body.writeKeys.length, 3)

  assert.equal((await call('DELETE', `${path}/first`)).status, 204)
  assert.equal((await call('DELETE', `${path}/${'x'.repeat(100)}`)).status, 204)
  assert.deepEqual((await call('GET', `/api/sources/${source.id}`)).body.writeKeys, [generated.body.key])
  assert.equal((await call('DELETE', `${path}/first`)).body.code, 'write_key_not_found')
  assert.equal((await call('POST', '/api/sources/nobody/write-keys')).body.code, 'source_not_found')
})

test('no two sources share a write key', async (t) => {
  const { call } = await startControl(t)
  const { body: one } = await call('POST', '/api/sources', { name: 'One', writeKeys: ['taken'] })
  const { body: two } = await call('POST', '/api/sources', { name: 'Two' })
  for (const [method, path, sent] of [
    ['POST', '/api/sources', { name: 'Three', writeKeys: ['taken'] }],
    ['PATCH', `/api/sources/${two.id}`, { writeKeys: ['taken'] }],
    ['POST', `/api/sources/${two.id}/write-keys`, { key: 'taken' }],
    ['POST', `/api/sources/${one.id}/write-keys`, { key: 'taken' }],
  ] as const) {
    const { status, body } = await call(method, path, sent)
    assert.deepEqual([status, body.code], [409, 'write_key_taken'], `${method} ${path}`)
  }
})

test('if two sources request the same write key concurrently, one gets it', async (t) => {
  const { call, store } = await startControl(t)
  const asked = ['One', 'Two', 'Three'].map((name) => call('POST', '/api/sources', { name, writeKeys: ['wanted'] }))
  const statuses = (await Promise.all(asked)).map(({ status }) => status)
  assert.deepEqual(
    statuses.sort((a, b) => a - b),
    [201, 409, 409],
  )
  assert.equal(store.configuration().sources.size, 1)
})

test('keys that are added concurrently are all kept', async (t) => {
  const { call } = await startControl(t)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop' })
  const keys = ['a', 'b', 'c', 'd', 'e', 'f']
  await Promise.all(keys.map((key) => call('POST', `/api/sources/${source.id}/write-keys`, { key })))
  assert.deepEqual((await call('GET', `/api/sources/${source.id}`)).body.writeKeys.slice(1).sort(), keys)
})

test('a source has at most a hundred write keys', async (t) => {
  const { call } = await startControl(t)
  const writeKeys = Array.from({ length: 100 }, (_, index) => `key-${index}`)
  const { body: source } = await call('POST', '/api/sources', { name: 'Shop', writeKeys })
  const { status, body } = await call('POST', `/api/sources/${source.id}/write-keys`)
  assert.deepEqual([status, body.code], [409, 'too_many_write_keys'])
})

test('sources are listed oldest first, in pages', async (t) => {
  const { call } = await startControl(t)
  for (const name of ['a', 'b', 'c', 'd', 'e']) await call('POST', '/api/sources', { name })
  const seen: string[] = []
  let path = '/api/sources?limit=2'
  for (;;) {
    const { body } = await call('GET', path)
    assert.ok(body.data.length <= 2)
    seen.push(...body.data.map(({ name }: { name: string }) => name))
    if (body.next === null) break
    path = `/api/sources?limit=2&cursor=${body.next}`
  }
  assert.deepEqual(seen.sort(), ['a', 'b', 'c', 'd', 'e'])
})

test('generated write keys begin with a letter or a digit and differ', () => {
  const keys = Array.from({ length: 500 }, generateWriteKey)
  assert.equal(new Set(keys).size, 500)
  for (const key of keys) assert.match(key, /^[A-Za-z0-9][A-Za-z0-9_-]{31}$/)
})

test('the source system cannot be changed or deleted', async (t) => {
  const { call, store } = await startControl(t)
  await store.resources.ensureSystemSource()
  for (const [method, path, sent] of [
    ['PATCH', '/api/sources/system', { enabled: false }],
    ['DELETE', '/api/sources/system', undefined],
    ['POST', '/api/sources/system/write-keys', {}],
  ] as const) {
    const { status, body } = await call(method, path, sent)
    assert.deepEqual([status, body.code], [409, 'built_in_source'], `${method} ${path}`)
  }
})

test('the list is searched by text, in upper or lower case', async (t) => {
  const { call } = await startControl(t)
  for (const name of ['Web Shop', 'Warehouse']) await call('POST', '/api/sources', { name })
  const found = async (search: string): Promise<string[]> => {
    const { body } = await call('GET', `/api/sources?search=${search}`)
    return body.data.map(({ name }: { name: string }) => name)
  }
  assert.deepEqual(await found('SHOP'), ['Web Shop'])
  assert.deepEqual(await found('w'), ['Web Shop', 'Warehouse'])
  assert.deepEqual(await found('nothing'), [])
})

test('a source has a description of at most 500 characters, by which it is found', async (t) => {
  const { call } = await startControl(t)
  const { body } = await call('POST', '/api/sources', { name: 'Shop', description: 'Orders of the web shop' })
  assert.equal(body.description, 'Orders of the web shop')
  assert.match((await call('GET', '/api/configuration')).body.yaml, /name: Shop\n\s+description: Orders of the web shop\n/)
  const found = async () => (await call('GET', '/api/sources?search=orders%20of')).body.data.length
  assert.equal(await found(), 1)
  const tooLong = await call('PATCH', `/api/sources/${body.id}`, { description: 'x'.repeat(501) })
  assert.deepEqual([tooLong.status, tooLong.body.message], [400, 'description must be at most 500 characters long.'])
  assert.equal((await call('PATCH', `/api/sources/${body.id}`, { description: null })).body.description, null)
  assert.equal(await found(), 0)
})
