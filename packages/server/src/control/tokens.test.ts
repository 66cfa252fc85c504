import assert from 'node:assert/strict'
import test from 'node:test'
import { startControl } from './fixtures/start-control.ts'
import { generateToken, hashToken, openAdminToken, tokenMatches } from './tokens.ts'

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
  assert.deepEqual(await first.authorize(first.generated), { role: 'admin' })
  assert.equal(await first.authorize('another'), null)
  const kept = await store.control.getSetting('admin_token_hash')
  assert.equal(kept, hashToken(first.generated))

  const second = await openAdminToken(store.control, null)
  assert.equal(second.generated, null)
  assert.deepEqual(await second.authorize(first.generated), { role: 'admin' })
})

test('a configured token wins over the generated one, and is not kept', async (t) => {
  const { store } = await startControl(t)
  const { generated } = await openAdminToken(store.control, null)
  const configured = await openAdminToken(store.control, 'from the environment')
  assert.equal(configured.generated, null)
  assert.deepEqual(await configured.authorize('from the environment'), { role: 'admin' })
  assert.equal(await configured.authorize(generated ?? ''), null)
  assert.equal(await store.control.getSetting('admin_token_hash'), hashToken(generated ?? ''))
})
