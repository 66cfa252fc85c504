// Encrypts or removes credentials that earlier versions wrote to the database in plain text: see ../../configuration/unencrypted-credentials.ts. Runs once, in the
// transaction of the schema step, while no node runs. PostgreSQL removes the old row versions later: see docs/operations/upgrade.md.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import { checkSecrets, configurationTables } from '../../configuration/configuration-tables.ts'
import { encryptedDestinationDoc, encryptionWith, REDACTED, redactedTexts } from '../../configuration/unencrypted-credentials.ts'
import type { Ask } from '../session/database.ts'
import { sqlOf } from '../tables/sql.ts'

/** Throws SecretBoxError if the key is not the one that the stored secrets are encrypted with. */
export async function encryptCredentials(ask: Ask, box: SecretBox): Promise<void> {
  await encryptDestinations(ask, box)
  // Null means all URLs of the destination: if it has several, some are tried once more than necessary.
  await ask("UPDATE shipments SET urls = NULL WHERE urls LIKE '%?%'")
  for (const redacted of REDACTED) {
    const { table, column } = redacted
    for await (const texts of redactedTexts(sqlOf(ask), redacted)) {
      if (texts.length > 0)
        await ask(
          `UPDATE ${table} SET ${column} = new.text FROM unnest($1::bigint[], $2::text[]) AS new (id, text) WHERE ${table}.id = new.id`,
          [texts.map(({ id }) => id), texts.map(({ text }) => text)],
        )
    }
  }
}

/** Throws SecretBoxError like the above. */
export async function encryptDestinations(ask: Ask, box: SecretBox): Promise<void> {
  await checkSecrets(configurationTables(sqlOf(ask)), box)
  const { rows } = await ask<{ num: string; deleted: boolean; doc: string }>('SELECT num, deleted, doc FROM destinations')
  for (const { num, deleted, doc } of rows)
    await ask('UPDATE destinations SET doc = $2 WHERE num = $1', [num, encryptedDestinationDoc(doc, deleted, encryptionWith(box))])
}
