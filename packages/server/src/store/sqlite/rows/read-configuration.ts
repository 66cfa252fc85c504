// Reads the configuration, which the store keeps in memory, and the work that was unfinished when the process last ended.

import { SECRET_PREFIX, VERSION_PAGE_BYTES, type VersionRow } from '../../configuration/configuration-rows.ts'
import type { StoredDestination } from '../../configuration/stored-destination.ts'
import type { ControlToken, NewDeletion, OAuthApp, Source, StoredPlan } from '../../store.ts'
import { readSetting } from '../schema/settings.ts'
import type { Rows } from './rows.ts'

export interface UnfinishedPurge extends NewDeletion {
  num: number
  end: number
}

export function configurationReads(rows: Rows) {
  const docs = <Resource>(from: string): Resource[] =>
    rows.all<{ doc: string }>(`SELECT doc FROM ${from} ORDER BY num`).map(({ doc }) => JSON.parse(doc) as Resource)
  return {
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
        tokens: byId(rows.all<ControlToken>('SELECT id, name, role, hash, created_at AS createdAtMs FROM tokens ORDER BY num')),
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

    versions: (destinationId: string, below: number, limit: number) =>
      rows.all<VersionRow>(
        `SELECT destination AS destinationId, version, at AS atMs, actor AS actorId, actor_name AS actorName, content FROM (
           SELECT *, sum(length(content)) OVER (ORDER BY version DESC) - length(content) AS bytesBefore
           FROM destination_versions WHERE destination = ? AND version < ? ORDER BY version DESC LIMIT ?
         ) WHERE bytesBefore <= ${VERSION_PAGE_BYTES} ORDER BY version DESC`,
        destinationId,
        below,
        limit,
      ),

    secrets: () => encryptedSecrets(rows),
    tokenUses: () => rows.all<{ id: string; atMs: number }>('SELECT id, last_used_at AS atMs FROM tokens WHERE last_used_at IS NOT NULL'),
    getSetting: (name: string) => readSetting(rows.database, name),
  }
}

/** The encrypted secrets, each with the name of its setting. */
export function encryptedSecrets(rows: Rows): { name: string; value: string }[] {
  return rows.all('SELECT name, value FROM settings WHERE substr(name, 1, ?) = ?', SECRET_PREFIX.length, SECRET_PREFIX)
}

function byId<T extends { id: string }>(resources: readonly T[]): Map<string, T> {
  return new Map(resources.map((resource) => [resource.id, resource]))
}
