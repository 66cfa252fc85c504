// Receivers' credentials that earlier versions stored in plain text: in the URLs and headers of destinations, in the URLs of attempts,
// and in the oldest audit entries. Each function turns a stored text into its current form, so that both adapters and the migration
// between them do the same. The adapters know where such texts are.

import type { Sealing } from '../../destinations/kind.ts'
import { HIDDEN, hiddenUrl } from '../../secrets/hidden-url.ts'
import type { SecretBox } from '../../secrets/secret-box.ts'
import type { AttemptDoc } from '../encoding/attempt-doc.ts'
import type { Destination } from '../port/model.ts'
import { destinationWithoutSecrets, reencryptDestination, type StoredDestination } from './stored-destination.ts'

export interface DestinationEncryption {
  /** Seals what was plain. */
  seal: Sealing
  /** What to do with a text that is sealed already. */
  reseal: Sealing
}

/** With one key: what is sealed already must open with it, and stays as it is. */
export function encryptionWith(box: SecretBox): DestinationEncryption {
  return {
    seal: (text, context) => box.seal(text, context),
    reseal(sealed, context) {
      box.open(sealed, context)
      return sealed
    },
  }
}

/** The doc of a destination, plain or sealed, as it is stored now. Throws SecretBoxError. */
export function encryptedDestinationDoc(text: string, isDeleted: boolean, { seal, reseal }: DestinationEncryption): string {
  const doc = JSON.parse(text) as Destination | StoredDestination
  // Destinations that were deleted before this version may have secrets that no key opens any more.
  if (isDeleted) return JSON.stringify(destinationWithoutSecrets(doc))
  if ('sealedUrls' in doc) return JSON.stringify(reencryptDestination(doc, reseal))
  // Only webhooks were ever stored with plain URLs and headers. Their secrets were encrypted already.
  const { urls, headers, ...rest } = doc
  const secrets = reencryptDestination({ ...rest, sealedUrls: [], sealedHeaders: {} }, reseal)
  const plain = { ...rest, sharedSecret: null, signingSecrets: [], sealedUrls: urls, sealedHeaders: headers }
  const { sealedUrls, sealedHeaders } = reencryptDestination(plain, seal)
  return JSON.stringify({ ...secrets, sealedUrls, sealedHeaders })
}

/** The doc of an attempt. Undefined: there is no credential in it. */
export function redactAttempt(text: string): string | undefined {
  const doc = JSON.parse(text) as AttemptDoc
  const urls = doc.u.map(hiddenUrl)
  return urls.every((url, at) => url === doc.u[at]) ? undefined : JSON.stringify({ ...doc, u: urls })
}

/** What an audit entry says of a destination. Undefined: there is no credential in it. */
export function redactAudit(text: string): string | undefined {
  const said = JSON.parse(text) as { urls?: unknown; headers?: unknown }
  const { urls, headers } = said
  const hidden = {
    ...said,
    ...(Array.isArray(urls) && { urls: urls.map((url) => (typeof url === 'string' ? hiddenUrl(url) : url)) }),
    ...(typeof headers === 'object' &&
      headers !== null && { headers: Object.fromEntries(Object.keys(headers).map((name) => [name, HIDDEN])) }),
  }
  const written = JSON.stringify(hidden)
  return written === JSON.stringify(said) ? undefined : written
}
