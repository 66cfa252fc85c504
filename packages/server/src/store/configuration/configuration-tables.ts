// The tables of the configuration and of the values stored beside it, in the SQL that both adapters understand. Secrets are already encrypted.

import type { SecretBox } from '../../secrets/secret-box.ts'
import { insertRow, type Sql, type SqlValue } from '../encoding/sql.ts'
import { endOfPrefix } from '../port/documents.ts'
import { INTEGRATION_STATE, SUFFIX_CHARS, statePrefix, stateSuffix } from '../port/integration-state.ts'
import type { UsedAssertion } from '../port/secrets.ts'
import { WAREHOUSE_DOCUMENTS } from '../port/warehouse-tables.ts'
import { SECRET_PREFIX, VERSION_PAGE_BYTES, type VersionRow } from './configuration-rows.ts'
import type { TABLES } from './resource-rows.ts'

type Table = (typeof TABLES)[keyof typeof TABLES]
type Columns = Readonly<Record<string, SqlValue>>

export interface EncryptedSecret {
  /** The name of its setting. */
  name: string
  value: string
}

/** Each use of an assertion adds one row and removes up to this many expired ones, so the table stays small. */
const EXPIRED_PER_USE = 100

export function configurationTables(sql: Sql) {
  return {
    insert: (table: Table, columns: Columns) => insertRow(sql, table, columns),
    update: (table: Table, id: string, columns: Columns) =>
      sql.run(
        `UPDATE ${table} SET ${Object.keys(columns)
          .map((name) => `${name} = ?`)
          .join(', ')} WHERE id = ?`,
        [...Object.values(columns), id],
      ),
    delete: (table: Table, id: string) => sql.run(`DELETE FROM ${table} WHERE id = ?`, [id]),

    async versions(destinationId: string, below: number, limit: number): Promise<VersionRow[]> {
      const rows = await sql.all<VersionRow>(
        `SELECT destination AS "destinationId", version, at AS "atMs", actor AS "actorId", actor_name AS "actorName", content FROM (
           SELECT *, sum(length(content)) OVER (ORDER BY version DESC) - length(content) AS bytes_before
           FROM destination_versions WHERE destination = ? AND version < ? ORDER BY version DESC LIMIT ?
         ) AS newest WHERE bytes_before <= ${VERSION_PAGE_BYTES} ORDER BY version DESC`,
        [destinationId, below, limit],
      )
      return rows.map((row) => sql.read(row, 'actorName'))
    },
    putVersion: ({ destinationId, version, atMs, actorId, actorName, content }: VersionRow) =>
      sql.run(
        `INSERT INTO destination_versions (destination, version, at, actor, actor_name, content) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (destination, version) DO UPDATE SET content = excluded.content`,
        [destinationId, version, atMs, actorId, sql.text(actorName), content],
      ),
    dropVersions: (destinationId: string, upTo: number) =>
      sql.run('DELETE FROM destination_versions WHERE destination = ? AND version <= ?', [destinationId, upTo]),

    dropState(destinationId: string) {
      const prefix = statePrefix(destinationId)
      const kinds = [INTEGRATION_STATE, ...WAREHOUSE_DOCUMENTS]
      return sql.run(`DELETE FROM documents WHERE kind IN (${kinds.map(() => '?').join(', ')}) AND (key = ? OR (key >= ? AND key < ?))`, [
        ...kinds,
        destinationId,
        prefix,
        endOfPrefix(prefix),
      ])
    },
    /** Reads all entries: they are few, and so are requests to delete users. */
    dropStateOf: (userIds: readonly string[]) =>
      sql.run(`DELETE FROM documents WHERE kind = ? AND ${sql.among(`substr(key, length(key) - ${SUFFIX_CHARS - 1})`, 'text')}`, [
        INTEGRATION_STATE,
        sql.list(userIds.map(stateSuffix)),
      ]),

    /** The encrypted secrets. */
    secrets: async (): Promise<EncryptedSecret[]> =>
      sql.all(`SELECT name, value FROM settings WHERE substr(name, 1, ${SECRET_PREFIX.length}) = '${SECRET_PREFIX}'`),
    async getSetting(name: string): Promise<string | undefined> {
      const [row] = await sql.all<{ value: string }>('SELECT value FROM settings WHERE name = ?', [sql.text(name)])
      return row && sql.read(row, 'value').value
    },
    /** The value null removes the setting. */
    async setSetting(name: string, value: string | null): Promise<void> {
      if (value === null) await sql.run('DELETE FROM settings WHERE name = ?', [sql.text(name)])
      else
        await sql.run('INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value', [
          sql.text(name),
          sql.text(value),
        ])
    },

    tokenUses: async (): Promise<{ id: string; atMs: number }[]> =>
      sql.all('SELECT id, last_used_at AS "atMs" FROM tokens WHERE last_used_at IS NOT NULL'),
    async useToken(id: string, atMs: number): Promise<void> {
      await sql.run('UPDATE tokens SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)', [atMs, id, atMs])
    },
    /** In a transaction. Returns whether this is the first use; the primary key decides, also for an assertion that has expired. */
    async useAssertion({ appId, jti, keepUntilMs }: UsedAssertion, nowMs: number): Promise<boolean> {
      const expired = `SELECT app, jti FROM oauth_assertions WHERE expires_at < ? AND (app, jti) <> (?, ?) ORDER BY expires_at LIMIT ${EXPIRED_PER_USE} ${sql.lock('FOR UPDATE SKIP LOCKED')}`
      const used = [sql.text(appId), sql.text(jti)]
      await sql.run(`DELETE FROM oauth_assertions WHERE (app, jti) IN (${expired})`, [Math.floor(nowMs), ...used])
      const insert = 'INSERT INTO oauth_assertions (app, jti, expires_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING'
      return (await sql.run(insert, [...used, Math.floor(keepUntilMs)])) === 1
    },
  }
}

export type ConfigurationTables = ReturnType<typeof configurationTables>

/** Throws SecretBoxError if the key cannot decrypt one of the stored secrets. */
export async function checkSecrets({ secrets }: Pick<ConfigurationTables, 'secrets'>, secretBox: SecretBox): Promise<void> {
  for (const { name, value } of await secrets()) secretBox.open(value, name)
}
