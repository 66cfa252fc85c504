// A destination as it is stored. Everything that may be a credential of a receiver is sealed, and bound to its place: both kinds
// of secrets, header values, and URLs as a whole, because a URL may have a credential in its query or its path.

import type { SecretBox } from '../../secrets/secret-box.ts'
import { type Destination, NO_FILTER } from '../port/model.ts'

export type StoredDestination = Omit<Destination, 'urls' | 'headers'> & {
  sealedUrls: readonly string[]
  sealedHeaders: Readonly<Record<string, string>>
}

/** A text for another one. The context is the place that it is bound to. */
export type Sealing = (text: string, context: string) => string

export function sealDestination(destination: Destination, box: SecretBox): StoredDestination {
  const { urls, headers, ...rest } = destination
  return withTexts({ ...rest, sealedUrls: urls, sealedHeaders: headers }, (text, context) => box.seal(text, context))
}

/** Throws SecretBoxError for what the key does not open. */
export function openDestination(stored: StoredDestination, box: SecretBox): Destination {
  const { sealedUrls: urls, sealedHeaders: headers, ...rest } = withTexts(stored, (text, context) => box.open(text, context))
  // Destinations that were stored before there were filters have none.
  const { filter, paused } = rest as Partial<Destination>
  return { ...rest, filter: filter ?? NO_FILTER, paused: paused ?? false, urls, headers }
}

/** The same, sealed in another way. */
export function resealDestination(stored: StoredDestination, reseal: Sealing): StoredDestination {
  return withTexts(stored, reseal)
}

/** A deleted destination: kept for what still refers to it, without anything that could be decrypted. */
export function emptiedDestination(destination: Destination | StoredDestination): StoredDestination {
  const { urls: _, headers: __, ...rest } = destination as Partial<Destination> & StoredDestination
  return { ...rest, sealedUrls: [], sealedHeaders: {}, sharedSecret: null, signingSecrets: [] }
}

/** How many texts are sealed in it. */
export function sealedCount({ sharedSecret, signingSecrets, sealedUrls, sealedHeaders }: StoredDestination): number {
  return (sharedSecret === null ? 0 : 1) + signingSecrets.length + sealedUrls.length + Object.keys(sealedHeaders).length
}

function withTexts(stored: StoredDestination, change: Sealing): StoredDestination {
  const { id, sharedSecret, signingSecrets, sealedUrls, sealedHeaders } = stored
  return {
    ...stored,
    sharedSecret: sharedSecret === null ? null : change(sharedSecret, id),
    signingSecrets: signingSecrets.map((secret) => change(secret, id)),
    ...sealedParts(id, sealedUrls, sealedHeaders, change),
  }
}

export function sealedParts(
  id: string,
  urls: readonly string[],
  headers: Readonly<Record<string, string>>,
  change: Sealing,
): Pick<StoredDestination, 'sealedUrls' | 'sealedHeaders'> {
  return {
    sealedUrls: urls.map((url, at) => change(url, `${id}.urls.${at}`)),
    sealedHeaders: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, change(value, `${id}.headers.${name}`)])),
  }
}
