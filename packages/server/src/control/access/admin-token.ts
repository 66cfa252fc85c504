// Generates control tokens, hashes them and compares them in constant time; only hashes are stored. A token has 256 random bits, so one round of
// SHA-256 protects it as well as a slow hash would, at almost no cost per request. The first admin token, from the settings or from the
// first start, is loaded here; the other tokens are in the configuration of the store.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Actor, Store } from '../../store/store.ts'

/** The first admin token, from the settings or from the first start. It always has the role admin and cannot be deleted. */
export const FIRST_TOKEN: Required<Pick<Actor, 'id' | 'name' | 'type' | 'owner'>> = {
  id: 'admin',
  name: 'admin',
  type: 'token',
  owner: null,
}

/** Older versions stored the hash as a setting. It is now a stored secret, on which several nodes that start at the same time agree. */
const ADMIN_TOKEN_HASH = 'admin_token_hash'

export function generateToken(): string {
  return `sy_${randomBytes(32).toString('base64url')}`
}

/** Whether a token has the form of a generated one, and so 256 random bits unless somebody chose a token of this form. */
export function looksGenerated(token: string): boolean {
  return /^sy_[\w-]{43}$/.test(token)
}

/** Whether a token has the form of a generated write key. A token that an operator chose may have it, too. */
export function looksLikeWriteKey(token: string): boolean {
  return /^[\w-]{32}$/.test(token) && !token.startsWith('sy_')
}

export function hashToken(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex')
}

/** Compares in constant time. Both sides are hashes, so the time does not depend on the length of the token either. */
export function tokenMatches(token: string, hash: string): boolean {
  const known = Buffer.from(hash, 'hex')
  const given = Buffer.from(hashToken(token), 'hex')
  return known.length === given.length && timingSafeEqual(known, given)
}

export interface AdminToken {
  hash: string
  /** The token if it was generated now, to be shown once; only its hash is stored. */
  generated: string | null
}

/** Returns the configured token if there is one, otherwise the stored one, otherwise a new one, which only one node shows. If it is called again
 * with the same `fresh` token, because the first call may have stored it before it failed, the token is still shown. */
export async function loadAdminToken(
  { resources, secrets }: Pick<Store, 'resources' | 'secrets'>,
  configured: string | null,
  fresh = generateToken(),
): Promise<AdminToken> {
  if (configured !== null) return { hash: hashToken(configured), generated: null }
  const stored = (await resources.getSetting(ADMIN_TOKEN_HASH)) ?? (await secrets.getOrCreate(ADMIN_TOKEN_HASH, hashToken(fresh)))
  return { hash: stored, generated: stored === hashToken(fresh) ? fresh : null }
}
