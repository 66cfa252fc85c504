// Encrypts or removes credentials that earlier versions wrote to the file in plain text: see ../../configuration/unencrypted-credentials.ts. Runs once, at the
// first start of a version that encrypts them, before anything else is done with the file. If it is interrupted, the next start does it again.
// Afterwards the old texts are nowhere in the file: pages that SQLite has freed are overwritten too.

import type { DatabaseSync } from 'node:sqlite'
import type { SecretBox } from '../../../secrets/secret-box.ts'
import { checkSecrets, configurationTables } from '../../configuration/configuration-tables.ts'
import { encryptedDestinationDoc, encryptionWith, REDACTED, redactedTexts } from '../../configuration/unencrypted-credentials.ts'
import { openWriter } from '../schema/database.ts'
import { Rows } from '../schema/rows.ts'
import { writeSetting } from '../schema/settings.ts'

/** The setting that the schema migration writes if this must run. Removed at the end. */
export const PLAIN_CREDENTIALS = 'plain_credentials'

/** 16 MB at a time, so that the write-ahead log stays small. */
const PAGES_AT_ONCE = 4_096

/** The caller must hold the store's lock. Throws SecretBoxError, and changes nothing, if the key is not the key of the store. */
export async function encryptCredentials(path: string, box: SecretBox): Promise<void> {
  const database = openWriter(path)
  try {
    database.exec('PRAGMA secure_delete = ON')
    const rows = new Rows(database)
    await checkSecrets(configurationTables(rows), box)
    let isChanged = encryptDestinations(database, box)
    for (const redacted of REDACTED) {
      const update = `UPDATE ${redacted.table} SET ${redacted.column} = ? WHERE id = ?`
      for await (const texts of redactedTexts(rows, redacted)) {
        inTransaction(database, () => {
          for (const { id, text } of texts) rows.run(update, [text, id])
        })
        isChanged ||= texts.length > 0
      }
    }
    if (isChanged) overwriteFreePages(database)
    writeSetting(database, PLAIN_CREDENTIALS, null)
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    database.close()
  }
}

function encryptDestinations(database: DatabaseSync, box: SecretBox): boolean {
  const rows = database.prepare('SELECT num, deleted, doc FROM destinations').all() as { num: number; deleted: number; doc: string }[]
  const docs = rows.map(({ num, deleted, doc }) => ({ num, doc: encryptedDestinationDoc(doc, deleted === 1, encryptionWith(box)) }))
  const update = database.prepare('UPDATE destinations SET doc = ? WHERE num = ?')
  inTransaction(database, () => {
    for (const { num, doc } of docs) update.run(doc, num)
    // Null means all of the destination's URLs. If it has several, some are tried once more than necessary.
    database.exec("UPDATE shipments SET urls = NULL WHERE urls LIKE '%?%'")
  })
  return docs.length > 0
}

/**
 * A free page keeps its content until it is used again. So all free pages are filled with zeros and freed again. VACUUM would remove them too,
 * but needs space for a second copy of the file.
 */
function overwriteFreePages(database: DatabaseSync): void {
  database.exec('DROP TABLE IF EXISTS overwritten_pages; CREATE TABLE overwritten_pages (zeros BLOB NOT NULL) STRICT')
  const { page_size: pageBytes } = database.prepare('PRAGMA page_size').get() as { page_size: number }
  const free = database.prepare('PRAGMA freelist_count')
  const insert = database.prepare('INSERT INTO overwritten_pages (zeros) VALUES (zeroblob(?))')
  for (;;) {
    const { freelist_count: left } = free.get() as { freelist_count: number }
    if (left === 0) break
    insert.run(Math.min(left, PAGES_AT_ONCE) * pageBytes)
    database.exec('PRAGMA wal_checkpoint(PASSIVE)')
  }
  const remove = database.prepare('DELETE FROM overwritten_pages WHERE rowid = (SELECT max(rowid) FROM overwritten_pages)')
  while (remove.run().changes > 0) database.exec('PRAGMA wal_checkpoint(PASSIVE)')
  database.exec('DROP TABLE overwritten_pages')
}

function inTransaction(database: DatabaseSync, work: () => void): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    work()
    database.exec('COMMIT')
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
  database.exec('PRAGMA wal_checkpoint(PASSIVE)')
}
