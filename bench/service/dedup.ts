// The cost of deduplication: the same commits of the same batches to the same tables, (a) without deduplication, (b) with a
// unique index on source and messageId, (c) with the same index on a 16-byte hash, (d) with what the store uses (fingerprints
// in memory and in sorted runs behind Bloom filters). Each has a million keys before it is measured; the measured events are new,
// as nearly all are in practice. One thread and no HTTP: only the writing, including fsync. A second table shows the cost of hashing an id.
//
//   npm run example bench/service/dedup.ts -- [--keys 1000000] [--events 100000] [--rounds 5]

import { hash, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { fingerprint, type Seed } from '../../packages/server/src/store/encoding/fingerprint.ts'
import { KEY_WORDS } from '../../packages/server/src/store/encoding/segment-keys.ts'
import { Duplicates } from '../../packages/server/src/store/sqlite/keys/duplicates.ts'
import { openWriter } from '../../packages/server/src/store/sqlite/schema/database.ts'
import { openWalIndex } from '../../packages/server/src/store/sqlite/threads/wal-index.ts'
import { numberText, spreadOf, spreadText, tableText } from '../client/table.ts'
import { startNoiseMeter } from './environment/machine-noise.ts'

const { values } = parseArgs({
  options: {
    keys: { type: 'string', default: '1000000' },
    events: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '5' },
  },
})
const KEYS = Number(values.keys)
const EVENTS = Number(values.events)
const ROUNDS = Number(values.rounds)
const BATCH = 15
const BATCHES_PER_COMMIT = 20
const PRELOADED_PER_COMMIT = 5_000
const CHECKPOINT_FRAMES = 2_000
const SEED: Seed = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344]
const NO_BYTES = new Uint8Array()

interface Batch {
  ids: string[]
  body: Uint8Array
}

/** One method of deduplication. Runs in the current transaction. */
interface Way {
  /** Returns how many of the ids are new, and the keys to store with the segment if the method needs them. */
  add(ids: readonly string[], segment: number): { fresh: number; keys: Uint8Array }
  beforeCommit?(): void
  afterCommit?(): void
}

const WAYS: Record<string, { title: string; create: (database: DatabaseSync) => Way }> = {
  none: { title: '(a) no deduplication', create: () => ({ add: (ids) => ({ fresh: ids.length, keys: NO_BYTES }) }) },
  text: { title: '(b) unique index on source and messageId', create: (database) => indexed(database, 'TEXT', (id) => id) },
  hash: {
    title: '(c) unique index on source and 16 bytes of hash',
    create: (database) =>
      indexed(database, 'BLOB', (id) => {
        const words = new Uint32Array(4)
        fingerprint(id, SEED, words, 0)
        return new Uint8Array(words.buffer)
      }),
  },
  ours: { title: '(d) the store’s: fingerprints, runs, filters', create: ours },
}

function indexed(database: DatabaseSync, type: 'TEXT' | 'BLOB', valueOf: (id: string) => string | Uint8Array): Way {
  database.exec(
    `CREATE TABLE message_ids (source INTEGER NOT NULL, id ${type} NOT NULL, segment INTEGER NOT NULL, PRIMARY KEY (source, id)) WITHOUT ROWID, STRICT`,
  )
  const insert = database.prepare('INSERT OR IGNORE INTO message_ids (source, id, segment) VALUES (1, ?, ?)')
  return {
    add(ids, segment) {
      let fresh = 0
      for (const id of ids) fresh += Number(insert.run(valueOf(id), segment).changes)
      return { fresh, keys: NO_BYTES }
    },
  }
}

function ours(database: DatabaseSync): Way {
  const duplicates = new Duplicates(database, 0)
  duplicates.begin()
  return {
    add(ids, segment) {
      const words = new Uint32Array(ids.length * KEY_WORDS)
      let fresh = 0
      for (let at = 0; at < ids.length; at++) {
        fingerprint(ids[at] as string, SEED, words, at * KEY_WORDS)
        if (duplicates.add(words, at * KEY_WORDS, segment)) fresh++
      }
      return { fresh, keys: new Uint8Array(words.buffer) }
    },
    beforeCommit: () => duplicates.write(),
    afterCommit: () => duplicates.committed(),
  }
}

class Program {
  readonly #path: string
  readonly #database: DatabaseSync
  readonly #log: { frames(): number; close(): void }
  readonly #way: Way
  readonly #insert: StatementSync
  #segment = 0
  #copiedTo = 0

