// Reads the configuration, which the store keeps in memory, and the work that was unfinished when the process last ended.

import { configurationTables } from '../../configuration/configuration-tables.ts'
import { SELECT_TOKENS, type TokenRow, tokenOf } from '../../configuration/resource-rows.ts'
import type { StoredDestination } from '../../configuration/stored-destination.ts'
import type { NewDeletion, OAuthApp, Source, StoredPlan } from '../../store.ts'
import type { Rows } from '../schema/rows.ts'

export interface UnfinishedPurge extends NewDeletion {
  num: number
  end: number
}

export function configurationReads(rows: Rows) {
  const docs = <Resource>(from: string): Resource[] =>
    rows.all<{ doc: string }>(`SELECT doc FROM ${from} ORDER BY num`).map(({ doc }) => JSON.parse(doc) as Resource)
  return {
    ...configurationTables(rows),

    /** The secrets of destinations are encrypted: this thread has no key. */
    all() {
      const suppressions = new Map<string, Set<string>>()
      const suppressed = rows.all<{ sourceId: string; userId: string }>(
        'SELECT s.id AS sourceId, user_id AS userId FROM suppressions JOIN sources s ON s.num = source',
      )
      for (const { sourceId, userId } of suppressed) suppressions.set(sourceId, (suppressions.get(sourceId) ?? new Set()).add(userId))
      return {
        sources: byId(docs<Source>('sources WHERE deleted = 0')),
        destinations: docs<StoredDestination>('destinations WHERE deleted = 0'),
        suppressions,
        oauthApps: byId(docs<OAuthApp>('oauth_apps')),
        plans: byId(docs<StoredPlan>('plans WHERE deleted = 0')),
        tokens: byId(rows.all<TokenRow>(SELECT_TOKENS).map(tokenOf)),
      }
    },

    /** Deleted destinations that still have pending deliveries, deletion requests whose purge has not ended, and the last deletion request. */
    unfinished() {
      const cancelling = rows.all<{ id: string }>(
        'SELECT id FROM destinations WHERE deleted = 1 AND EXISTS (SELECT 1 FROM shipments WHERE destination = destinations.num)',
      )
      const purging = rows.all<{ num: number; suppress: number; userIds: string; end: number; sourceIds: string | null }>(
        `SELECT num, suppress, user_ids AS userIds, purge_end AS "end", CASE WHEN every_source = 0
           THEN (SELECT json_group_array(s.id) FROM sources s WHERE s.num IN (SELECT value FROM json_each(deletions.sources))) END AS sourceIds
         FROM deletions WHERE purge_cursor < purge_end ORDER BY num`,
      )
      const [last] = rows.all<{ num: number | null }>('SELECT max(num) AS num FROM deletions')
      return {
        lastDeletion: last?.num ?? 0,
        cancelling: cancelling.map(({ id }) => id),
        purging: purging.map(
          ({ num, suppress, userIds, sourceIds, end }): UnfinishedPurge => ({
            num,
            suppress: suppress === 1,
            userIds: JSON.parse(userIds) as string[],
            sourceIds: sourceIds === null ? null : (JSON.parse(sourceIds) as string[]),
            end,
          }),
        ),
      }
    },
  }
}

function byId<T extends { id: string }>(resources: readonly T[]): Map<string, T> {
  return new Map(resources.map((resource) => [resource.id, resource]))
}
