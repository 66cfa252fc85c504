import assert from 'node:assert/strict'
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { SecretBoxError } from './secret-box.ts'
import { adoptNextKey, KeyFileProblem, openWithKeyFile, writeNextKey } from './secret-key-file.ts'

function storeIn(t: TestContext, ...within: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-key-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return join(folder, ...within, 'switchyard.db')
}

/** A store whose secrets are encrypted with one key; null if it has no secrets yet. */
function sealedWith(own: string | null) {
  const state = { own, opened: [] as string[], closed: 0 }
  const close = async (): Promise<void> => {
    state.closed++
  }
  const open = async (key: string) => {
    state.opened.push(key)
    if (state.own !== null && key !== state.own) throw new SecretBoxError('wrong_key', 'another key')
    return { key, close }
  }
  return { state, open }
}

const filesBeside = (store: string): string[] => readdirSync(join(store, '..')).sort()

test('a new key is written after the store was opened with it, readable only by its owner, and read again', async (t) => {
  const store = storeIn(t, 'sub')
  const { open } = sealedWith(null)
  const { key } = await openWithKeyFile(store, (made) => {
    assert.throws(() => filesBeside(store), { code: 'ENOENT' })
    return open(made)
  })
  assert.match(key, /^[\w-]{43}$/)
  assert.deepEqual(filesBeside(store), ['switchyard.db.key'])
  assert.equal(statSync(`${store}.key`).mode & 0o777, 0o600)
  assert.equal(readFileSync(`${store}.key`, 'utf8'), `${key}\n`)
  assert.equal((await openWithKeyFile(store, open)).key, key)
})

test('a key that another process has written in the meantime is not overwritten, and the store is closed', async (t) => {
  const store = storeIn(t)
  const { open, state } = sealedWith(null)
  const lateOpen = async (key: string) => {
    writeFileSync(`${store}.key`, 'of another\n')
    return open(key)
  }
  await assert.rejects(openWithKeyFile(store, lateOpen), (error: Error) => error instanceof KeyFileProblem && /EEXIST/.test(error.message))
  assert.equal(readFileSync(`${store}.key`, 'utf8'), 'of another\n')
  assert.deepEqual([filesBeside(store), state.closed], [['switchyard.db.key'], 1])
})

test('a draft left by a killed process is not used as a key and does no harm', async (t) => {
  const store = storeIn(t)
  writeFileSync(`${store}.key.new`, 'cut')
  const { open } = sealedWith(null)
  const { key } = await openWithKeyFile(store, open)
  assert.notEqual(key, 'cut')
  assert.deepEqual([(await openWithKeyFile(store, open)).key, filesBeside(store)], [key, ['switchyard.db.key']])
})

test('a rotation that was interrupted before the secrets were encrypted leaves the key unchanged', async (t) => {
  const store = storeIn(t)
  writeFileSync(`${store}.key`, 'old\n')
  writeNextKey(store, 'next')
  assert.equal(statSync(`${store}.key.new`).mode & 0o777, 0o600)
  assert.equal((await openWithKeyFile(store, sealedWith('old').open)).key, 'old')
  assert.deepEqual([filesBeside(store), readFileSync(`${store}.key`, 'utf8')], [['switchyard.db.key'], 'old\n'])
})

test('a rotation that was interrupted after the secrets were encrypted is completed when the store is opened', async (t) => {
  const store = storeIn(t)
  writeFileSync(`${store}.key`, 'old\n')
  writeNextKey(store, 'next')
  const { open, state } = sealedWith('next')
  assert.equal((await openWithKeyFile(store, open)).key, 'next')
  assert.deepEqual(state.opened, ['old', 'next'])
  assert.deepEqual([filesBeside(store), readFileSync(`${store}.key`, 'utf8')], [['switchyard.db.key'], 'next\n'])
  assert.equal(statSync(`${store}.key`).mode & 0o777, 0o600)
})

test('an adopted key is the current key', async (t) => {
  const store = storeIn(t)
  writeFileSync(`${store}.key`, 'old\n')
  writeNextKey(store, 'next')
  adoptNextKey(store)
  assert.deepEqual([filesBeside(store), readFileSync(`${store}.key`, 'utf8')], [['switchyard.db.key'], 'next\n'])
})

test('a key file that is a symbolic link is not changed, because the old key would be restored from its target', (t) => {
  const store = storeIn(t)
  writeFileSync(`${store}.elsewhere`, 'old\n')
  symlinkSync(`${store}.elsewhere`, `${store}.key`)
  assert.throws(
    () => writeNextKey(store, 'next'),
    (error: Error) => error instanceof KeyFileProblem && /key is a symbolic link\./.test(error.message),
  )
  assert.deepEqual(filesBeside(store), ['switchyard.db.elsewhere', 'switchyard.db.key'])
})

test('the next key has the same owner as the current key, even if root writes it', { skip: process.getuid?.() !== 0 }, (t) => {
  const store = storeIn(t)
  writeFileSync(`${store}.key`, 'old\n')
  chownSync(`${store}.key`, 12_345, 54_321)
  writeNextKey(store, 'next')
  adoptNextKey(store)
  const { uid, gid, mode } = statSync(`${store}.key`)
  assert.deepEqual([uid, gid, mode & 0o777], [12_345, 54_321, 0o600])
})

test('if neither key decrypts the store, both files stay unchanged', async (t) => {
  const store = storeIn(t)
  writeFileSync(`${store}.key`, 'old\n')
  writeFileSync(`${store}.key.new`, 'ne')
  await assert.rejects(openWithKeyFile(store, sealedWith('next').open), SecretBoxError)
  assert.deepEqual([readFileSync(`${store}.key`, 'utf8'), readFileSync(`${store}.key.new`, 'utf8')], ['old\n', 'ne'])
})

test('a key that was rotated while the store was being opened is read again', async (t) => {
  const store = storeIn(t)
  writeFileSync(`${store}.key`, 'old\n')
  const { open, state } = sealedWith('next')
  const opened = await openWithKeyFile(store, async (key) => {
    if (state.opened.length === 0) writeFileSync(`${store}.key`, 'next\n')
    return open(key)
  })
  assert.deepEqual([opened.key, state.opened], ['next', ['old', 'next']])
})

test('a missing, empty or unreadable file is reported, without secrets', async (t) => {
  const store = storeIn(t)
  const { open } = sealedWith('the-secret-key')
  await assert.rejects(openWithKeyFile(store, open), /key is missing, and secrets in .* are encrypted with the key that was in it/)
  assert.deepEqual(filesBeside(store), [])
  writeFileSync(`${store}.key`, ' \n')
  await assert.rejects(openWithKeyFile(store, open), /is empty\. Restore the key/)
  rmSync(`${store}.key`)
  await assert.rejects(openWithKeyFile(join(store, '..'), open), KeyFileProblem)
})
