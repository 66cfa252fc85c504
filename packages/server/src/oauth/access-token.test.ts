// Access tokens: which are valid, and for how long. The token endpoint is tested in oauth.test.ts.

import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { test } from 'node:test'
import { newStoreLocation } from '../store/fixtures/test-store.ts'
import { createAccessTokens } from './access-token.ts'
import { ed, KEYS, part, spki, startRig } from './fixtures/token-endpoint.ts'
import { createOAuth } from './oauth.ts'

test('the signing key is stored encrypted and stays the same', async (t) => {
  const place = await newStoreLocation()
  t.after(() => place.remove())
  const clock = { wallMs: () => Date.now(), scheduleMs: () => Date.now() }
  const first = await place.open()
  const app = await first.resources.createOAuthApp({ name: 'a', sourceIds: [], keys: KEYS, revokedBeforeMs: null })
  const token = await createAccessTokens({ store: first, clock }).issue(app, KEYS[0] as (typeof KEYS)[0], 'http://x/oauth2')
  await first.close()
  const stored = (await place.bytes()).toString('latin1')
  assert.match(stored, /secret\.oauth_signing_key.?v1\./)
  assert.doesNotMatch(stored, /PRIVATE KEY/)
  const second = await place.open()
  assert.deepEqual(await createAccessTokens({ store: second, clock }).sourcesOf(token), new Set())
  await second.close()
})

test('a token that was altered or signed with another key is invalid', async (t) => {
  const { token, oauth, assertion, app } = await startRig(t)
  const access = await token()
  const [header, claims, signature] = access.split('.') as [string, string, string]
  const read = (text: string): object => JSON.parse(Buffer.from(text, 'base64url').toString()) as object
  const forged = (change: object, alg: object = {}): string => {
    const input = `${part({ ...read(header), ...alg })}.${part({ ...read(claims), ...change })}`
    return `${input}.${sign(null, Buffer.from(input), ed.privateKey).toString('base64url')}`
  }
  const bad = [
    '',
    'x',
    'x'.repeat(5_000),
    'a.b.c',
    `${header}.${claims}.`,
    `${header}.${part({ ...read(claims), sub: 'app_other' })}.${signature}`,
    `${part({ alg: 'none' })}.${claims}.`,
    `${part({ ...read(header), alg: 'HS256' })}.${claims}.${signature}`,
    forged({}),
    forged({ exp: 9_999_999_999 }),
    // A client assertion is not an access token.
    assertion(),
    assertion({ claims: { aud: 'tracking_api', client_id: app.id } }),
  ]
  for (const text of bad) assert.equal(await oauth.sourcesOf(text), null, text.slice(0, 80))
  assert.notEqual(await oauth.sourcesOf(access), null)
})

test('a token expires after a day', async (t) => {
  const { token, oauth, clock } = await startRig(t)
  const access = await token()
  clock.nowMs += 86_398_000
  assert.notEqual(await oauth.sourcesOf(access), null)
  clock.nowMs += 2_000
  assert.equal(await oauth.sourcesOf(access), null, 'known before')
  const fresh = createOAuth({
    store: (await startRig(t)).store,
    clock: { wallMs: () => clock.nowMs, scheduleMs: () => clock.nowMs },
    requestedOrigin: () => ({ protocol: 'http', host: undefined }),
  })
  assert.equal(await fresh.sourcesOf(access), null, 'from another installation')
})

test('revoked tokens are rejected immediately, and a new one is valid even in the same millisecond', async (t) => {
  const { token, oauth, store, app, clock } = await startRig(t)
  const before = await token()
  assert.notEqual(await oauth.sourcesOf(before), null)
  // As the control API does.
  await store.resources.updateOAuthApp(app.id, { revokedBeforeMs: clock.nowMs + 1 })
  assert.equal(await oauth.sourcesOf(before), null)
  const next = await token()
  assert.notEqual(await oauth.sourcesOf(next), null)
  // Setting the clock back makes no revoked token valid and no valid token invalid.
  clock.nowMs -= 3_600_000
  assert.equal(await oauth.sourcesOf(before), null)
  assert.notEqual(await oauth.sourcesOf(await token()), null)
})

test('a token that was issued while the clock was ahead does not survive a revocation', async (t) => {
  const { token, oauth, store, app, clock } = await startRig(t)
  clock.nowMs += 3_600_000
  const ahead = await token()
  clock.nowMs -= 3_600_000
  await store.resources.updateOAuthApp(app.id, { revokedBeforeMs: clock.nowMs + 1 })
  assert.equal(await oauth.sourcesOf(ahead), null)
})

test('changes of the application and its sources apply to existing tokens', async (t) => {
  const { token, oauth, store, app, sourceId } = await startRig(t)
  const access = await token()
  const other = await store.resources.createSource({ name: 'o', enabled: true, writeKeys: ['o'], requireOAuth: true })
  await store.resources.updateOAuthApp(app.id, { sourceIds: [other.id, sourceId] })
  assert.deepEqual(await oauth.sourcesOf(access), new Set([other.id, sourceId]))
  await store.resources.deleteSource(sourceId)
  assert.deepEqual(await oauth.sourcesOf(access), new Set([other.id]))
  await store.resources.deleteOAuthApp(app.id)
  assert.equal(await oauth.sourcesOf(access), null)
})

test('tokens become invalid when their key is removed, even if another key reuses its id', async (t) => {
  const { token, oauth, store, app } = await startRig(t)
  const [byRsa, byEd] = [
    await token(),
    await token({ header: { alg: 'EdDSA', kid: 'ed' }, signature: (input) => sign(null, Buffer.from(input), ed.privateKey) }),
  ]
  const another = spki(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey)
  await store.resources.updateOAuthApp(app.id, { keys: KEYS.map((key) => (key.id === 'rsa' ? { ...key, publicKeyPem: another } : key)) })
  assert.equal(await oauth.sourcesOf(byRsa), null)
  assert.notEqual(await oauth.sourcesOf(byEd), null)
})

test('a token that was evicted from the cache is verified again', async (t) => {
  const { store, app, clock, sourceId } = await startRig(t)
  const tokens = createAccessTokens({ store, clock: { wallMs: () => clock.nowMs, scheduleMs: () => clock.nowMs }, maxCached: 2 })
  const all = await Promise.all(Array.from({ length: 5 }, () => tokens.issue(app, KEYS[0] as (typeof KEYS)[0], 'http://x/oauth2')))
  for (let round = 0; round < 2; round++) {
    for (const token of all) assert.deepEqual(await tokens.sourcesOf(token), new Set([sourceId]))
  }
})
