// Between the ids that the world knows and the names that rows refer to. All that there ever were, deleted ones too: there
// are few. Filled with the configuration; what another node made since is looked up when it is met.

import type { Ask } from '../session/database.ts'

type Table = 'sources' | 'destinations'

export class IdMap {
  readonly #nums = { sources: new Map<string, string>(), destinations: new Map<string, string>() }
  readonly #ids = { sources: new Map<string, string>(), destinations: new Map<string, string>() }

  add(table: Table, id: string, num: string): void {
    this.#nums[table].set(id, num)
    this.#ids[table].set(num, id)
  }

  /** Undefined when this node knows of none. */
  num(table: Table, id: string): string | undefined {
    return this.#nums[table].get(id)
  }

  /** Undefined when this node knows of none. */
  id(table: Table, num: string): string | undefined {
    return this.#ids[table].get(num)
  }

  /** The ids of those that rows refer to: all of them are known, deleted ones too. */
  async idsOf(ask: Ask, table: Table, nums: Iterable<string>): Promise<(num: string) => string> {
    const unknown = [...new Set(nums)].filter((num) => !this.#ids[table].has(num))
    if (unknown.length > 0) {
      const { rows } = await ask<{ num: string; id: string }>(`SELECT num, id FROM ${table} WHERE num = ANY($1::bigint[])`, [unknown])
      for (const { num, id } of rows) this.add(table, id, num)
    }
    return (num) => this.#ids[table].get(num) ?? num
  }

  /** Undefined when there never was one. */
  async find(ask: Ask, table: Table, id: string): Promise<string | undefined> {
    const known = this.num(table, id)
    if (known !== undefined) return known
    // Asked for by strangers, and refused by PostgreSQL as a text.
    if (id.includes('\0')) return undefined
    const { rows } = await ask<{ num: string }>(`SELECT num FROM ${table} WHERE id = $1`, [id])
    if (rows[0]) this.add(table, id, rows[0].num)
    return rows[0]?.num
  }
}
