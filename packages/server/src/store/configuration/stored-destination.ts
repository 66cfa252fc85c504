// A destination in its stored form: everything that may be a receiver's credential is encrypted. Its kind says which texts these are.

import { kindOf } from '../../destinations/kinds.ts'
import type { StoredDestination } from '../../destinations/port/kind.ts'
import type { Destination } from '../../model/configuration.ts'
import type { SecretBox } from '../../secrets/secret-box.ts'

export type { StoredDestination } from '../../destinations/port/kind.ts'

export function encryptDestination(destination: Destination, box: SecretBox): StoredDestination {
  const kind = kindOf(destination)
  return kind.withSecrets(kind.toStored(destination), (text, context) => box.seal(text, context))
}

/** Throws SecretBoxError if the key does not decrypt a secret. */
export function decryptDestination(stored: StoredDestination, box: SecretBox): Destination {
  const kind = kindOf(stored)
  return kind.fromStored(kind.withSecrets(stored, (text, context) => box.open(text, context)))
}

/** The form of a deleted destination. It is kept because rows refer to it, and contains nothing that could be decrypted. */
export function destinationWithoutSecrets(destination: Destination | StoredDestination): StoredDestination {
  return kindOf(destination).withoutSecrets(destination)
}

/** The number of encrypted texts in it. */
export function secretCount(stored: StoredDestination): number {
  let count = 0
  kindOf(stored).withSecrets(stored, (text) => {
    count++
    return text
  })
  return count
}
