// The writing thread's commands about the configuration and values stored beside it. Secrets are already encrypted: this thread has no key.

import type { VersionRow } from '../../configuration/configuration-rows.ts'
import type { TABLES } from '../../configuration/resource-rows.ts'
import type { UsedAssertion } from '../../store.ts'
import { writeSetting } from '../schema/settings.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterContext } from '../threads/writer-context.ts'

export interface Row {
  table: (typeof TABLES)[keyof typeof TABLES]
  id: string
  columns: Record<string, string | number>
}

/** Each use of an assertion adds one row and removes up to this many expired ones, so the table stays small. */
const FORGOTTEN_PER_USE = 100

export function configurationCommands({ rows }: WriterContext) {
  return {
    createRow: {
      run({ table, id, columns }: Row): void {
        const names = Object.keys(columns)
        const sql = `INSERT INTO ${table} (id, ${names.join(', ')}) VALUES (?${', ?'.repeat(names.length)})`
        rows.run(sql, id, ...Object.values(columns))
      },
    },
    updateRow: {
      run({ table, id, columns }: Row): void {
        const changes = Object.keys(columns).map((name) => `${name} = ?`)
        rows.run(`UPDATE ${table} SET ${changes.join(', ')} WHERE id = ?`, ...Object.values(columns), id)
      },
    },
    deleteRow: { run: ({ table, id }: Omit<Row, 'columns'>) => void rows.run(`DELETE FROM ${table} WHERE id = ?`, id) },
    putVersion: {
      run({ destinationId, version, atMs, actorId, actorName, content }: VersionRow): void {
        const put = `INSERT INTO destination_versions (destination, version, at, actor, actor_name, content) VALUES (?, ?, ?, ?, ?, ?)
          ON CONFLICT (destination, version) DO UPDATE SET content = excluded.content`
        rows.run(put, destinationId, version, atMs, actorId, actorName, content)
      },
    },
    dropVersions: {
      run: ({ destinationId, upTo }: { destinationId: string; upTo: number }) =>
        void rows.run('DELETE FROM destination_versions WHERE destination = ? AND version <= ?', destinationId, upTo),
    },
    createSuppressions: {
      run({ userIds, sourceIds, atMs }: { userIds: readonly string[]; sourceIds: readonly string[]; atMs: number }): void {
        const insert = 'INSERT OR IGNORE INTO suppressions (source, user_id, since) SELECT num, ?, ? FROM sources WHERE id = ?'
        for (const sourceId of sourceIds) for (const userId of userIds) rows.run(insert, userId, atMs, sourceId)
      },
    },
    deleteSuppressions: {
      run({ userId, sourceIds }: { userId: string; sourceIds: readonly string[] }): void {
        const remove = 'DELETE FROM suppressions WHERE user_id = ? AND source = (SELECT num FROM sources WHERE id = ?)'
        for (const sourceId of sourceIds) rows.run(remove, userId, sourceId)
      },
    },
    /** The value null removes the setting. */
    setSetting: { run: ({ name, value }: { name: string; value: string | null }) => writeSetting(rows.database, name, value) },
    useToken: {
      run: ({ id, atMs }: { id: string; atMs: number }) =>
        void rows.run('UPDATE tokens SET last_used_at = max(ifnull(last_used_at, 0), ?) WHERE id = ?', atMs, id),
    },
    /** Returns whether this was the first use of the assertion. The primary key decides. */
    useAssertion: {
      run({ assertion: { appId, jti, keepUntilMs }, nowMs }: { assertion: UsedAssertion; nowMs: number }): boolean {
        const forget = `DELETE FROM oauth_assertions WHERE (app, jti) IN
          (SELECT app, jti FROM oauth_assertions WHERE expires_at < ? ORDER BY expires_at LIMIT ${FORGOTTEN_PER_USE})`
        rows.run(forget, nowMs)
        const insert = 'INSERT INTO oauth_assertions (app, jti, expires_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING'
        return rows.run(insert, appId, jti, keepUntilMs) === 1
      },
    },
  } satisfies Record<string, WriterCommand>
}
