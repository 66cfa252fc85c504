// Stored secrets on their way from one store to the other: opened with whichever of the given keys they were sealed with, and
// sealed with the new one; those that have it already stay as they are. No key and no secret is told.

import { createSecretBox, type SecretBox, SecretBoxError } from '../secrets/secret-box.ts'
import { sealedKeyIds } from '../store/configuration/encryption-key-ids.ts'

export interface SecretsOnTheWay {
  /** Of the new key. */
  keyId: string
  /** What the file has in plain text. */
  seal(text: string, context: string): string
  /** From the key of the file to that of the nodes. The context is what it was sealed with. */
  reseal(sealed: string, context: string): string
}

export function createSecretsOnTheWay(oldKeys: readonly string[], newKey: string): SecretsOnTheWay {
  const to = createSecretBox(newKey)
  const boxes = new Map<string, SecretBox>([...oldKeys.map(createSecretBox), to].map((box) => [box.keyId, box]))
  return {
    keyId: to.keyId,
    seal: (text, context) => to.seal(text, context),
    reseal(sealed, context) {
      const [sealedWith] = sealedKeyIds([sealed])
      const from = boxes.get(sealedWith ?? to.keyId)
      if (from === undefined) {
        throw new SecretBoxError(
          'wrong_key',
          `A stored secret was encrypted with a key (${sealedWith}) that was not given. If the key of the file is neither in the .key file beside it nor the one in SWITCHYARD_SECRET_KEY, set SWITCHYARD_SECRET_KEY to it, and SWITCHYARD_NEW_SECRET_KEY to the key of the nodes.`,
        )
      }
      // Opened even if it stays as it is: what cannot be opened is told before anything is moved.
      const opened = from.open(sealed, context)
      return from === to ? sealed : to.seal(opened, context)
    },
  }
}
