// Finds out whether a message was accepted before. The newest keys are in memory, older ones in runs on disk. Keys that are only in memory are also
// part of their segments, from which a start reads them again, so a commit writes no key twice. Invariant: keys that were added and
// committed are found for at least the deduplication time; keys that were rolled back are not.

import type { DatabaseSync } from 'node:sqlite'
import { isKey, KEY_WORDS } from '../../encoding/segment-keys.ts'
import { CHUNKS, KeyRuns, type RunWriter } from './key-runs.ts'
import { RecentKeys } from './recent-keys.ts'

/** The number of keys in memory before they are written as a run. A table has 13 MB, and there are two. */
const RUN_KEYS = 2 ** 18
/** Of 1,024 chunks. A run is written over many commits, so that none of them is delayed noticeably. */
const CHUNKS_PER_COMMIT = 32
/** A table counts as full at this share of a run's keys. It has two slots per key, so the keys of one more group of commits always fit. */
const FULL = 0.9

export class Duplicates {
  readonly #runs: KeyRuns
  readonly #runKeys: number
  #recent: RecentKeys
  #frozen: RecentKeys | null = null
  /** A table whose run has been written, to be reused. Allocating a new one each time would leave 13 MB of garbage. */
  #spare: RecentKeys | null = null
  #writer: RunWriter | null = null
  #completed = false
  #newest = 0
  /** The oldest segment with keys in the newest table. */
  #oldestRecent = 0
  /** Keys of older segments need not be found any more. */
  #neededFrom: number
  #isFreezeDue = false
  /** The slots that were filled since begin(). */
  #added: number[] = []

  constructor(database: DatabaseSync, oldestSegment: number, runKeys = RUN_KEYS) {
    this.#runKeys = runKeys
    this.#neededFrom = oldestSegment
    this.#recent = new RecentKeys(runKeys)
    this.#runs = new KeyRuns(database)
    const covered = this.#runs.load(database, oldestSegment)
    database.prepare('DELETE FROM key_chunks WHERE run NOT IN (SELECT id FROM key_runs)').run()
    const rows = database.prepare('SELECT seq, keys FROM segments WHERE seq > ?').iterate(covered)
    for (const { seq, keys } of rows as Iterable<{ seq: number; keys: Uint8Array }>) {
      const words = new Uint32Array(keys.slice().buffer)
      if (this.#recent.size + words.length / KEY_WORDS > this.#runKeys) this.#writeWhole(database)
      if (this.#recent.size === 0) this.#oldestRecent = seq
      for (let at = 0; at < words.length; at += KEY_WORDS) if (isKey(words, at)) this.#recent.add(words, at, seq)
      this.#newest = seq
    }
  }

  begin(): void {
    this.#added.length = 0
  }

  /** Returns false if the key is already known. */
  add(words: Uint32Array, at: number, segment: number): boolean {
    if (this.#frozen !== null && this.#frozen.find(words, at) !== 0) return false
    // The table in memory is searched first, because most duplicates are retries of a client and are found there.
    if (this.#recent.size === 0) this.#oldestRecent = segment
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

  /** The segment that contains a key for which `add` returned false. */
  holder(words: Uint32Array, at: number): number {
    return this.#frozen?.find(words, at) || this.#recent.find(words, at) || this.#runs.find(words, at)
  }

  /** Called in the transaction, before its commit. Writes a part of a full table. */
  write(): void {
    if (this.#writer === null || this.#completed) return
    // The next table fills faster than this one is written. There is no third table, so the rest is written at once.
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
    if ((this.#isFreezeDue || this.#recent.size >= this.#runKeys * FULL) && this.#frozen === null) this.#freeze()
  }

  /** The frozen table is still complete in memory, so the part of its run that was rolled back is written again. */
  rolledBack(): void {
    while (this.#added.length > 0) this.#recent.undo(this.#added.pop() as number)
    this.#runs.rolledBack()
    this.#writer?.rolledBack()
    this.#completed = false
  }

  /** The segments that contain the key, newest first. More than one if a message was sent again after the deduplication time. */
  findAll(words: Uint32Array, at: number): number[] {
    const inMemory = this.#recent.find(words, at) || this.#frozen?.find(words, at)
    return inMemory ? [inMemory, ...this.#runs.findAll(words, at)] : this.#runs.findAll(words, at)
  }

  /** Runs older than this no longer stop duplicates. They are dropped together with the segments that they refer to. */
  forget(oldestSegment: number): void {
    this.#neededFrom = oldestSegment
    this.#runs.forget(oldestSegment)
  }

  /**
   * Called in transactions before segments up to `cutoff` are dropped, until it returns false. Keys that are only in memory would be lost with
   * their segments at the next restart, so they are written as a run if they are still needed. They are only if the clock is wrong.
   */
  saveStep(cutoff: number): boolean {
    if (cutoff <= this.#neededFrom) return false
    if (this.#frozen !== null) return true
    this.#isFreezeDue = this.#recent.size > 0 && this.#oldestRecent < cutoff
    return this.#isFreezeDue
  }

  dropStep(oldestSegment: number): boolean {
    return this.#runs.dropStep(oldestSegment, CHUNKS_PER_COMMIT)
  }

  #freeze(): void {
    this.#isFreezeDue = false
    this.#frozen = this.#recent
    this.#recent = this.#spare ?? new RecentKeys(this.#runKeys)
    this.#recent.clear()
    this.#spare = null
    this.#writer = this.#runs.writer(this.#frozen, this.#newest)
  }

  /** Used at a start that finds more keys than fit in memory. */
  #writeWhole(database: DatabaseSync): void {
    const writer = this.#runs.writer(this.#recent, this.#newest)
    database.exec('BEGIN')
    writer.write(CHUNKS)
    database.exec('COMMIT')
    writer.publish()
    this.#recent.clear()
  }
}
