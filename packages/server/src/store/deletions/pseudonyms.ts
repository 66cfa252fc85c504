// The names under which users stand in what is kept for long: a keyed hash, so that a user can be looked up by whoever has
// the id, and the id cannot be guessed from the file alone. The key is one of the store's sealed secrets.

import { createHmac, randomBytes } from 'node:crypto'

export function newPseudonymKey(): string {
  return randomBytes(32).toString('base64url')
}

/** Half of a surrogate pair, which has no form in UTF-8: all of them would become the same. */
const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

export function pseudonymOf(userId: string, key: string): string {
  const hmac = LONE_SURROGATE.test(userId)
    ? createHmac('sha256', `${key} utf16`).update(userId, 'utf16le')
    : createHmac('sha256', key).update(userId, 'utf8')
  return `user_${hmac.digest('base64url').slice(0, 27)}`
}
