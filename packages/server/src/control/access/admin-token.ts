// Control tokens as secrets: made here, kept only as hashes, compared in constant time. A token is 256 random bits, so one
// round of SHA-256 keeps it as well as a slow hash would, and costs an authorized request nothing. The first token, of the
// settings or of the first start, is found here; the others are in the store's configuration.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Actor, Store } from '../../store/store.ts'

/** The token of the settings or of the first start: always an admin's, and never deleted. */
export const FIRST_TOKEN: Actor = { id: 'admin', name: 'admin' }

/** A setting where it was made by an older version; since then a kept secret, which several nodes that start at once agree on. */
const ADMIN_TOKEN_HASH = 'admin_token_hash'

export function generateToken(): string {
  return `sy_${randomBytes(32).toString('base64url')}`
}

/** Of the form above: 256 random bits, unless somebody chose a token of just that form. */
export function looksGenerated(token: string): boolean {
  return /^sy_[\w-]{43}$/.test(token)
}

export function hashToken(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex')
}

/** In time that tells nothing about where they differ: both sides are hashes, so nothing about lengths either. */
export function tokenMatches(token: string, hash: string): boolean {
  const known = Buffer.from(hash, 'hex')
  const given = Buffer.from(hashToken(token), 'hex')
  return known.length === given.length && timingSafeEqual(known, given)
}

export interface AdminToken {
  hash: string
  /** Made just now, to be shown once: only its hash is kept. */
  generated: string | null
}

/** The configured token if there is one; else the one whose hash the store has; else a new one, which one node alone shows. Asked again
 * with the same new one, because the store may have taken it without an answer, it is still shown. */
export async function loadAdminToken(
  { settings, secrets }: Pick<Store, 'settings' | 'secrets'>,
  configured: string | null,
  fresh = generateToken(),
): Promise<AdminToken> {
  if (configured !== null) return { hash: hashToken(configured), generated: null }
  const set = (await settings.getSetting(ADMIN_TOKEN_HASH)) ?? (await secrets.getOrCreate(ADMIN_TOKEN_HASH, hashToken(fresh)))
  return { hash: set, generated: set === hashToken(fresh) ? fresh : null }
}
