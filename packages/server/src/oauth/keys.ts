// Public keys of OAuth applications: which are taken, in which form they are kept, and which signatures they check. One
// judge for the control API, which takes them in, and the token endpoint, which uses them. A private key is never kept,
// derived from or quoted: what is wrong is told without a piece of what was given.

import { createHash, createPublicKey, type KeyObject } from 'node:crypto'

export type AssertionAlgorithm = 'RS256' | 'ES256' | 'EdDSA'

export type ParsedKey = { ok: true; pem: string } | { ok: false; problem: string }

export const MAX_KEY_LENGTH = 4_096
const MIN_RSA_BITS = 2_048
/** More is slow to check and no safer in practice. */
const MAX_RSA_BITS = 8_192
/** With 1 anybody signs, an even one is none, and one as long as the key makes checking slow. Nearly every key has 65537. */
const isUsualExponent = (exponent = 0n): boolean => exponent >= 3n && exponent < 2n ** 64n && exponent % 2n === 1n

const FORM = 'must be a single public key in PEM format, beginning with -----BEGIN PUBLIC KEY-----'
const KINDS = `must be an RSA key of ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits with a common exponent such as 65537, an EC key on the curve P-256, or an Ed25519 key`
const ONE_KEY = /^\s*-----BEGIN ((?:RSA )?PUBLIC KEY)-----\s[A-Za-z0-9+/=\s]+-----END \1-----\s*$/

/** The key as it is kept, in one form whatever it came in; or what is wrong, completing "The field …". */
export function parsePublicKey(text: string): ParsedKey {
  // Node.js would take one and derive the public half; but who sends it believes that it is kept, and where it went it is known.
  if (/PRIVATE\s+KEY/i.test(text)) {
    return {
      ok: false,
      problem: 'is a private key; it was not stored. Generate a new key pair and send only the public key (openssl pkey -in FILE -pubout)',
    }
  }
  if (!ONE_KEY.test(text)) return { ok: false, problem: FORM }
  let key: KeyObject
  try {
    key = createPublicKey(text.trim())
  } catch {
    return { ok: false, problem: FORM }
  }
  if (algorithmOf(key) === null) return { ok: false, problem: KINDS }
  return { ok: true, pem: key.export({ type: 'spki', format: 'pem' }).toString() }
}

/** The one algorithm that a key is good for; null for keys that are not taken. */
export function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails: details = {} }: KeyObject): AssertionAlgorithm | null {
  switch (asymmetricKeyType) {
    case 'rsa': {
      const { modulusLength: bits = 0, publicExponent } = details
      return bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS && isUsualExponent(publicExponent) ? 'RS256' : null
    }
    case 'ec':
      return details.namedCurve === 'prime256v1' ? 'ES256' : null
    case 'ed25519':
      return 'EdDSA'
    default:
      return null
  }
}

/** Names a key by what it is, so that another key under the same id is another. */
export function fingerprintOf(publicKeyPem: string): string {
  return createHash('sha256')
    .update(createPublicKey(publicKeyPem).export({ type: 'spki', format: 'der' }))
    .digest('base64url')
}