  constructor(folder: string, name: string) {
    this.#path = join(folder, `${name}.db`)
    this.#database = openWriter(this.#path)
    this.#log = openWalIndex(this.#path)
    this.#way = (WAYS[name] as (typeof WAYS)[string]).create(this.#database)
    this.#insert = this.#database.prepare(
      'INSERT INTO segments (seq, source, received_at, browser, count, routes, keys, body) VALUES (?, 1, 0, 0, ?, \'{"s":[]}\', ?, ?)',
    )
  }

  commit(batches: readonly Batch[]): void {
    this.#database.exec('BEGIN IMMEDIATE')
    for (const { ids, body } of batches) {
      const segment = ++this.#segment
      const { fresh, keys } = this.#way.add(ids, segment)
      if (fresh !== ids.length) throw new Error('a new id was treated as a duplicate')
      this.#insert.run(segment, ids.length, keys, body)
    }
    this.#way.beforeCommit?.()
    this.#database.exec('COMMIT')
    this.#way.afterCommit?.()
    const frames = this.#log.frames()
    if (frames < this.#copiedTo) this.#copiedTo = 0
    if (frames - this.#copiedTo < CHECKPOINT_FRAMES) return
    this.#database.exec('PRAGMA wal_checkpoint(PASSIVE)')
    this.#copiedTo = frames
  }

  close(): number {
    this.#database.close()
    this.#log.close()
    return statSync(this.#path).size
  }
}

function newBatch(size: number, filler: string): Batch {
  const ids = Array.from({ length: size }, () => randomUUID())
  const batch = ids.map((messageId) => ({ type: 'track', event: 'Order Completed', userId: 'user-1', messageId, properties: { filler } }))
  return { ids, body: filler === '' ? NO_BYTES : Buffer.from(JSON.stringify({ batch })) }
}

function preload(program: Program): void {
  for (let stored = 0; stored < KEYS; stored += PRELOADED_PER_COMMIT) {
    program.commit(Array.from({ length: PRELOADED_PER_COMMIT / 500 }, () => newBatch(500, '')))
  }
}

/** Events per second. */
function measure(program: Program): number {
  const commits: Batch[][] = []
  for (let events = 0; events < EVENTS; events += BATCH * BATCHES_PER_COMMIT) {
    commits.push(Array.from({ length: BATCHES_PER_COMMIT }, () => newBatch(BATCH, 'x'.repeat(560))))
  }
  const started = performance.now()
  for (const batches of commits) program.commit(batches)
  return (commits.length * BATCH * BATCHES_PER_COMMIT) / ((performance.now() - started) / 1_000)
}

const HASHES: [title: string, run: (id: string) => void][] = [
  ['fingerprint', (id) => fingerprint(id, SEED, scratch, 0)],
  ['SHA-1 of node:crypto', (id) => hash('sha1', id, 'buffer')],
  ['SHA-256 of node:crypto', (id) => hash('sha256', id, 'buffer')],
]
const scratch = new Uint32Array(4)
const HASHED = 200_000

/** Microseconds per id. */
function measureHash(run: (id: string) => void): number {
  const ids = Array.from({ length: HASHED }, () => randomUUID())
  const started = performance.now()
  for (const id of ids) run(id)
  return ((performance.now() - started) * 1_000) / HASHED
}

const folder = mkdtempSync(join(tmpdir(), 'switchyard-dedup-'))
const names = Object.keys(WAYS)
const programs = new Map(names.map((name) => [name, new Program(folder, name)]))
const rates = new Map<string, number[]>(names.map((name) => [name, []]))
const noise: number[] = []
try {
  for (const [name, program] of programs) {
    const started = performance.now()
    preload(program)
    console.error(`${name}: ${numberText(KEYS, 0)} keys in ${((performance.now() - started) / 1_000).toFixed(1)} s`)
  }
  for (let round = 0; round < ROUNDS; round++) {
    const turn = round % names.length
    const stopMeter = startNoiseMeter()
    for (const name of [...names.slice(turn), ...names.slice(0, turn)]) {
      const rate = measure(programs.get(name) as Program)
      rates.get(name)?.push(rate)
      console.error(`round ${round + 1}  ${name}  ${numberText(rate, 0)} events/s`)
    }
    noise.push(stopMeter() * 100)
  }
  const base = rates.get('none') as number[]
  const rows = names.map((name) => {
    const own = rates.get(name) as number[]
    const size = (programs.get(name) as Program).close()
    return [
      (WAYS[name] as (typeof WAYS)[string]).title,
      spreadText(spreadOf(own), 0),
      spreadText(spreadOf(own.map((rate, round) => rate / (base[round] as number))), 2),
      spreadText(spreadOf(own.map((rate, round) => 1e6 / rate - 1e6 / (base[round] as number))), 1),
      numberText(size / 1e6, 0),
    ]
  })
  console.log(tableText(['Way', 'Events/s', '× (a)', 'µs/event beyond (a)', 'File MB'], rows))
  console.log(
    `\n${numberText(KEYS, 0)} keys stored before; ${ROUNDS} rounds of ${numberText(EVENTS, 0)} new events of ~700 bytes in batches of ${BATCH}, ${BATCHES_PER_COMMIT} batches per commit; median (min–max). ${cpus()[0]?.model ?? ''}, Node ${process.version}. Other work took ${spreadText(spreadOf(noise), 0)} % of the machine. Not measured: HTTP, threads, duplicates themselves.`,
  )
  const costs = new Map<string, number[]>(HASHES.map(([title]) => [title, []]))
  for (let round = 0; round < ROUNDS; round++) for (const [title, run] of HASHES) costs.get(title)?.push(measureHash(run))
  const hashRows = HASHES.map(([title]) => [title, spreadText(spreadOf(costs.get(title) as number[]), 2)])
  console.log(`\n${tableText(['Hash of a UUID', 'µs'], hashRows)}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
