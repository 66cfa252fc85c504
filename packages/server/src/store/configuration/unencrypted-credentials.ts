// Receivers' credentials that earlier versions stored in plain text: in the URLs and headers of destinations, in the URLs of attempts,
// and in the oldest audit entries. Each function turns a stored text into its current form, so that both adapters and the migration
// between them do the same. The adapters know where such texts are.

import { kindOf } from '../../destinations/kinds.ts'
import type { Encryption } from '../../destinations/port/kind.ts'
import { HIDDEN, hiddenUrl } from '../../secrets/hidden-url.ts'
import type { SecretBox } from '../../secrets/secret-box.ts'
import type { AttemptDoc } from '../encoding/attempt-doc.ts'
import type { Sql } from '../encoding/sql.ts'
import type { RowId } from '../store.ts'
import { destinationWithoutSecrets, type StoredDestination } from './stored-destination.ts'

const PAGE_ROWS = 1_000

/** Encryption with one key. Texts that are already encrypted must be encrypted with that key, and stay unchanged. */
export function encryptionWith(box: SecretBox): Encryption {
  return {
    encrypt: (text, context) => box.seal(text, context),
    reencrypt(encrypted, context) {
      box.open(encrypted, context)
      return encrypted
    },
  }
}

/** Converts the doc of a destination, plain or encrypted, to its current form. Throws SecretBoxError. */
export function encryptedDestinationDoc(text: string, isDeleted: boolean, encryption: Encryption): string {
  const doc = JSON.parse(text) as StoredDestination
  // Destinations that were deleted before this version may have secrets that no known key decrypts.
  return JSON.stringify(isDeleted ? destinationWithoutSecrets(doc) : kindOf(doc).upgraded(doc, encryption))
}

/** Removes credentials from the doc of an attempt. Returns undefined if it contains none. */
export function redactAttempt(text: string): string | undefined {
  const doc = JSON.parse(text) as AttemptDoc
  const urls = doc.u.map(hiddenUrl)
  return urls.every((url, at) => url === doc.u[at]) ? undefined : JSON.stringify({ ...doc, u: urls })
}

/** Removes credentials from a destination in an audit entry. Returns undefined if it contains none. */
export function redactAudit(text: string): string | undefined {
  const entry = JSON.parse(text) as { urls?: unknown; headers?: unknown }
  const { urls, headers } = entry
  const hidden = {
    ...entry,
    ...(Array.isArray(urls) && { urls: urls.map((url) => (typeof url === 'string' ? hiddenUrl(url) : url)) }),
    ...(typeof headers === 'object' &&
      headers !== null && { headers: Object.fromEntries(Object.keys(headers).map((name) => [name, HIDDEN])) }),
  }
  const written = JSON.stringify(hidden)
  return written === JSON.stringify(entry) ? undefined : written
}

/** The columns that may have such texts, in rows in which another column, or the same, is like a pattern. */
export const REDACTED = [
  { table: 'attempts', column: 'doc', tested: 'doc', pattern: '{"u":["%?%', redact: redactAttempt },
  { table: 'audit', column: 'before', tested: 'action', pattern: 'destination.%', redact: redactAudit },
  { table: 'audit', column: 'after', tested: 'action', pattern: 'destination.%', redact: redactAudit },
] as const

/** Texts in a column with credentials, without them, in pages, because there may be millions of attempts. */
export async function* redactedTexts<Id extends RowId>(
  sql: Sql<Id>,
  { table, column, tested, pattern, redact }: (typeof REDACTED)[number],
): AsyncGenerator<{ id: Id; text: string }[]> {
  const page = `SELECT id, ${column} AS text FROM ${table} WHERE id > ? AND ${column} IS NOT NULL AND ${tested} LIKE ? ORDER BY id LIMIT ${PAGE_ROWS}`
  for (let after = sql.order.oldest; ; ) {
    const rows = await sql.all<{ id: Id; text: string }>(page, [after, pattern])
    yield rows.flatMap(({ id, text }) => {
      const redacted = redact(text)
      return redacted === undefined ? [] : [{ id, text: redacted }]
    })
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE_ROWS) return
    after = last.id
  }
}
