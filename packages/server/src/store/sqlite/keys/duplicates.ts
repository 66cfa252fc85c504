// Whether a message was accepted before: the newest keys in memory, the older ones in runs on disk. The keys of what is in
// memory only are in the segments too, from which they are read again at a start, so a commit writes no key twice.
// Invariant: what `begin … commit` added is known from then on for at least the time asked for; what was rolled back is not.

import type { DatabaseSync } from 'node:sqlite'
import { isKey, KEY_WORDS } from '../../encoding/segment-keys.ts'
import { CHUNKS, KeyRuns, type RunWriter } from './key-runs.ts'
import { RecentKeys } from './recent-keys.ts'

/** Keys in memory before they are written as a run: 13 MB of table, of which there are two. */
const RUN_KEYS = 2 ** 18
/** Of 1,024: a run is written over so many commits, so that none of them waits for it. */
const CHUNKS_PER_COMMIT = 32
/** Of a run's keys. The table has two slots a key, so there is room for what one group of commits may bring beyond. */
const FULL = 0.9

export class Duplicates {
  readonly #runs: KeyRuns
  readonly #runKeys: number
  #recent: RecentKeys
  #frozen: RecentKeys | null = null
  /** A table whose run has been written, to be filled again: a new one each time would be garbage of its size. */
  #spare: RecentKeys | null = null
  #writer: RunWriter | null = null
  #completed = false
  #newest = 0
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

  /** The segment that has a key which `add` refused. */
  holder(words: Uint32Array, at: number): number {
    return this.#frozen?.find(words, at) || this.#recent.find(words, at) || this.#runs.find(words, at)
  }

  /** In the transaction, before its commit: writes a part of a full table. */
  write(): void {
    if (this.#writer === null || this.#completed) return
    // Behind: the next table fills faster than this one is written, and there is no room for a third.
    const behind = this.#recent.size > this.#runKeys * FULL
    this.#completed = this.#writer.write(behind ? CHUNKS : CHUNKS_PER_COMMIT)
  }

  committed(): void {
    this.#added.length = 0
    this.#runs.committed()
    this.#writer?.committed()
    if (this.#completed) {
      this.#writer?.publish()
      this.#writer = null
      this.#spare = this.#frozen
      this.#frozen = null
      this.#completed = false
    }
    if (this.#recent.size >= this.#runKeys * FULL && this.#frozen === null) this.#freeze()
  }

  /** A frozen table is still whole in memory: what the transaction held of its run is written again. */
  rolledBack(): void {
    while (this.#added.length > 0) this.#recent.undo(this.#added.pop() as number)
    this.#runs.rolledBack()
    this.#writer?.rolledBack()
    this.#completed = false
  }

  /** The segments that hold the key, newest first: more than one when a message came again after the time asked for. */
  findAll(words: Uint32Array, at: number): number[] {
    const inMemory = this.#recent.find(words, at) || this.#frozen?.find(words, at)
    return inMemory ? [inMemory, ...this.#runs.findAll(words, at)] : this.#runs.findAll(words, at)
  }

  /** Old runs stop nothing any more, and go when what they point to is gone. */
  forget(oldestSegment: number): void {
    this.#runs.forget(oldestSegment)
  }

  dropStep(oldestSegment: number): boolean {
    return this.#runs.dropStep(oldestSegment, CHUNKS_PER_COMMIT)
  }

  #freeze(): void {
    this.#frozen = this.#recent
    this.#recent = this.#spare ?? new RecentKeys(this.#runKeys)
    this.#recent.clear()
    this.#spare = null
    this.#writer = this.#runs.writer(this.#frozen, this.#newest)
  }

  /** At a start that finds more keys than fit. */
  #writeWhole(database: DatabaseSync): void {
    const writer = this.#runs.writer(this.#recent, this.#newest)
    database.exec('BEGIN')
    writer.write(CHUNKS)
    database.exec('COMMIT')
    writer.publish()
    this.#recent.clear()
  }
}
