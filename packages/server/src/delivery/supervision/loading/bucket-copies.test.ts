// The room for copies of the files of lakes in buckets, with a loader that the test plays.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Destination } from '../../../store/store.ts'
import type { CopyRequest } from '../../link/copy-message.ts'
import { BucketCopies, copyFolderName, createCopyFolder } from './bucket-copies.ts'

const lake = { id: 'dst_1' } as unknown as Destination
const temporary = mkdtempSync(join(tmpdir(), 'switchyard-copies-'))
const GIB = 1024 ** 3
const { signal } = new AbortController()
after(() => rmSync(temporary, { recursive: true, force: true }))

class Rig {
  readonly sizes = new Map<string, number>()
  readonly folders = new Map<string, string>()
  asked = 0
  readonly copied: string[] = []
  /** Waits before it answers. */
  gate: Promise<void> = Promise.resolve()
  gateOf: (id: string) => Promise<void> = () => this.gate
  readonly copies: BucketCopies

  constructor(about: { keptMs?: number; maxBytes?: number } = {}) {
    const ask = async ({ id }: Destination, request: CopyRequest): Promise<unknown> => {
      this.asked++
      await this.gateOf(id)
      if (request.kind === 'tables') return []
      this.copied.push(request.table)
      const bytes = this.sizes.get(request.table) ?? 0
      if (bytes > request.maxBytes) return { bytes, files: null, warnings: [] }
      mkdirSync(request.folder, { recursive: true })
      this.folders.set(request.table, request.folder)
      if (request.table === 'damaged') {
        writeFileSync(join(request.folder, 'a.parquet'), 'x'.repeat(60))
        throw new Error('damaged')
      }
      return { bytes, files: [join(request.folder, 'a.parquet')], warnings: [] }
    }
    this.copies = new BucketCopies({ ask, tooLarge: (message) => new Error(message), folder: temporary, maxBytes: 100 * GIB, ...about })
  }

  /** A query of some tables, which goes on until it is released. */
  async query(...tables: string[]): Promise<{ files: string[]; release: () => void }> {
    const opened = this.copies.lake(lake)
    const files: string[] = []
    for (const table of tables) files.push(...(await opened.files({ schema: 'shop', table }, signal)).files)
    return { files, release: () => opened.release() }
  }

  has(table: string): boolean {
    return existsSync(this.folders.get(table) ?? '')
  }
}

test('what no query reads makes room for others, the least recently used first; what one reads stays', async () => {
  const rig = new Rig()
  for (const [table, gb] of Object.entries({ a: 40, b: 40, c: 50, d: 90 })) rig.sizes.set(table, gb * GIB)
  const first = await rig.query('a')
  ;(await rig.query('b')).release()
  ;(await rig.query('c')).release()
  assert.deepEqual([rig.has('a'), rig.has('b'), rig.has('c')], [true, false, true])
  await assert.rejects(rig.query('d'), /The files of shop\.d have 90\.0 GiB\. At most 100\.0 GiB/)
  assert.equal(rig.has('a'), true)
  first.release()
  const { files } = await rig.query('d')
  assert.deepEqual([files.length, rig.has('a'), rig.has('c'), rig.has('d')], [1, false, false, true])
  rig.copies.close()
})

test('two queries of a table share its copies, and it is in use until both have ended', async () => {
  const rig = new Rig()
  rig.sizes.set('a', 60 * GIB)
  rig.sizes.set('b', 60 * GIB)
  const [one, other] = await Promise.all([rig.query('a'), rig.query('a')])
  assert.deepEqual(one.files, other.files)
  one.release()
  await assert.rejects(rig.query('b'), /shop\.b/)
  other.release()
  ;(await rig.query('b')).release()
  assert.equal(rig.has('a'), false)
  rig.copies.close()
})

