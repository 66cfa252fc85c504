// Encrypts or removes credentials that earlier versions wrote to the database in plain text: see ../../configuration/unencrypted-credentials.ts. Runs once, in the
// transaction of the schema step, while no node runs. PostgreSQL removes the old row versions later: see docs/operations/upgrade.md.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import { checkSecrets, configurationTables } from '../../configuration/configuration-tables.ts'
import { encryptedDestinationDoc, encryptionWith, redactAttempt, redactAudit } from '../../configuration/unencrypted-credentials.ts'
import type { Ask } from '../session/database.ts'
import { sqlOf } from '../tables/sql.ts'

const PAGE_ROWS = 2_000

/** Throws SecretBoxError if the key is not the one that the stored secrets are encrypted with. */
export async function encryptCredentials(ask: Ask, box: SecretBox): Promise<void> {
  await encryptDestinations(ask, box)
  // Null means all URLs of the destination: if it has several, some are tried once more than necessary.
  await ask("UPDATE shipments SET urls = NULL WHERE urls LIKE '%?%'")
  await hideIn(ask, 'attempts', 'doc', `doc LIKE '{"u":["%?%'`, redactAttempt)
  for (const column of ['before', 'after'] as const) await hideIn(ask, 'audit', column, "action LIKE 'destination.%'", redactAudit)
}

/** Throws SecretBoxError like the above. */
export async function encryptDestinations(ask: Ask, box: SecretBox): Promise<void> {
  await checkSecrets(configurationTables(sqlOf(ask)), box)
  const { rows } = await ask<{ num: string; deleted: boolean; doc: string }>('SELECT num, deleted, doc FROM destinations')
  for (const { num, deleted, doc } of rows)
    await ask('UPDATE destinations SET doc = $2 WHERE num = $1', [num, encryptedDestinationDoc(doc, deleted, encryptionWith(box))])
}

async function hideIn(
  ask: Ask,
  table: 'attempts' | 'audit',
  column: 'doc' | 'before' | 'after',
  where: string,
  hide: (text: string) => string | undefined,
): Promise<void> {
  for (let after = '0'; ; ) {
    const { rows } = await ask<{ id: string; text: string }>(
      `SELECT id::text AS id, ${column} AS text FROM ${table} WHERE id > $1 AND ${column} IS NOT NULL AND ${where} ORDER BY ${table}.id LIMIT ${PAGE_ROWS}`,
      [after],
    )
    const changed = rows.flatMap(({ id, text }) => {
      const hidden = hide(text)
      return hidden === undefined ? [] : [{ id, text: hidden }]
    })
    if (changed.length > 0)
      await ask(
        `UPDATE ${table} SET ${column} = new.text FROM unnest($1::bigint[], $2::text[]) AS new (id, text) WHERE ${table}.id = new.id`,
        [changed.map(({ id }) => id), changed.map(({ text }) => text)],
      )
    if (rows.length < PAGE_ROWS) return
    after = (rows.at(-1) as { id: string }).id
  }
}
