// Pseudonyms of users, which replace their ids in records that are kept for a long time. A pseudonym is a keyed hash: whoever knows the id can
// find the user's records, and the id cannot be guessed from the file alone. The key is one of the store's encrypted secrets.

import { createHmac, randomBytes } from 'node:crypto'

export function newPseudonymKey(): string {
  return randomBytes(32).toString('base64url')
}

/** Half of a surrogate pair. UTF-8 cannot encode it: all of them would become the same replacement character. */
const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

export function pseudonymOf(userId: string, key: string): string {
  const hmac = LONE_SURROGATE.test(userId)
    ? createHmac('sha256', `${key} utf16`).update(userId, 'utf16le')
    : createHmac('sha256', key).update(userId, 'utf8')
  return `user_${hmac.digest('base64url').slice(0, 27)}`
}
