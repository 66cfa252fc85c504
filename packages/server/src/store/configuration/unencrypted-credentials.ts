// Receivers' credentials that earlier versions stored in plain text: in the URLs and headers of destinations, in the URLs of attempts,
// and in the oldest audit entries. Each function turns a stored text into its current form, so that both adapters and the migration
// between them do the same. The adapters know where such texts are.

import { kindOf } from '../../destinations/kinds.ts'
import type { Encryption } from '../../destinations/port/kind.ts'
import { HIDDEN, hiddenUrl } from '../../secrets/hidden-url.ts'
import type { SecretBox } from '../../secrets/secret-box.ts'
import type { AttemptDoc } from '../encoding/attempt-doc.ts'
import { destinationWithoutSecrets, type StoredDestination } from './stored-destination.ts'

/** Encryption with one key. Texts that are already encrypted must be encrypted with that key, and stay unchanged. */
export function encryptionWith(box: SecretBox): Encryption {
  return {
    encrypt: (text, context) => box.seal(text, context),
    reencrypt(encrypted, context) {
      box.open(encrypted, context)
      return encrypted
    },
  }
}

/** Converts the doc of a destination, plain or encrypted, to its current form. Throws SecretBoxError. */
export function encryptedDestinationDoc(text: string, isDeleted: boolean, encryption: Encryption): string {
  const doc = JSON.parse(text) as StoredDestination
  // Destinations that were deleted before this version may have secrets that no known key decrypts.
  return JSON.stringify(isDeleted ? destinationWithoutSecrets(doc) : kindOf(doc).upgraded(doc, encryption))
}

/** Removes credentials from the doc of an attempt. Returns undefined if it contains none. */
export function redactAttempt(text: string): string | undefined {
  const doc = JSON.parse(text) as AttemptDoc
  const urls = doc.u.map(hiddenUrl)
  return urls.every((url, at) => url === doc.u[at]) ? undefined : JSON.stringify({ ...doc, u: urls })
}

/** Removes credentials from a destination in an audit entry. Returns undefined if it contains none. */
export function redactAudit(text: string): string | undefined {
  const entry = JSON.parse(text) as { urls?: unknown; headers?: unknown }
  const { urls, headers } = entry
  const hidden = {
    ...entry,
    ...(Array.isArray(urls) && { urls: urls.map((url) => (typeof url === 'string' ? hiddenUrl(url) : url)) }),
    ...(typeof headers === 'object' &&
      headers !== null && { headers: Object.fromEntries(Object.keys(headers).map((name) => [name, HIDDEN])) }),
  }
  const written = JSON.stringify(hidden)
  return written === JSON.stringify(entry) ? undefined : written
}
