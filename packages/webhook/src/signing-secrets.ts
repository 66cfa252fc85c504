// Signing secrets of Standard Webhooks: `whsec_` followed by base64. Validates their format for the service's settings and for
// the receiver's options. No error here may contain the secret, not even a part of it.

import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'

/** The key size in bytes that Standard Webhooks requires. Enforced when generating a secret; a shorter key from elsewhere is still accepted. */
export const MIN_SECRET_BYTES = 24
export const MAX_SECRET_BYTES = 64

const PREFIX = 'whsec_'
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** Generates a secret, `whsec_…`, of 32 random bytes by default; 24 to 64 are allowed. */
export function generateSecret(secretBytes = 32): string {
  if (!Number.isInteger(secretBytes) || secretBytes < MIN_SECRET_BYTES || secretBytes > MAX_SECRET_BYTES) {
    throw new TypeError(`A signing secret must have ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes.`)
  }
  return PREFIX + randomBytes(secretBytes).toString('base64')
}

/** Returns the key's bytes. The prefix is optional, as in other libraries of the standard. Throws TypeError for a malformed secret. */
export function parseSigningSecret(secret: unknown): Uint8Array {
  if (typeof secret !== 'string') throw new TypeError('A signing secret must be a string.')
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const key = Buffer.from(text, 'base64')
  // Buffer skips invalid characters, which would turn a mistyped secret into another key. Encoding the bytes again detects that.
  if (!BASE64.test(text) || !isBase64Of(text, key.toString('base64'))) {
    throw new TypeError(`A signing secret must be "${PREFIX}" followed by base64.`)
  }
  return key
}

/** Parses one secret, or an array of them, into keys for HMAC. */
export function parseSigningSecrets(secrets: unknown): KeyObject[] {
  const list: unknown[] = Array.isArray(secrets) ? secrets : [secrets]
  if (list.length === 0) throw new TypeError('signingSecrets must contain at least one secret.')
  return list.map((secret) => createSecretKey(parseSigningSecret(secret)))
}

/** The padding must be complete or absent. */
function isBase64Of(text: string, canonical: string): boolean {
  return text === canonical || text === canonical.replace(/=+$/, '')
}
