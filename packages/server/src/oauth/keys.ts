// Public keys of OAuth applications: which keys are accepted, in which form they are stored, and which signature algorithm each is
// for. Shared by the control API, which accepts them, and the token endpoint, which uses them. A private key is never stored, used
// to derive the public key, or quoted. Error messages contain nothing of what was sent.

import { createHash, createPublicKey, type KeyObject } from 'node:crypto'

export type AssertionAlgorithm = 'RS256' | 'ES256' | 'EdDSA'

export type ParsedKey = { ok: true; pem: string } | { ok: false; problem: string }

export const MAX_KEY_LENGTH = 4_096
const MIN_RSA_BITS = 2_048
/** Larger keys are slow to verify and no safer in practice. */
const MAX_RSA_BITS = 8_192
/** With the exponent 1 anyone can forge signatures, even exponents are invalid, and very large ones make verification slow. Nearly every key has 65537. */
const isUsualExponent = (exponent = 0n): boolean => exponent >= 3n && exponent < 2n ** 64n && exponent % 2n === 1n

const FORM = 'must be a single public key in PEM format, beginning with -----BEGIN PUBLIC KEY-----'
const KINDS = `must be an RSA key of ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits with a common exponent such as 65537, an EC key on the curve P-256, or an Ed25519 key`
const ONE_KEY = /^\s*-----BEGIN ((?:RSA )?PUBLIC KEY)-----\s[A-Za-z0-9+/=\s]+-----END \1-----\s*$/

/** Returns the key in the form in which it is stored, or the problem as the end of a sentence that begins with the field. */
export function parsePublicKey(text: string): ParsedKey {
  // Node.js would accept it and derive the public key. It is rejected because a private key that was sent over the network is compromised, and
  // because the sender would believe that it is stored.
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

/** Returns the algorithm that a key is used with, or null if the key is not accepted. */
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

/** Identifies a key by its content, so that a different key with the same id has a different fingerprint. */
export function fingerprintOf(publicKeyPem: string): string {
  return createHash('sha256')
    .update(createPublicKey(publicKeyPem).export({ type: 'spki', format: 'der' }))
    .digest('base64url')
}
