// Maps the public ids of sources and destinations to the row ids (`num`) that other rows refer to, and back. It contains deleted ones too, because
// there are few. It is filled when the configuration is read; one that another node created since then is looked up when needed.

import type { Ask } from '../session/database.ts'

type Table = 'sources' | 'destinations'

export class IdMap {
  readonly #nums = { sources: new Map<string, string>(), destinations: new Map<string, string>() }
  readonly #ids = { sources: new Map<string, string>(), destinations: new Map<string, string>() }

  add(table: Table, id: string, num: string): void {
    this.#nums[table].set(id, num)
    this.#ids[table].set(num, id)
  }

  /** Returns undefined if it is not in the map. */
  num(table: Table, id: string): string | undefined {
    return this.#nums[table].get(id)
  }

  /** Returns undefined if it is not in the map. */
  id(table: Table, num: string): string | undefined {
    return this.#ids[table].get(num)
  }

  /** Returns a function from row id to public id, for row ids that rows refer to. Reads the missing ones from the database, where deleted ones remain. */
  async idsOf(ask: Ask, table: Table, nums: Iterable<string>): Promise<(num: string) => string> {
    const unknown = [...new Set(nums)].filter((num) => !this.#ids[table].has(num))
    if (unknown.length > 0) {
      const { rows } = await ask<{ num: string; id: string }>(`SELECT num, id FROM ${table} WHERE num = ANY($1::bigint[])`, [unknown])
      for (const { num, id } of rows) this.add(table, id, num)
    }
    return (num) => this.#ids[table].get(num) ?? num
  }

  /** Returns undefined if it never existed. */
  async find(ask: Ask, table: Table, id: string): Promise<string | undefined> {
    const known = this.num(table, id)
    if (known !== undefined) return known
    // The id comes from a request, and PostgreSQL rejects NUL in a text.
    if (id.includes('\0')) return undefined
    const { rows } = await ask<{ num: string }>(`SELECT num FROM ${table} WHERE id = $1`, [id])
    if (rows[0]) this.add(table, id, rows[0].num)
    return rows[0]?.num
  }
}
