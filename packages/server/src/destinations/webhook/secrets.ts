// The settings of a webhook that may be a receiver's credentials: both kinds of secrets, header values (also those of `request`), and URLs as a whole, because a
// URL may have a credential in its query or its path. All of them are encrypted in the store, and each text is bound to its place.

import { HIDDEN, hiddenUrl } from '../../secrets/hidden-url.ts'
import { CLASSIC, type Destination, NO_FILTER, type RequestSettings } from '../../store/port/model.ts'
import type { Sealing } from '../kind.ts'

export type StoredWebhook = Omit<Destination, 'urls' | 'headers'> & {
  sealedUrls: readonly string[]
  sealedHeaders: Readonly<Record<string, string>>
}

export function toStored({ urls, headers, ...rest }: Destination): StoredWebhook {
  return { ...rest, sealedUrls: urls, sealedHeaders: headers }
}

export function fromStored({ sealedUrls: urls, sealedHeaders: headers, ...rest }: StoredWebhook): Destination {
  // Destinations that an earlier version stored lack newer settings.
  const newer: Partial<Destination> = { ...CLASSIC, filter: NO_FILTER, paused: false }
  return { ...newer, ...rest, urls, headers }
}

export function withSecrets(stored: StoredWebhook, change: Sealing): StoredWebhook {
  const { id, sharedSecret, signingSecrets, sealedUrls, sealedHeaders, request } = stored
  return {
    ...stored,
    sharedSecret: sharedSecret === null ? null : change(sharedSecret, id),
    signingSecrets: signingSecrets.map((secret) => change(secret, id)),
    sealedUrls: sealedUrls.map((url, at) => change(url, `${id}.urls.${at}`)),
    sealedHeaders: mapValues(sealedHeaders, (value, name) => change(value, `${id}.headers.${name}`)),
    ...(request == null ? {} : { request: withHeaders(request, (value, name) => change(value, `${id}.request.headers.${name}`)) }),
  }
}

export function withoutSecrets(stored: StoredWebhook): StoredWebhook {
  // Rows written by earlier versions have URLs and headers in plain text.
  const { urls: _, headers: __, ...rest } = stored as Partial<Destination> & StoredWebhook
  return { ...rest, sealedUrls: [], sealedHeaders: {}, sharedSecret: null, signingSecrets: [], request: null }
}

export function hiddenSettings({ urls, headers, request }: Destination) {
  return {
    urls: urls.map(hiddenUrl),
    headers: mapValues(headers, () => HIDDEN),
    request: request === null ? null : withHeaders(request, () => HIDDEN),
  }
}

export function changedSecrets(before: Destination, after: Destination): string[] {
  const changed: string[] = []
  if (before.sharedSecret !== after.sharedSecret) changed.push('sharedSecret')
  if (JSON.stringify(before.signingSecrets) !== JSON.stringify(after.signingSecrets)) changed.push('signingSecrets')
  const shown = ({ urls }: Destination): string => urls.map(hiddenUrl).join('\n')
  if (before.urls.join('\n') !== after.urls.join('\n') && shown(before) === shown(after)) changed.push('urls')
  changed.push(...changedValues('headers', before.headers, after.headers))
  changed.push(...changedValues('request.headers', before.request?.headers ?? {}, after.request?.headers ?? {}))
  return changed
}

function changedValues(field: string, before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>): string[] {
  const changed = Object.entries(after).filter(([name, value]) => Object.hasOwn(before, name) && before[name] !== value)
  return changed.map(([name]) => `${field}.${name}`)
}

function withHeaders(request: RequestSettings, change: (value: string, name: string) => string): RequestSettings {
  return { ...request, headers: mapValues(request.headers, change) }
}

function mapValues(of: Readonly<Record<string, string>>, change: (value: string, name: string) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(of).map(([name, value]) => [name, change(value, name)]))
}
