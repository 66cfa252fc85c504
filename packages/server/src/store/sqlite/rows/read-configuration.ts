// What the store keeps in memory and reads at its start: the configuration, and work that a crash left in the middle.

import type { StoredDestination } from '../../configuration/stored-destination.ts'
import { SECRET_PREFIX } from '../../configuration/stored-things.ts'
import type { ControlToken, NewDeletion, OAuthApp, Source } from '../../store.ts'
import type { Rows } from './rows.ts'

export interface UnfinishedPurge extends NewDeletion {
  num: number
  end: number
}

export class ConfigurationReads {
  readonly #rows: Rows

  constructor(rows: Rows) {
    this.#rows = rows
  }

  all(): {
    sources: Source[]
    destinations: StoredDestination[]
    suppressions: { sourceId: string; userId: string }[]
    oauthApps: OAuthApp[]
    tokens: ControlToken[]
  } {
    const docs = (table: string): unknown[] =>
      (this.#rows.all(`SELECT doc FROM ${table} WHERE deleted = 0 ORDER BY num`) as { doc: string }[]).map(({ doc }) => JSON.parse(doc))
    const apps = this.#rows.all('SELECT doc FROM oauth_apps ORDER BY num') as { doc: string }[]
    const suppressed = this.#rows.all('SELECT s.id AS sourceId, user_id AS userId FROM suppressions JOIN sources s ON s.num = source')
    return {
      sources: docs('sources') as Source[],
      destinations: docs('destinations') as StoredDestination[],
      suppressions: suppressed as { sourceId: string; userId: string }[],
      oauthApps: apps.map(({ doc }) => JSON.parse(doc) as OAuthApp),
      tokens: this.#rows.all('SELECT id, name, role, hash, created_at AS createdAtMs FROM tokens ORDER BY num') as ControlToken[],
    }
  }

  /** Work that a crash left in the middle: destinations deleted but still owed something, deletions not purged to the end. */
  unfinished(): { cancelling: string[]; purging: UnfinishedPurge[] } {
    const deleted = this.#rows.all(
      'SELECT id FROM destinations WHERE deleted = 1 AND EXISTS (SELECT 1 FROM shipments WHERE destination = destinations.num)',
    ) as { id: string }[]
    const purging = this.#rows.all(
      `SELECT num, suppress, user_ids, purge_end, CASE WHEN every_source = 0
         THEN (SELECT json_group_array(s.id) FROM sources s WHERE s.num IN (SELECT value FROM json_each(deletions.sources))) END AS source_ids
       FROM deletions WHERE purge_cursor < purge_end ORDER BY num`,
    ) as { num: number; suppress: number; user_ids: string; purge_end: number; source_ids: string | null }[]
    return {
      cancelling: deleted.map(({ id }) => id),
      purging: purging.map(({ num, suppress, user_ids, purge_end, source_ids }) => ({
        num,
        suppress: suppress === 1,
        userIds: JSON.parse(user_ids) as string[],
        sourceIds: source_ids === null ? null : (JSON.parse(source_ids) as string[]),
        end: purge_end,
      })),
    }
  }

  /** Sealed, by the names of their settings. */
  secrets(): { name: string; value: string }[] {
    return this.#rows.all('SELECT name, value FROM settings WHERE substr(name, 1, ?) = ?', SECRET_PREFIX.length, SECRET_PREFIX) as {
      name: string
      value: string
    }[]
  }

  tokenUses(): { id: string; atMs: number }[] {
    const rows = this.#rows.all('SELECT id, last_used_at AS atMs FROM tokens WHERE last_used_at IS NOT NULL')
    return rows as { id: string; atMs: number }[]
  }

  setting(name: string): string | undefined {
    return this.#rows.setting(name)
  }
}
