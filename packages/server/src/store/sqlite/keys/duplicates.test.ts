// Duplicates and the runs of older keys, on a real file, with small tables, so that many runs are written.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import * as fc from 'fast-check'
import { accept, newSource, track } from '../../conformance/fixtures.ts'
import { FINGERPRINT_WORDS, fingerprint, type Seed } from '../../encoding/fingerprint.ts'
import { KEY_WORDS } from '../../encoding/segment-keys.ts'
import { openAt, tempFolder } from '../fixtures/temp-store.ts'
import { openWriter } from '../schema/database.ts'
import { Duplicates } from './duplicates.ts'

const SEED: Seed = [1, 2, 3, 4]
const RUN_KEYS = 512

/** A writing thread that only writes keys. */
class Keys {
  readonly #path: string
  #database: DatabaseSync
  #duplicates: Duplicates
  #seq = 1_000_000_000_000_000

  constructor(t: TestContext | null, folder = tempFolder()) {
    this.#path = join(folder, 'keys.db')
    this.#database = openWriter(this.#path)
    this.#duplicates = new Duplicates(this.#database, 0, RUN_KEYS)
    t?.after(() => this.close())
  }

  close(): void {
    this.#database.close()
    rmSync(join(this.#path, '..'), { recursive: true, force: true })
  }

  /** Reopens the file as after a crash: only committed keys are stored. */
  reopen(oldestSegment = 0): void {
    this.#database.close()
    this.#database = openWriter(this.#path)
    this.#duplicates = new Duplicates(this.#database, oldestSegment, RUN_KEYS)
  }

  /** Returns the names that were already known. */
  commit(names: readonly string[], end: 'COMMIT' | 'ROLLBACK' = 'COMMIT'): string[] {
    this.#duplicates.begin()
    this.#database.exec('BEGIN IMMEDIATE')
    const seq = ++this.#seq
    const words = this.#words(names)
    const repeated = names.filter((_, at) => !this.#duplicates.add(words, at * KEY_WORDS, seq))
    for (const name of repeated) words.fill(0, names.lastIndexOf(name) * KEY_WORDS, (names.lastIndexOf(name) + 1) * KEY_WORDS)
    this.#database
      .prepare("INSERT INTO segments (seq, source, received_at, browser, count, routes, keys, body) VALUES (?, 1, 0, 0, ?, '{}', ?, x'')")
      .run(seq, names.length, new Uint8Array(words.buffer))
    this.#duplicates.write()
    this.#database.exec(end)
    if (end === 'COMMIT') this.#duplicates.committed()
    else this.#duplicates.rolledBack()
    return repeated
  }

  inTransaction(run: (duplicates: Duplicates) => void, end: 'COMMIT' | 'ROLLBACK' = 'COMMIT'): void {
    this.#database.exec('BEGIN IMMEDIATE')
    run(this.#duplicates)
    this.#database.exec(end)
    if (end === 'COMMIT') this.#duplicates.committed()
    else this.#duplicates.rolledBack()
  }

  get seq(): number {
    return this.#seq
  }

  find(name: string): number[] {
    return this.#duplicates.findAll(this.#words([name]), 0)
  }

  forget(oldestSegment: number): void {
    this.#duplicates.forget(oldestSegment)
  }

  count(table: 'key_runs' | 'key_chunks'): number {
    return (this.#database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n
  }

  exec(sql: string): void {
    this.#database.exec(sql)
  }

  #words(names: readonly string[]): Uint32Array {
    const words = new Uint32Array(names.length * KEY_WORDS)
    for (const [at, name] of names.entries()) fingerprint(name, SEED, words, at * KEY_WORDS)
    return words
  }
}

const names = (from: number, count: number): string[] => Array.from({ length: count }, (_, at) => `name ${from + at}`)

test('keys are known in memory, while they are written, in runs, and after restarts', (t) => {
  const keys = new Keys(t)
  for (let at = 0; at < 4_000; at += 40) {
    assert.deepEqual(keys.commit(names(at, 40)), [], `${at}`)
    assert.deepEqual(keys.commit([...names(at, 2), ...names(Math.floor(at / 2), 2)]).length, 4)
  }
  assert.ok(keys.count('key_runs') >= 3, 'several runs are written')
  for (let starts = 0; starts < 3; starts++) {
    for (let at = 0; at < 4_000; at += 200) assert.deepEqual(keys.commit(names(at, 200)), names(at, 200))
    keys.reopen()
  }
  assert.deepEqual(keys.commit(names(10_000, 3)), [])
})

test('a crash in the middle of writing a run loses no key and leaves nothing behind', (t) => {
  const keys = new Keys(t)
  // A table is full after 461 keys, and a run is written 32 chunks of 1,024 at a time.
  for (let at = 0; at < 500; at += 20) keys.commit(names(at, 20))
  for (let commits = 0; commits < 5; commits++) keys.commit([`more ${commits}`])
  assert.equal(keys.count('key_runs'), 0)
  assert.ok(keys.count('key_chunks') >= 160)
  keys.reopen()
  assert.equal(keys.count('key_chunks'), 0, 'half a run is removed')
  assert.deepEqual(keys.commit(names(0, 500)), names(0, 500))
})

test('a start that finds more keys than fit in memory writes them as runs', (t) => {
  const keys = new Keys(t)
  for (let at = 0; at < 3_000; at += 30) keys.commit(names(at, 30))
  keys.exec('DELETE FROM key_runs; DELETE FROM key_chunks')
  keys.reopen()
  assert.ok(keys.count('key_runs') >= 5)
  for (let at = 0; at < 3_000; at += 300) assert.deepEqual(keys.commit(names(at, 300)), names(at, 300))
  keys.reopen()
  assert.deepEqual(keys.commit(names(2_900, 100)), names(2_900, 100))
})

test('committed keys are known and rolled back keys are not, in any order and after restarts', () => {
  const step = fc.oneof(
    { weight: 10, arbitrary: fc.record({ from: fc.nat(3_000), count: fc.integer({ min: 1, max: 120 }), commit: fc.boolean() }) },
    { weight: 10, arbitrary: fc.record({ from: fc.nat(3_000), count: fc.integer({ min: 1, max: 120 }), commit: fc.constant(true) }) },
    { weight: 1, arbitrary: fc.constant('reopen' as const) },
  )
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 120, size: 'max' }), (steps) => {
      const keys = new Keys(null)
      try {
        const known = new Set<string>()
        for (const one of steps) {
          if (one === 'reopen') {
            keys.reopen()
            continue
          }
          const batch = names(one.from, one.count)
          assert.deepEqual(
            keys.commit(batch, one.commit ? 'COMMIT' : 'ROLLBACK'),
            batch.filter((name) => known.has(name)),
          )
          if (one.commit) for (const name of batch) known.add(name)
        }
        for (let at = 0; at < 3_120; at += 260) {
          const batch = names(at, 260)
          assert.deepEqual(
            keys.commit(batch, 'ROLLBACK'),
            batch.filter((name) => known.has(name)),
          )
        }
      } finally {
        keys.close()
      }
    }),
    { numRuns: 12 },
  )
})

