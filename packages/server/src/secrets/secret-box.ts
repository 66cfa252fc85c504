// Encrypts the secrets in the store: AES-256-GCM with a key derived from SWITCHYARD_SECRET_KEY. A sealed text contains its format
// and the id of its key, so that a rotation can tell keys apart. It is bound to a context (which secret of which row), so that
// one sealed text cannot replace another. No error quotes a secret or a key.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

export interface SecretBox {
  /** Identifies the key without revealing anything about it. */
  readonly keyId: string
  /** `v1.<key id>.<base64url of nonce, ciphertext and tag>` */
  seal(text: string, context?: string): string
  /** Throws SecretBoxError. The context must be the one that the text was sealed with. */
  open(sealed: string, context?: string): string
}

export class SecretBoxError extends Error {
  override name = 'SecretBoxError'
  readonly reason: 'wrong_key' | 'altered' | 'malformed'

  constructor(reason: SecretBoxError['reason'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.reason = reason
  }
}

const VERSION = 'v1'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SEALED = /^v1\.([A-Za-z0-9_-]{8})\.([A-Za-z0-9_-]{38,})$/

/** Returns a new key of 32 random bytes as text. */
export function generateSecretKey(): string {
  return randomBytes(32).toString('base64url')
}

/** HKDF does not strengthen a weak key: the text must have enough entropy itself, such as one from `generateSecretKey`. */
export function createSecretBox(keyText: string): SecretBox {
  if (keyText === '') throw new TypeError('A secret key must not be empty.')
  const key = derive(keyText, 'switchyard secret box v1', 32)
  const keyId = derive(keyText, 'switchyard secret box v1, key id', 6).toString('base64url')

  return {
    keyId,
    seal(text, context = '') {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
      cipher.setAAD(additionalData(keyId, context))
      const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return `${VERSION}.${keyId}.${Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]).toString('base64url')}`
    },
    open(sealed, context = '') {
      const [, sealedWith, body] = SEALED.exec(sealed) ?? []
      if (sealedWith === undefined || body === undefined) {
        throw new SecretBoxError(
          'malformed',
          'A stored secret is in a format that this version cannot read. Use the version that wrote it or a newer one, or restore a backup of the store.',
        )
      }
      if (sealedWith !== keyId) {
        throw new SecretBoxError(
          'wrong_key',
          `A stored secret was encrypted with key ${sealedWith}, but the key in use is ${keyId}. Set SWITCHYARD_SECRET_KEY to the key that this store was last used with or rotated to.`,
        )
      }
      const bytes = Buffer.from(body, 'base64url')
      if (bytes.toString('base64url') !== body)
        throw new SecretBoxError('malformed', 'A stored secret was truncated or altered. Restore a backup of the store.')
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      decipher.setAAD(additionalData(keyId, context))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
      } catch (cause) {
        throw new SecretBoxError(
          'altered',
          'A stored secret was altered or moved to a different place. Restore a backup of the store.',
          cause,
        )
      }
    },
  }
}

function derive(keyText: string, use: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(keyText, 'utf8'), Buffer.alloc(0), use, bytes))
}

function additionalData(keyId: string, context: string): Buffer {
  return Buffer.from(`${VERSION}.${keyId}.${context}`, 'utf8')
}
