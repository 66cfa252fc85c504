// The names under which users stand in what is kept for long: a keyed hash, so that a user can be looked up by whoever has
// the id, and the id cannot be guessed from the file alone. The key is one of the store's sealed secrets.

import { createHmac, randomBytes } from 'node:crypto'

export function newPseudonymKey(): string {
  return randomBytes(32).toString('base64url')
}

export function pseudonymOf(userId: string, key: string): string {
  return `user_${createHmac('sha256', key).update(userId, 'utf8').digest('base64url').slice(0, 27)}`
}
