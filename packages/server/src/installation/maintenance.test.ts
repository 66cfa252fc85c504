// Key rotation with real stores and killed processes: whenever it is interrupted, the next start can open the store.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { loadAdminToken } from '../control/access/admin-token.ts'
import { createAccess } from '../control/access/authorize.ts'
import { Sessions } from '../control/access/sessions.ts'
import { asWebhook } from '../destinations/fixtures/webhook.ts'
import { createAccessTokens } from '../oauth/access-token.ts'
import { createSecretBox } from '../secrets/secret-box.ts'
import { openWithKeyFile } from '../secrets/secret-key-file.ts'
import { createSqliteStore, type SqliteStore } from '../store/sqlite/store.ts'
import { CLASSIC_WEBHOOK, NO_FILTER } from '../store/store.ts'
import { MaintenanceProblem, type RotateOptions, type RotateStep, rotateSecretKey } from './maintenance.ts'

const open = (path: string, key: string): Promise<SqliteStore> =>
  createSqliteStore({ path, secretBox: createSecretBox(key), retentionDays: 7 })
const openWithFile = (path: string): Promise<SqliteStore> => openWithKeyFile(path, (key) => open(path, key))

function newPath(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-rotate-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'switchyard.db')
}

const SECRETS = {
  sharedSecret: 'SECRET-shared',
  signingSecrets: ['SECRET-one', 'SECRET-two'],
  urls: ['https://example.com/?code=SECRET-query'],
  headers: { Authorization: 'SECRET-header' },
}

async function fill(store: SqliteStore): Promise<void> {
  await store.resources.createDestination({
    ...CLASSIC_WEBHOOK,
    type: 'webhook',
    name: 'a destination',
    enabled: true,
    paused: false,
    sourceIds: [],
    ...SECRETS,
    batch: { size: 1, bytes: 500_000, lingerMs: 0 },
    timeoutMs: 5_000,
    retryWindowMs: 14_400_000,
    maxInFlight: 10,
    historical: true,
    filter: NO_FILTER,
  })
  await store.secrets.getOrCreate('pseudonym_key', 'SECRET-kept')
  await store.close()
}

async function assertWhole(store: SqliteStore): Promise<void> {
  const [destination] = [...store.configuration().destinations.values()]
  const kept = await store.secrets.getOrCreate('pseudonym_key', 'another')
  await store.close()
  const { sharedSecret, signingSecrets, urls, headers } = asWebhook(destination)
  assert.deepEqual([{ sharedSecret, signingSecrets, urls, headers }, kept], [SECRETS, 'SECRET-kept'])
}

const keyOf = (path: string): string => readFileSync(`${path}.key`, 'utf8').trim()
const rotate = (path: string, options: Partial<RotateOptions> = {}) =>
  rotateSecretKey({ store: { kind: 'sqlite', path }, oldKey: null, newKey: null, ...options })

test('a new key replaces the old one in the file and decrypts everything', async (t) => {
  const path = newPath(t)
  await fill(await openWithFile(path))
  const before = keyOf(path)
  assert.deepEqual(await rotate(path), { secrets: 6, keyFile: `${path}.key` })
  assert.notEqual(keyOf(path), before)
  assert.equal(statSync(`${path}.key`).mode & 0o777, 0o600)
  await assert.rejects(open(path, before), { name: 'SecretBoxError' })
  const reopened = await openWithFile(path)
  const { data } = await reopened.history.audit({ action: 'secret-key.rotate' }, { limit: 10, cursor: null })
  assert.deepEqual(
    data.map(({ actor, after }) => [actor.id, after]),
    [['maintenance', { secrets: 6, endTokens: false }]],
  )
  await assertWhole(reopened)
  const stored = Buffer.concat(['', '-wal'].map((end) => readIfThere(path + end)))
  for (const text of [createSecretBox(before).keyId, 'SECRET-'])
    assert.equal(stored.indexOf(text), -1, 'no text encrypted with the old key is left')
})

test('a key from the environment is replaced by the given one, and no file is created', async (t) => {
  const path = newPath(t)
  await fill(await open(path, 'old key'))
  assert.deepEqual(await rotate(path, { oldKey: 'old key', newKey: 'new key' }), { secrets: 6, keyFile: null })
  assert.ok(!readdirSync(join(path, '..')).some((name) => name.includes('.key')))
  await assertWhole(await open(path, 'new key'))
})

const STEPS: { step: RotateStep; changed: boolean }[] = [
  { step: 'opened', changed: false },
  { step: 'key written', changed: false },
  { step: 'resealed', changed: true },
  { step: 'key adopted', changed: true },
]
for (const { step, changed } of STEPS) {
  test(`killed after "${step}", the store opens at the next start with the ${changed ? 'new' : 'old'} key`, async (t) => {
    const path = newPath(t)
    await fill(await openWithFile(path))
    const before = keyOf(path)
    const program = `import(${JSON.stringify(new URL('./maintenance.ts', import.meta.url).href)}).then(({ rotateSecretKey }) =>
      rotateSecretKey({
        store: { kind: 'sqlite', path: ${JSON.stringify(path)} }, oldKey: null, newKey: null,
        onStep: (step) => step === ${JSON.stringify(step)} && process.kill(process.pid, 'SIGKILL'),
      }))`
    const child = spawn(process.execPath, ['-e', program], { stdio: 'inherit' })
    const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
    assert.equal(signal, 'SIGKILL')
    await assertWhole(await openWithFile(path))
    assert.equal(keyOf(path) !== before, changed)
    assert.ok(!readdirSync(join(path, '..')).includes('switchyard.db.key.new'))
    // A second rotation works from any of these states.
    assert.equal((await rotate(path)).secrets, 6)
    await assertWhole(await openWithFile(path))
  })
}

