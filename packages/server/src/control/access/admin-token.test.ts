import assert from 'node:assert/strict'
import test from 'node:test'
import { startControl } from '../fixtures/start-control.ts'
import { generateToken, hashToken, loadAdminToken, tokenMatches } from './admin-token.ts'

test('each generated token is new, is valid in a header and matches only its own hash', () => {
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

test('if several nodes start at the same time, one generates and shows the token, and all accept it', async (t) => {
  const { store } = await startControl(t)
  const opened = await Promise.all([1, 2, 3].map(() => loadAdminToken(store, null)))
  assert.equal(opened.filter(({ generated }) => generated !== null).length, 1)
  assert.equal(new Set(opened.map(({ hash }) => hash)).size, 1)
})

test('the token hash that an older version stored is still valid', async (t) => {
  const { store } = await startControl(t)
  const token = generateToken()
  await store.resources.setSetting('admin_token_hash', hashToken(token))
  assert.deepEqual(await loadAdminToken(store, null), { hash: hashToken(token), generated: null })
})

test('a configured token overrides the generated one, and is not stored', async (t) => {
  const { store } = await startControl(t)
  const { hash } = await loadAdminToken(store, null)
  const configured = await loadAdminToken(store, 'from the environment')
  assert.deepEqual(configured, { hash: hashToken('from the environment'), generated: null })
  assert.equal((await loadAdminToken(store, null)).hash, hash)
})
