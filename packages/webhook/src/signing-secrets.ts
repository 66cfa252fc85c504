// Signing secrets of Standard Webhooks: `whsec_` and base64. The one judge of their form, for the service's settings and
// the receiver's options alike. No error here may quote the secret, not even a part of it.

import { randomBytes } from 'node:crypto'

/** What Standard Webhooks asks of a key, in bytes. Kept when generating; a shorter key made elsewhere is still read. */
export const MIN_SECRET_BYTES = 24
export const MAX_SECRET_BYTES = 64

const PREFIX = 'whsec_'
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** A new secret, `whsec_…`, of 32 random bytes unless told otherwise. */
export function generateSecret(secretBytes = 32): string {
  if (!Number.isInteger(secretBytes) || secretBytes < MIN_SECRET_BYTES || secretBytes > MAX_SECRET_BYTES) {
    throw new TypeError(`A signing secret must have ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes.`)
  }
  return PREFIX + randomBytes(secretBytes).toString('base64')
}

/** The key's bytes. The prefix may be missing, as in other libraries of the standard; throws TypeError for anything else. */
export function parseSigningSecret(secret: unknown): Uint8Array {
  if (typeof secret !== 'string') throw new TypeError('A signing secret must be a string.')
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const key = Buffer.from(text, 'base64')
  // Buffer skips what it cannot read, which would turn a mistyped secret into another key; writing it again shows that.
  if (!BASE64.test(text) || !isSpelling(text, key.toString('base64'))) {
    throw new TypeError(`A signing secret must be "${PREFIX}" followed by base64.`)
  }
  return key
}

/** One or several secrets, as options give them. */
export function parseSigningSecrets(secrets: unknown): Uint8Array[] {
  const list: unknown[] = Array.isArray(secrets) ? secrets : [secrets]
  if (list.length === 0) throw new TypeError('signingSecrets must name at least one secret.')
  return list.map(parseSigningSecret)
}

/** Padding may be left out whole, never in part. */
function isSpelling(text: string, canonical: string): boolean {
  return text === canonical || text === canonical.replace(/=+$/, '')
}
