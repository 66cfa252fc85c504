import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSecretKeyFile } from './secret-key-file.ts'

function inFolder(use: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-key-'))
  try {
    use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('a new key is written when it is kept, for its owner alone, and read again', () =>
  inFolder((folder) => {
    const store = join(folder, 'sub', 'switchyard.db')
    const made = openSecretKeyFile(store)
    assert.ok(made.isNew)
    assert.match(made.key, /^[\w-]{43}$/)
    assert.deepEqual(readdirSync(folder), [])
    made.keep()
    assert.deepEqual(readdirSync(join(folder, 'sub')), ['switchyard.db.key'])
    assert.equal(statSync(made.path).mode & 0o777, 0o600)
    const { key, isNew, keep } = openSecretKeyFile(store)
    assert.deepEqual({ key, isNew }, { key: made.key, isNew: false })
    keep()
    assert.equal(readFileSync(made.path, 'utf8'), `${made.key}\n`)
  }))

test('a key that another has written meanwhile is not written over', () =>
  inFolder((folder) => {
    const store = join(folder, 'switchyard.db')
    const [first, second] = [openSecretKeyFile(store), openSecretKeyFile(store)]
    first.keep()
    assert.throws(() => second.keep(), { code: 'EEXIST' })
    assert.equal(openSecretKeyFile(store).key, first.key)
    assert.deepEqual(readdirSync(folder), ['switchyard.db.key'])
  }))

test('what a process that was killed has left of a draft is no key, and in nobody’s way', () =>
  inFolder((folder) => {
    const store = join(folder, 'switchyard.db')
    writeFileSync(`${store}.key.new`, 'cut')
    const file = openSecretKeyFile(store)
    assert.ok(file.isNew)
    file.keep()
    assert.equal(openSecretKeyFile(store).key, file.key)
    assert.deepEqual(readdirSync(folder), ['switchyard.db.key'])
  }))
