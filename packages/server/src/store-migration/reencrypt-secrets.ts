// Re-encrypts stored secrets during a store migration: each is decrypted with whichever of the given keys it was encrypted with, and
// encrypted with the new key. Secrets that already use the new key are kept unchanged. Error messages never contain a key or a secret.

import { createSecretBox, type SecretBox, SecretBoxError } from '../secrets/secret-box.ts'
import { encryptionKeyIds } from '../store/history/books.ts'

export interface SecretReencryption {
  /** The id of the new key. */
  keyId: string
  /** Encrypts a value that the file stores as plain text. */
  encrypt(text: string, context: string): string
  /** Re-encrypts a value with the nodes' key. The context must be the one that it was encrypted with. */
  reencrypt(encrypted: string, context: string): string
}

export function createSecretReencryption(oldKeys: readonly string[], newKey: string): SecretReencryption {
  const to = createSecretBox(newKey)
  const boxes = new Map<string, SecretBox>([...oldKeys.map(createSecretBox), to].map((box) => [box.keyId, box]))
  return {
    keyId: to.keyId,
    encrypt: (text, context) => to.seal(text, context),
    reencrypt(encrypted, context) {
      const [keyId] = encryptionKeyIds([encrypted])
      const from = boxes.get(keyId ?? to.keyId)
      if (from === undefined) {
        throw new SecretBoxError(
          'wrong_key',
          `A stored secret was encrypted with a key (${keyId}) that was not given. The key in the .key file next to the store and the one in SWITCHYARD_SECRET_KEY were tried. Set SWITCHYARD_SECRET_KEY to the key of the file, and SWITCHYARD_NEW_SECRET_KEY to the key that the nodes will use.`,
        )
      }
      // Decrypted even if it stays unchanged, so that an undecryptable secret fails before anything is written.
      const opened = from.open(encrypted, context)
      return from === to ? encrypted : to.seal(opened, context)
    },
  }
}
