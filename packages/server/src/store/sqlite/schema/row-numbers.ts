// Maps the public ids of sources and destinations to the numbers by which rows refer to them, for the threads that read and write rows.

import type { DatabaseSync } from 'node:sqlite'

export class RowNumbers {
  readonly #table: 'sources' | 'destinations'
  readonly #database: DatabaseSync
  readonly #nums = new Map<string, number>()
  readonly #ids = new Map<number, string>()

  constructor(database: DatabaseSync, table: 'sources' | 'destinations') {
    this.#database = database
    this.#table = table
  }

  /** Returns undefined if there never was a source or destination with this id. */
  num(id: string): number | undefined {
    const known = this.#nums.get(id)
    if (known !== undefined) return known
    const row = this.#database.prepare(`SELECT num FROM ${this.#table} WHERE id = ?`).get(id) as { num: number } | undefined
    if (row === undefined) return undefined
    this.#nums.set(id, row.num)
    this.#ids.set(row.num, id)
    return row.num
  }

  id(num: number): string {
    const known = this.#ids.get(num)
    if (known !== undefined) return known
    const row = this.#database.prepare(`SELECT id FROM ${this.#table} WHERE num = ?`).get(num) as { id: string } | undefined
    if (row === undefined) throw new Error(`no row ${num} in ${this.#table}`)
    this.#nums.set(row.id, num)
    this.#ids.set(num, row.id)
    return row.id
  }

  /** Clears the cache: after a rollback, a number may not exist any more. */
  rolledBack(): void {
    this.#nums.clear()
    this.#ids.clear()
  }
}
