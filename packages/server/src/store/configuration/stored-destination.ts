// A destination in its stored form: everything that may be a receiver's credential is encrypted. Its kind says which texts these are.

import type { Sealing } from '../../destinations/kind.ts'
import { kindOf } from '../../destinations/kinds.ts'
import type { StoredWebhook } from '../../destinations/webhook/secrets.ts'
import type { SecretBox } from '../../secrets/secret-box.ts'
import type { Destination } from '../port/model.ts'

export type StoredDestination = StoredWebhook

export function encryptDestination(destination: Destination, box: SecretBox): StoredDestination {
  const kind = kindOf(destination)
  return kind.withSecrets(kind.toStored(destination), (text, context) => box.seal(text, context))
}

/** Throws SecretBoxError for what the key does not open. */
export function decryptDestination(stored: StoredDestination, box: SecretBox): Destination {
  const kind = kindOf(stored)
  return kind.fromStored(kind.withSecrets(stored, (text, context) => box.open(text, context)))
}

/** The same, sealed in another way. */
export function reencryptDestination(stored: StoredDestination, reseal: Sealing): StoredDestination {
  return kindOf(stored).withSecrets(stored, reseal)
}

/** A deleted destination: kept for what still refers to it, without anything that could be decrypted. */
export function destinationWithoutSecrets(destination: Destination | StoredDestination): StoredDestination {
  return kindOf(destination).withoutSecrets(destination as StoredDestination)
}

/** How many texts are sealed in it. */
export function secretCount(stored: StoredDestination): number {
  let count = 0
  reencryptDestination(stored, (text) => {
    count++
    return text
  })
  return count
}
