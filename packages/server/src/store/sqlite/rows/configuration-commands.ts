// The writing thread's commands about the configuration and what is stored beside it. Secrets come here sealed: this thread has no key.

import type { TABLES } from '../../configuration/stored-things.ts'
import type { UsedAssertion } from '../../store.ts'
import { writeSetting } from '../schema/settings.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterParts } from '../threads/writer-parts.ts'

interface Row {
  table: (typeof TABLES)[keyof typeof TABLES]
  id: string
  columns: Record<string, string | number>
}

/** Each use removes more than it adds, so the table holds few assertions beside those that can still be used. */
const FORGOTTEN_PER_USE = 100

export function configurationCommands({ database }: WriterParts) {
  return {
    createRow: {
      run({ table, id, columns }: Row): void {
        const names = Object.keys(columns)
        database
          .prepare(`INSERT INTO ${table} (id, ${names.join(', ')}) VALUES (?${', ?'.repeat(names.length)})`)
          .run(id, ...Object.values(columns))
      },
    },
    updateRow: {
      run({ table, id, columns }: Row): void {
        const changes = Object.keys(columns).map((name) => `${name} = ?`)
        database.prepare(`UPDATE ${table} SET ${changes.join(', ')} WHERE id = ?`).run(...Object.values(columns), id)
      },
    },
    deleteRow: {
      run({ table, id }: Omit<Row, 'columns'>): void {
        database.prepare(`DELETE FROM ${table} WHERE id = ?`).run(id)
      },
    },
    createSuppressions: {
      run({ userIds, sourceIds, atMs }: { userIds: readonly string[]; sourceIds: readonly string[]; atMs: number }): void {
        const insert = database.prepare(
          'INSERT OR IGNORE INTO suppressions (source, user_id, since) SELECT num, ?, ? FROM sources WHERE id = ?',
        )
        for (const sourceId of sourceIds) for (const userId of userIds) insert.run(userId, atMs, sourceId)
      },
    },
    deleteSuppressions: {
      run({ userId, sourceIds }: { userId: string; sourceIds: readonly string[] }): void {
        const remove = database.prepare('DELETE FROM suppressions WHERE user_id = ? AND source = (SELECT num FROM sources WHERE id = ?)')
        for (const sourceId of sourceIds) remove.run(userId, sourceId)
      },
    },
    /** Null removes it. */
    setSetting: {
      run({ name, value }: { name: string; value: string | null }): void {
        if (value === null) database.prepare('DELETE FROM settings WHERE name = ?').run(name)
        else writeSetting(database, name, value)
      },
    },
    useToken: {
      run({ id, atMs }: { id: string; atMs: number }): void {
        database.prepare('UPDATE tokens SET last_used_at = max(ifnull(last_used_at, 0), ?) WHERE id = ?').run(atMs, id)
      },
    },
    /** Whether it was the first use: the primary key decides. */
    useAssertion: {
      run({ assertion: { appId, jti, keepUntilMs }, nowMs }: { assertion: UsedAssertion; nowMs: number }): boolean {
        database
          .prepare(
            `DELETE FROM oauth_assertions WHERE (app, jti) IN
               (SELECT app, jti FROM oauth_assertions WHERE expires_at < ? ORDER BY expires_at LIMIT ${FORGOTTEN_PER_USE})`,
          )
          .run(nowMs)
        const { changes } = database
          .prepare('INSERT INTO oauth_assertions (app, jti, expires_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING')
          .run(appId, jti, keepUntilMs)
        return changes === 1
      },
    },
  } satisfies Record<string, WriterCommand>
}