test('a run whose writing is rolled back repeatedly is still completed', (t) => {
  const keys = new Keys(t)
  for (let at = 0; at < 480; at += 20) keys.commit(names(at, 20))
  for (let at = 0; keys.count('key_runs') === 0; at++) {
    assert.ok(at < 200)
    keys.commit([`lost ${at}`], 'ROLLBACK')
    keys.commit([`kept ${at}`])
  }
  assert.deepEqual(keys.commit(names(0, 480)), names(0, 480))
})

test('forgotten runs stop no duplicates, are still searched, and are dropped in steps', (t) => {
  const keys = new Keys(t)
  for (let at = 0; at < 2_000; at += 40) keys.commit(names(at, 40))
  const line = keys.seq
  const [first] = keys.find('name 0')
  assert.ok(first !== undefined)
  keys.forget(line)
  assert.deepEqual(keys.commit(['name 0']), [], 'it is accepted again after the deduplication time')
  assert.deepEqual(keys.find('name 0').length, 2, 'and both are found')
  assert.deepEqual(keys.find('name 0')[1], first)
  const runs = keys.count('key_runs')
  const step = (end: 'COMMIT' | 'ROLLBACK'): boolean => {
    let more = false
    // The last of them may have been written since.
    keys.forget(line)
    keys.inTransaction((duplicates) => {
      more = duplicates.dropStep(line)
    }, end)
    return more
  }
  for (let steps = 0; step('COMMIT'); steps++) {
    assert.ok(steps < 10_000)
    if (steps % 5 === 0) step('ROLLBACK')
    if (steps === 40) keys.reopen(line)
  }
  assert.ok(keys.count('key_runs') < runs)
  assert.equal(keys.count('key_runs'), 0)
  assert.equal(keys.count('key_chunks'), 0)
  assert.deepEqual(keys.commit(['name 0']), ['name 0'])
})

test('a run that is too old at a start stops no duplicates and is still searched', (t) => {
  const keys = new Keys(t)
  for (let at = 0; at < 1_000; at += 40) keys.commit(names(at, 40))
  const commits = keys.count('key_runs')
  assert.ok(commits > 0)
  keys.reopen(keys.seq + 1)
  assert.deepEqual(keys.commit(['name 0']), [])
  assert.equal(keys.find('name 1').length, 1)
  assert.equal(FINGERPRINT_WORDS + 2, KEY_WORDS)
})

test('a restart that finds the clock days ahead forgets no key', async (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'test.db')
  const store = await openAt(path)
  const { id: sourceId } = await newSource(store)
  const count = 3_000
  for (let at = 0; at < count; at += 100)
    await accept(
      store,
      sourceId,
      names(at, 100).map((name) => track(name)),
    )
  await store.close()
  // Simulates a full table: a start writes keys that do not fit in memory as runs.
  const database = openWriter(path)
  assert.ok(new Duplicates(database, 0, RUN_KEYS))
  const { runs } = database.prepare('SELECT count(*) AS runs FROM key_runs').get() as { runs: number }
  assert.ok(runs > 4)
  database.close()
  const ahead = `data:text/javascript,const now = Date.now; Date.now = () => now() + ${3 * 86_400_000}`
  const child = join(import.meta.dirname, '..', 'fixtures', 'child.ts')
  const { stdout } = spawnSync(process.execPath, ['--import', ahead, child, 'repeat', path, ...names(0, count)], { encoding: 'utf8' })
  assert.match(stdout, new RegExp(`^${count} duplicates$`, 'm'))
})
