// What the store keeps in memory and reads at its start: the configuration, and work that a crash left in the middle.

import type { Source } from '../store.ts'
import type { StoredDestination } from './commands.ts'
import type { Rows } from './rows.ts'

export class ConfigurationReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  all(): { sources: Source[]; destinations: StoredDestination[]; suppressions: { sourceId: string; userId: string }[] } {
    const docs = (table: string): unknown[] =>
      (this.#rows.all(`SELECT doc FROM ${table} WHERE deleted = 0 ORDER BY num`) as { doc: string }[]).map(({ doc }) => JSON.parse(doc))
    const suppressed = this.#rows.all('SELECT s.id AS sourceId, user_id AS userId FROM suppressions JOIN sources s ON s.num = source')
    return {
      sources: docs('sources') as Source[],
      destinations: docs('destinations') as StoredDestination[],
      suppressions: suppressed as { sourceId: string; userId: string }[],
    }
  }

  /** Work that a crash left in the middle: destinations deleted but still owed something, deletions not purged to the end. */
  unfinished(): { cancelling: string[]; purging: number[] } {
    const deleted = this.#rows.all(
      'SELECT id FROM destinations WHERE deleted = 1 AND EXISTS (SELECT 1 FROM shipments WHERE destination = destinations.num)',
    ) as { id: string }[]
    const purging = this.#rows.all('SELECT num FROM deletions WHERE purge_cursor < purge_end ORDER BY num') as { num: number }[]
    return { cancelling: deleted.map(({ id }) => id), purging: purging.map(({ num }) => num) }
  }

  setting(name: string): string | undefined {
    return this.#rows.setting(name)
  }
}
