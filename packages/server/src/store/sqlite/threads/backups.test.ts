import assert from 'node:assert/strict'
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { accept, newSourceAndDestination, tracks } from '../../conformance/fixtures.ts'
import type { Backup, Backups } from '../../store.ts'
import { openFor, tempFolder } from '../fixtures/temp-store.ts'
import { type BackupsOptions, createBackups } from './backups.ts'
import { inspectSqlite } from './inspect.ts'

async function filled(t: TestContext, options: Partial<BackupsOptions> = {}) {
  const folder = tempFolder()
  const path = join(folder, 'test.db')
  const store = await openFor(t, path)
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const add = () => accept(store, sourceId, tracks(100), [destinationId])
  for (let batch = 0; batch < 40; batch += 1) await add()
  const backups = createBackups({ path, pagesPerStep: 16, ...options })
  t.after(async () => {
    await backups.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { folder, path, backups, add }
}

async function over(backups: Backups, { id }: Backup): Promise<Backup> {
  for (;;) {
    const job = backups.get(id) as Backup
    if (job.state !== 'copying') return job
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const copyOf = (path: string, { id }: Backup): string => `${path}.${id}`

test('a backup made while messages are accepted is a consistent snapshot in a single file that only its owner can read', async (t) => {
  const { path, backups, add } = await filled(t)
  const job = backups.start() as Backup
  let during = 0
  while (backups.get(job.id)?.state === 'copying') {
    await add()
    during += 1
  }
  assert.deepEqual([job.state, job.error], ['ready', null])
  assert.ok(during > 0, 'messages must be accepted while the copy is made')
  const copy = copyOf(path, job)
  assert.equal(statSync(copy).mode & 0o777, 0o600)
  assert.equal(statSync(copy).size, job.totalBytes)
  assert.equal(existsSync(`${copy}-wal`), false)
  const inspection = await inspectSqlite(copy, 60_000)
  assert.deepEqual(inspection?.problems, [])
  assert.deepEqual(inspection?.ledger, inspection?.recount)
  assert.ok((inspection?.ledger[0]?.owed ?? 0) >= 4_000)
  assert.equal(existsSync(`${copy}-wal`), false, 'reading it creates no other files')
})

test('there is only one backup at a time, and it can be read until it is removed', async (t) => {
  const { path, folder, backups } = await filled(t)
  const job = backups.start() as Backup
  assert.equal(backups.start(), undefined)
  assert.equal(backups.open(job.id), undefined, 'not before it is ready')
  await over(backups, job)
  assert.equal(backups.start(), undefined, 'nor while a backup waits to be downloaded')
  let bytes = 0
  for await (const chunk of backups.open(job.id) as AsyncIterable<Buffer>) bytes += chunk.length
  assert.equal(bytes, job.totalBytes)
  assert.equal(await backups.remove(job.id), true)
  assert.equal(await backups.remove(job.id), false)
  assert.equal(backups.open(job.id), undefined)
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes('bak_')),
    [],
  )
  const next = backups.start() as Backup
  assert.equal((await over(backups, next)).state, 'ready')
  assert.ok(existsSync(copyOf(path, next)))
})

test('a backup is cancelled if the log grows beyond its limit, and leaves no files behind', async (t) => {
  const { folder, backups, add } = await filled(t, { maxLogBytes: 1, pagesPerStep: 1 })
  await add()
  const job = backups.start() as Backup
  const { state, error } = await over(backups, job)
  assert.equal(state, 'failed')
  assert.match(error ?? '', /the write-ahead log of the store grew to \d+ bytes/)
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes('bak_')),
    [],
  )
  assert.ok(backups.start() !== undefined, 'another backup can be started')
})

test('a backup is not started if there is not enough disk space', async (t) => {
  const { folder, backups } = await filled(t, { leastFreeBytes: Number.MAX_SAFE_INTEGER / 2 })
  const { state, error } = backups.start() as Backup
  assert.equal(state, 'failed')
  assert.match(
    error ?? '',
    /^Not enough disk space: the backup needs \d+ free bytes on the disk of the store, but only \d+ are available\.$/,
  )
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes('bak_')),
    [],
  )
})

test('a backup that is removed while it is made is cancelled', async (t) => {
  const { folder, backups } = await filled(t, { pagesPerStep: 1 })
  const job = backups.start() as Backup
  assert.equal(await backups.remove(job.id), true)
  assert.equal(job.state, 'failed')
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes('bak_')),
    [],
  )
})

test('a backup that is not downloaded is removed, and copies of a killed process are removed at the next start', async (t) => {
  const { path, folder, backups } = await filled(t, { keepMs: 1 })
  const job = backups.start() as Backup
  while (backups.get(job.id) !== undefined) await new Promise((resolve) => setTimeout(resolve, 1))
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes('bak_')),
    [],
  )
  writeFileSync(`${path}.bak_left`, 'left')
  await createBackups({ path }).close()
  assert.equal(existsSync(`${path}.bak_left`), false)
})