test('if a step fails, the old key stays in use, and the error explains why', async (t) => {
  const path = newPath(t)
  await fill(await openWithFile(path))
  const before = keyOf(path)
  const onStep = (step: RotateStep): void => {
    // The next key cannot be written if there is a folder at its path.
    if (step === 'opened') mkdirSync(`${path}.key.new`)
  }
  await assert.rejects(
    rotate(path, { onStep }),
    (error: Error) => error instanceof MaintenanceProblem && /Cannot use .*key\.new/.test(error.message),
  )
  rmSync(`${path}.key.new`, { recursive: true })
  assert.equal(keyOf(path), before)
  await assertWhole(await openWithFile(path))
})

test('the current key is rejected as the new key', async (t) => {
  const path = newPath(t)
  await fill(await openWithFile(path))
  await assert.rejects(
    rotate(path, { newKey: keyOf(path) }),
    (error: Error) => error instanceof MaintenanceProblem && /is the same as the current one/.test(error.message),
  )
  await assertWhole(await openWithFile(path))
})

test('access tokens survive a rotation unless endTokens is set', async (t) => {
  const path = newPath(t)
  const clock = { wallMs: () => Date.now(), scheduleMs: () => Date.now() }
  const publicKeyPem = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const key = { id: 'k', publicKeyPem, createdAtMs: 0 }
  const store = await openWithFile(path)
  const app = await store.resources.createOAuthApp({ name: 'a', sourceIds: [], keys: [key], revokedBeforeMs: null })
  const token = await createAccessTokens({ store, clock }).issue(app, key, 'http://x/oauth2')
  await fill(store)
  for (const [endTokens, isGood] of [
    [false, true],
    [true, false],
  ] as const) {
    await rotate(path, { endTokens })
    const reopened = await openWithFile(path)
    const tokens = createAccessTokens({ store: reopened, clock })
    const next = await tokens.issue(app, key, 'http://x/oauth2')
    const sources = [await tokens.sourcesOf(token), await tokens.sourcesOf(next)]
    await assertWhole(reopened)
    assert.deepEqual(sources, [isGood ? new Set() : null, new Set()])
  }
})

test('sessions, even forged ones, survive a rotation unless --end-tokens is given; control tokens stay valid', async (t) => {
  const path = newPath(t)
  const clock = { wallMs: () => Date.now(), scheduleMs: () => Date.now() }
  const store = await openWithFile(path)
  const admin = await loadAdminToken(store, null)
  // Anyone with a copy of the store and its key can do this.
  const copied = await store.secrets.getOrCreate('session_key', 'a first key')
  const forged = new Sessions(copied).issue({ tokenId: 'admin', expiresAtMs: Date.now() + 3_600_000 }, admin.hash)
  await store.secrets.getOrCreate('first_write_key', 'a-write-key')
  await fill(store)
  for (const endTokens of [false, true]) {
    await rotate(path, { endTokens })
    const reopened = await openWithFile(path)
    const access = await createAccess({ store: reopened, clock, admin: await loadAdminToken(reopened, null) })
    const allows = (headers: Record<string, string>): Promise<boolean> =>
      access.allows({ method: 'GET', headers, socket: { remoteAddress: '127.0.0.1' } } as unknown as IncomingMessage)
    const allowed = [await allows({ cookie: `switchyard_session=${forged}` }), await allows({ authorization: `Bearer ${admin.generated}` })]
    const firstWriteKey = await reopened.secrets.getOrCreate('first_write_key', 'another')
    await assertWhole(reopened)
    assert.deepEqual([...allowed, firstWriteKey], [!endTokens, true, endTokens ? 'another' : 'a-write-key'])
  }
})

test('a store that is in use by a service is rejected', async (t) => {
  const path = newPath(t)
  const store = await openWithFile(path)
  t.after(() => store.close())
  const before = keyOf(path)
  await assert.rejects(rotate(path), (error: Error) => error instanceof MaintenanceProblem && /in use by another/.test(error.message))
  assert.deepEqual([keyOf(path), readdirSync(join(path, '..')).includes('switchyard.db.key.new')], [before, false])
})

test('errors do not contain keys, and change nothing', async (t) => {
  const path = newPath(t)
  await assert.rejects(rotate(path), /There is no store at/)
  assert.deepEqual(readdirSync(join(path, '..')), [])
  await fill(await open(path, 'KEY-old'))
  const refusals: [Partial<RotateOptions>, RegExp][] = [
    [{ oldKey: 'KEY-old' }, /the new key is required too/],
    [{ oldKey: 'KEY-old', newKey: 'KEY-old' }, /is the same as the current one/],
    [{ oldKey: 'KEY-old', newKey: '' }, /must not be empty/],
    [{ oldKey: 'KEY-wrong', newKey: 'KEY-new' }, /but the key in use is/],
    [{}, /key is missing/],
    [{ newKey: 'KEY-new ' }, /must not begin or end with white space/],
    [{ newKey: ' ' }, /must not begin or end with white space/],
    [{ store: { kind: 'postgres', url: 'postgres://' } }, /PostgreSQL/],
  ]
  for (const [options, sentence] of refusals) {
    await assert.rejects(rotate(path, options), (error: Error) => {
      assert.ok(error instanceof MaintenanceProblem && sentence.test(error.message), error.message)
      return !error.message.includes('KEY-')
    })
  }
  await assertWhole(await open(path, 'KEY-old'))
})

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    return Buffer.alloc(0)
  }
}