test('a query that is cancelled ends at once, and what it was fetching is not in use afterwards', async () => {
  const rig = new Rig()
  rig.sizes.set('a', 60 * GIB)
  rig.sizes.set('b', 60 * GIB)
  let open = (): void => undefined
  rig.gate = new Promise((resolve) => (open = resolve))
  const cancel = new AbortController()
  const cancelled = rig.copies.lake(lake)
  const waiting = cancelled.files({ schema: 'shop', table: 'a' }, cancel.signal)
  cancel.abort()
  await assert.rejects(waiting, { name: 'AbortError' })
  cancelled.release()
  open()
  ;(await rig.query('b')).release()
  assert.equal(rig.has('a'), false)
  rig.copies.close()
})

test('a query that was cancelled before its turn fetches nothing, and one that waits for a listing ends at once', async () => {
  const rig = new Rig()
  let open = (): void => undefined
  rig.gate = new Promise((resolve) => (open = resolve))
  const first = rig.query('a')
  const cancel = new AbortController()
  const cancelled = rig.copies.lake(lake)
  const waiting = [
    ...['b', 'c', 'd'].map((table) => cancelled.files({ schema: 'shop', table }, cancel.signal)),
    ...[1, 2, 3].map(() => cancelled.tables(['shop'], cancel.signal)),
  ]
  // The first listing has been asked for.
  await new Promise((resolve) => setImmediate(resolve))
  cancel.abort()
  for (const each of waiting) await assert.rejects(each, { name: 'AbortError' })
  cancelled.release()
  open()
  ;(await first).release()
  ;(await rig.query('e')).release()
  assert.deepEqual([rig.copied, rig.asked], [['a', 'e'], 3])
  rig.copies.close()
})

test('what a failed copy has fetched counts, and makes room for others', async () => {
  const rig = new Rig({ maxBytes: 100 })
  await assert.rejects(rig.query('damaged'), /damaged/)
  rig.sizes.set('b', 50)
  assert.equal(rig.has('damaged'), true)
  ;(await rig.query('b')).release()
  assert.equal(rig.has('damaged'), false)
  rig.copies.close()
})

test('queries of other tables do not keep the copies of a table', async () => {
  const rig = new Rig({ keptMs: 20 })
  ;(await rig.query('a')).release()
  while (rig.has('a')) {
    ;(await rig.query('b')).release()
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  rig.copies.close()
})

test('a bucket that does not answer keeps no other lake waiting, and both together keep to the limit', async () => {
  const rig = new Rig()
  rig.sizes.set('a', 60 * GIB)
  rig.sizes.set('b', 60 * GIB)
  let open = (): void => undefined
  const hanging = new Promise<void>((resolve) => (open = resolve))
  rig.gateOf = (id) => (id === lake.id ? hanging : Promise.resolve())
  const slow = rig.query('a')
  const other = rig.copies.lake({ id: 'dst_2' } as unknown as Destination)
  assert.equal((await other.files({ schema: 'shop', table: 'b' }, signal)).files.length, 1)
  open()
  await assert.rejects(slow, /shop\.a/)
  other.release()
  ;(await rig.query('a')).release()
  assert.deepEqual([rig.has('a'), rig.has('b')], [true, false])
  rig.copies.close()
})

test('copies that nobody has read for some time are removed', async () => {
  const rig = new Rig({ keptMs: 1 })
  ;(await rig.query('a')).release()
  while (rig.has('a')) await new Promise((resolve) => setTimeout(resolve, 5))
  rig.copies.close()
})

test('folders of processes that were killed are removed at the start, and those of others are not', () => {
  const { pid } = spawnSync(process.execPath, ['--version'])
  const [killed, earlier, alive] = [`switchyard-sql-${pid}-x`, `switchyard-sql-${process.pid}-x`, `switchyard-sql-${process.ppid}-x`]
  for (const name of [killed, earlier, alive, 'switchyard-sql', 'other']) mkdirSync(join(temporary, name))
  const own = createCopyFolder(copyFolderName(temporary), temporary)
  assert.deepEqual(
    [killed, earlier, alive, 'switchyard-sql', 'other'].map((name) => existsSync(join(temporary, name))),
    [false, false, true, true, true],
  )
  assert.equal(existsSync(own), true)
  symlinkSync(join(temporary, alive), join(temporary, 'link'))
  assert.throws(() => createCopyFolder(join(temporary, 'link'), temporary), /is not a folder of the user/)
})
