// What the store keeps in memory and reads at its start: the configuration, and work that a crash left in the middle.

import type { StoredDestination } from '../../configuration/stored-destination.ts'
import { SECRET_PREFIX } from '../../configuration/stored-things.ts'
import type { Configuration, ControlToken, NewDeletion, OAuthApp, Source } from '../../store.ts'
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

  /** With the secrets of destinations sealed: this thread has no key. */
  all(): Omit<Configuration, 'destinations'> & { destinations: StoredDestination[] } {
    const docs = (from: string): unknown[] =>
      (this.#rows.all(`SELECT doc FROM ${from} ORDER BY num`) as { doc: string }[]).map(({ doc }) => JSON.parse(doc))
    const tokens = this.#rows.all('SELECT id, name, role, hash, created_at AS createdAtMs FROM tokens ORDER BY num')
    const suppressions = new Map<string, Set<string>>()
    const suppressed = this.#rows.all('SELECT s.id AS sourceId, user_id AS userId FROM suppressions JOIN sources s ON s.num = source')
    for (const { sourceId, userId } of suppressed as { sourceId: string; userId: string }[]) {
      suppressions.set(sourceId, (suppressions.get(sourceId) ?? new Set()).add(userId))
    }
    return {
      sources: byId(docs('sources WHERE deleted = 0') as Source[]),
      destinations: docs('destinations WHERE deleted = 0') as StoredDestination[],
      suppressions,
      oauthApps: byId(docs('oauth_apps') as OAuthApp[]),
      tokens: byId(tokens as ControlToken[]),
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

function byId<T extends { id: string }>(things: readonly T[]): Map<string, T> {
  return new Map(things.map((thing) => [thing.id, thing]))
}
