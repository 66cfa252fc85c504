// Whether a message was accepted before: the newest keys in memory, the older ones in runs on disk. The keys of what is in
// memory only are in the segments too, from which they are read again at a start, so a commit writes no key twice.
// Invariant: what `begin … commit` added is known from then on for at least the time asked for; what was rolled back is not.

import type { DatabaseSync } from 'node:sqlite'
import { CHUNKS, KeyRuns, type RunWriter } from './key-runs.ts'
import { RecentKeys } from './recent-keys.ts'
import { isKey, KEY_WORDS } from './segment-keys.ts'

/** Keys in memory before they are written as a run: 25 MB of table. */
const RUN_KEYS = 2 ** 19
/** Of 1,024: a run is written over so many commits, so that none of them waits for it. */
const CHUNKS_PER_COMMIT = 32
/** Of a run's keys. The table has two slots a key, so there is room for what one group of commits may bring beyond. */
const FULL = 0.9

export class Duplicates {
  readonly #runs: KeyRuns
  readonly #runKeys: number
  #recent: RecentKeys
  #frozen: RecentKeys | null = null
  #writer: RunWriter | null = null
  #completed = false
  #newest = 0
  #frozenNewest = 0
  /** Slots taken since begin(). */
  #added: number[] = []

  constructor(database: DatabaseSync, oldestSegment: number, runKeys = RUN_KEYS) {
    this.#runKeys = runKeys
    this.#recent = new RecentKeys(runKeys)
    this.#runs = new KeyRuns(database)
    const covered = this.#runs.load(database, oldestSegment)
    database.prepare('DELETE FROM key_chunks WHERE run NOT IN (SELECT id FROM key_runs)').run()
    const rows = database.prepare('SELECT seq, keys FROM segments WHERE seq > ?').iterate(covered)
    for (const { seq, keys } of rows as Iterable<{ seq: number; keys: Uint8Array }>) {
      const words = new Uint32Array(keys.slice().buffer)
      if (this.#recent.size + words.length / KEY_WORDS > this.#runKeys) this.#writeWhole(database)
      for (let at = 0; at < words.length; at += KEY_WORDS) if (isKey(words, at)) this.#recent.add(words, at, seq)
      this.#newest = seq
    }
  }

  begin(): void {
    this.#added.length = 0
  }

  /** False when the key is known already. */
  add(words: Uint32Array, at: number, segment: number): boolean {
    if (this.#frozen !== null && this.#frozen.find(words, at) !== 0) return false
    // The memory table first: it is what most true duplicates, a client's retries, are found in.
    const slot = this.#recent.add(words, at, segment)
    if (slot === -1) return false
    if (this.#runs.find(words, at) !== 0) {
      this.#recent.undo(slot)
      return false
    }
    this.#added.push(slot)
    this.#newest = segment
    return true
  }

  /** Takes back what was added for one batch, or since begin(). */
  undo(to = 0): void {
    while (this.#added.length > to) this.#recent.undo(this.#added.pop() as number)
  }

  get mark(): number {
    return this.#added.length
  }

  /** In the transaction, before its commit: writes a part of a full table. */
  writeSome(): void {
    if (this.#writer === null || this.#completed) return
    // Behind: the next table fills faster than this one is written, and there is no room for a third.
    const behind = this.#recent.size > this.#runKeys * FULL
    this.#completed = this.#writer.write(behind ? CHUNKS : CHUNKS_PER_COMMIT)
  }

  committed(): void {
    this.#added.length = 0
    if (this.#completed) {
      this.#writer?.publish()
      this.#writer = null
      this.#frozen = null
      this.#completed = false
    }
    if (this.#recent.size >= this.#runKeys * FULL && this.#frozen === null) this.#freeze()
  }

  /** A transaction with a part of a run in it failed. The table is still whole in memory: the run is written again, over itself. */
  rolledBack(): void {
    this.undo()
    if (this.#frozen !== null) this.#startRun(this.#frozen)
  }

  /** Whether there is anything to write even when nobody else commits. */
  get busy(): boolean {
    return this.#writer !== null
  }

  find(words: Uint32Array, at: number): number {
    return this.#recent.find(words, at) || this.#frozen?.find(words, at) || this.#runs.find(words, at, true)
  }

  /** Old runs stop nothing any more, and go when what they point to is gone. */
  forget(oldestSegment: number): void {
    this.#runs.forget(oldestSegment)
  }

  dropStep(oldestSegment: number, progress: { run: number; chunk: number }): boolean {
    return this.#runs.dropStep(oldestSegment, progress, CHUNKS_PER_COMMIT)
  }

  #freeze(): void {
    this.#frozen = this.#recent
    this.#frozenNewest = this.#newest
    this.#recent = new RecentKeys(this.#runKeys)
    this.#startRun(this.#frozen)
  }

  #startRun(keys: RecentKeys): void {
    this.#writer = this.#runs.writer(keys, this.#frozenNewest)
    this.#completed = false
  }

  /** At a start that finds more keys than fit. */
  #writeWhole(database: DatabaseSync): void {
    const writer = this.#runs.writer(this.#recent, this.#newest)
    database.exec('BEGIN')
    writer.write(CHUNKS)
    database.exec('COMMIT')
    writer.publish()
    this.#recent = new RecentKeys(this.#runKeys)
  }
}
