// Older message keys, on disk. They are in runs of a quarter of a million keys. A run is divided into 1,024 chunks by the first bits of the fingerprint,
// which are written in order, so no page is written twice and nothing is sorted. Each run has a Bloom filter of 16 bits per key in memory (2 bytes
// per key of the last day), so looking up a new key reads no page, except for the 6 in 10,000 that pass a filter by chance. Compared with a
// unique index in docs/decisions/0013-duplicates.md.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { ENTRY_WORDS, type RecentKeys } from './recent-keys.ts'
import { RunFilters } from './run-filters.ts'

const CHUNK_BITS = 10
export const CHUNKS = 1 << CHUNK_BITS
const HIGH = 2 ** 32

interface Run {
  id: number
  /** False if the run is too old to be searched for duplicates. Then it is used only to look up messageIds. */
  stopsDuplicates: boolean
  newest: number
}

/** Writes a frozen table to the store, a few chunks per commit. */
export interface RunWriter {
  /** Writes the next chunks in the current transaction. Returns true if the run is complete. */
  write(chunks: number): boolean
  committed(): void
  /** Chunks that were written since the last commit will be written again. */
  rolledBack(): void
  /** Makes the run searchable. Must be called after the commit that completed it. */
  publish(): void
}

export class KeyRuns {
  readonly #insertChunk: StatementSync
  readonly #selectChunk: StatementSync
  readonly #insertRun: StatementSync
  readonly #deleteChunks: StatementSync
  readonly #deleteRun: StatementSync
  /** Newest first. */
  #runs: Run[] = []
  readonly #filters = new RunFilters()
  /** How much of the oldest run is deleted, now and as of the last commit. */
  #dropping = { run: 0, chunk: 0 }
  #committed = this.#dropping
  /** The run that was dropped in the current transaction. */
  #dropped: Run | null = null

  constructor(database: DatabaseSync) {
    this.#insertChunk = database.prepare('INSERT OR REPLACE INTO key_chunks (run, chunk, entries) VALUES (?, ?, ?)')
    this.#selectChunk = database.prepare('SELECT entries FROM key_chunks WHERE run = ? AND chunk = ?')
    this.#insertRun = database.prepare('INSERT INTO key_runs (id, newest, filter) VALUES (?, ?, ?)')
    this.#deleteChunks = database.prepare('DELETE FROM key_chunks WHERE run = ? AND chunk >= ? AND chunk < ?')
    this.#deleteRun = database.prepare('DELETE FROM key_runs WHERE id = ?')
  }

  /** Reads the filters of the runs that end at `oldestSegment` or later. Returns the newest segment that any run covers. */
  load(database: DatabaseSync, oldestSegment: number): number {
    const rows = database
      .prepare('SELECT id, newest, CASE WHEN newest >= ? THEN filter END AS filter FROM key_runs ORDER BY id')
      .iterate(oldestSegment) as unknown as Iterable<{ id: number; newest: number; filter: Uint8Array | null }>
    const runs = this.#runs
    const filters = function* () {
      for (const { id, newest, filter } of rows) {
        runs.unshift({ id, newest, stopsDuplicates: filter !== null })
        if (filter !== null) yield { run: id, filter: wordsOf(filter) }
      }
    }
    this.#filters.addAll(filters())
    return this.#runs[0]?.newest ?? 0
  }

  /** Runs that end before `oldestSegment` no longer stop duplicates. */
  forget(oldestSegment: number): void {
    for (const run of this.#runs) {
      if (!run.stopsDuplicates || run.newest >= oldestSegment) continue
      run.stopsDuplicates = false
      this.#filters.remove(run.id)
    }
  }

  /** The segment that contains the key, or 0. Searches only runs that still stop duplicates. */
  find(words: Uint32Array, at: number): number {
    for (const run of this.#filters.candidates(words, at)) {
      const found = this.#findInChunk(run, words, at)
      if (found !== 0) return found
    }
    return 0
  }

  /** Every segment that contains the key, newest first. Searches older runs too, reading one chunk of each. */
  findAll(words: Uint32Array, at: number): number[] {
    const candidates = this.#filters.candidates(words, at)
    return this.#runs.flatMap((run) => {
      if (run.stopsDuplicates && !candidates.includes(run.id)) return []
      const found = this.#findInChunk(run.id, words, at)
      return found === 0 ? [] : [found]
    })
  }

  /** `keys` must not change any more, because each chunk is read from the table only when it is written. */
  writer(keys: RecentKeys, newest: number): RunWriter {
    const id = (this.#runs[0]?.id ?? 0) + 1
    const filter = RunFilters.empty(keys.capacity)
    let next = 0
    let committed = 0
    return {
      write: (count) => {
        for (const end = Math.min(next + count, CHUNKS); next < end; next++) {
          const entries = keys.entriesOf(next, CHUNK_BITS)
          for (let at = 0; at < entries.length; at += ENTRY_WORDS) RunFilters.insert(filter, entries, at)
          this.#insertChunk.run(id, next, bytesOf(entries))
        }
        if (next < CHUNKS) return false
        this.#insertRun.run(id, newest, bytesOf(filter))
        return true
      },
      committed: () => {
        committed = next
      },
      rolledBack: () => {
        next = committed
      },
      publish: () => {
        this.#runs.unshift({ id, stopsDuplicates: true, newest })
        this.#filters.add(id, filter)
      },
    }
  }

  /**
   * Deletes a part of the oldest run if it ends before `oldestSegment`. Returns false if there is no such run. A run that still stops duplicates
   * is kept, because with a wrong clock everything looks old.
   */
  dropStep(oldestSegment: number, chunks: number): boolean {
    const run = this.#runs.at(-1)
    if (run === undefined || run.newest >= oldestSegment || run.stopsDuplicates) return false
    const from = this.#dropping.run === run.id ? this.#dropping.chunk : 0
    this.#deleteChunks.run(run.id, from, from + chunks)
    this.#dropping = { run: run.id, chunk: from + chunks }
    if (this.#dropping.chunk >= CHUNKS) {
      this.#deleteRun.run(run.id)
      this.#dropped = this.#runs.pop() as Run
    }
    return true
  }

  committed(): void {
    this.#dropped = null
    this.#committed = this.#dropping
  }

  rolledBack(): void {
    if (this.#dropped !== null) this.#runs.push(this.#dropped)
    this.#dropped = null
    this.#dropping = this.#committed
  }

  #findInChunk(run: number, words: Uint32Array, at: number): number {
    const row = this.#selectChunk.get(run, chunkOf(words, at)) as { entries: Uint8Array } | undefined
    if (row === undefined) return 0
    const entries = wordsOf(row.entries)
    for (let base = 0; base < entries.length; base += ENTRY_WORDS) {
      if (
        entries[base] === words[at] &&
        entries[base + 1] === words[at + 1] &&
        entries[base + 2] === words[at + 2] &&
        entries[base + 3] === words[at + 3]
      ) {
        return (entries[base + 4] as number) * HIGH + (entries[base + 5] as number)
      }
    }
    return 0
  }
}

function chunkOf(words: Uint32Array, at: number): number {
  return (words[at] as number) >>> (32 - CHUNK_BITS)
}

function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength)
}

/** A blob as 32-bit words. Copied if SQLite's bytes are not aligned. */
function wordsOf(bytes: Uint8Array): Uint32Array {
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice()
  return new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / 4)
}
