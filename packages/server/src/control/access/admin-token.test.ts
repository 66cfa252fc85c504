import assert from 'node:assert/strict'
import test from 'node:test'
import { startControl } from '../fixtures/start-control.ts'
import { generateToken, hashToken, loadAdminToken, tokenMatches } from './admin-token.ts'

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
  const first = await loadAdminToken(store, null)
  assert.ok(first.generated !== null)
  assert.equal(first.hash, hashToken(first.generated))
  assert.equal(await store.secrets.getOrCreate('admin_token_hash', 'another'), first.hash)
  assert.deepEqual(await loadAdminToken(store, null), { hash: first.hash, generated: null })
})

test('of several that start at once, one makes the token and shows it, and all take it', async (t) => {
  const { store } = await startControl(t)
  const opened = await Promise.all([1, 2, 3].map(() => loadAdminToken(store, null)))
  assert.equal(opened.filter(({ generated }) => generated !== null).length, 1)
  assert.equal(new Set(opened.map(({ hash }) => hash)).size, 1)
})

test('the token of a store from before is taken as it was kept there', async (t) => {
  const { store } = await startControl(t)
  const token = generateToken()
  await store.settings.setSetting('admin_token_hash', hashToken(token))
  assert.deepEqual(await loadAdminToken(store, null), { hash: hashToken(token), generated: null })
})

test('a configured token wins over the generated one, and is not kept', async (t) => {
  const { store } = await startControl(t)
  const { hash } = await loadAdminToken(store, null)
  const configured = await loadAdminToken(store, 'from the environment')
  assert.deepEqual(configured, { hash: hashToken('from the environment'), generated: null })
  assert.equal((await loadAdminToken(store, null)).hash, hash)
})
