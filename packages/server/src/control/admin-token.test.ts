import assert from 'node:assert/strict'
import test from 'node:test'
import { generateToken, hashToken, openAdminToken, tokenMatches } from './admin-token.ts'
import { startControl } from './fixtures/start-control.ts'

test('a generated token is new each time, fits a header and matches its own hash alone', () => {
  const [token, other] = [generateToken(), generateToken()]
  assert.match(token, /^sy_[A-Za-z0-9_-]{43}$/)
  assert.notEqual(token, other)
  assert.ok(tokenMatches(token, hashToken(token)))
  assert.ok(!tokenMatches(other, hashToken(token)))
  assert.ok(!tokenMatches('', hashToken(token)))
  assert.ok(!tokenMatches(token, 'not a hash'))
})

test('the admin token is generated once, shown once, and kept only as a hash', async (t) => {
  const { store } = await startControl(t)
  const first = await openAdminToken(store.control, null)
  assert.ok(first.generated !== null)
  assert.equal(first.hash, hashToken(first.generated))
  assert.equal(await store.control.getSetting('admin_token_hash'), first.hash)
  assert.deepEqual(await openAdminToken(store.control, null), { hash: first.hash, generated: null })
})

test('a configured token wins over the generated one, and is not kept', async (t) => {
  const { store } = await startControl(t)
  const { hash } = await openAdminToken(store.control, null)
  const configured = await openAdminToken(store.control, 'from the environment')
  assert.deepEqual(configured, { hash: hashToken('from the environment'), generated: null })
  assert.equal(await store.control.getSetting('admin_token_hash'), hash)
})
