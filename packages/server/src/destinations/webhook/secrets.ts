// The settings of a webhook that may be a receiver's credentials: `secrets`, both kinds of signing secrets, header values (also those of `request`),
// the mapping and the path of `request`, `auth`, the private key of `tls`, and URLs as a whole, because a URL may have a credential in its query or its path. All
// of them are encrypted in the store, and each text is bound to its place.

import { isDeepStrictEqual } from 'node:util'
import {
  type Auth,
  CLASSIC_WEBHOOK,
  NO_FILTER,
  type RequestSettings,
  type TlsSettings,
  type WebhookDestination,
} from '../../model/configuration.ts'
import { HIDDEN, hiddenPath, hiddenUrl } from '../../secrets/hidden-url.ts'
import { hiddenMapping, isTemplateOnly } from '../../secrets/hidden-values.ts'
import type { Encryption, Sealing } from '../port/kind.ts'

export type StoredWebhook = Omit<WebhookDestination, 'urls' | 'headers' | 'secrets'> & {
  sealedUrls: readonly string[]
  sealedHeaders: Readonly<Record<string, string>>
  sealedSecrets?: Readonly<Record<string, string>>
  /** `request.body` as JSON, because a mapping may contain a credential. `request` itself then has none. */
  sealedBody?: string
  /** `request.path`, because it may contain a token, as the paths of some bots do. */
  sealedPath?: string
  /** Nodes of earlier versions recognize a webhook by it. Missing in webhooks that were stored before there were integrations. */
  integration?: null
}

/** By type. Some receivers take an API key as the user name. */
const AUTH_SECRETS = { basic: ['username', 'password'], bearer: ['token'], oauth2: ['tokenUrl', 'clientSecret'] } as const

export function toStored(destination: WebhookDestination): StoredWebhook {
  const { urls, headers, secrets, ...rest } = destination
  return withSealedRequest({ ...rest, integration: null, sealedUrls: urls, sealedHeaders: headers, sealedSecrets: secrets })
}

/** The places that the encrypted mapping and path are bound to. */
function requestContext(destinationId: string, field: 'body' | 'path'): string {
  return `${destinationId}.request.${field}`
}

/** Moves `body` and `path` of `request` to where they are encrypted. Earlier versions stored them in plain text. */
function withSealedRequest(stored: StoredWebhook): StoredWebhook {
  const { request } = stored
  if (request == null) return stored
  const { body, path } = request
  return {
    ...stored,
    request: { ...request, body: null, path: '' },
    ...(body == null ? {} : { sealedBody: JSON.stringify(body) }),
    ...(path ? { sealedPath: path } : {}),
  }
}

export function fromStored(stored: StoredWebhook): WebhookDestination {
  const { sealedUrls: urls, sealedHeaders: headers, sealedSecrets: secrets = {}, sealedBody, sealedPath, integration: _, ...rest } = stored
  // Destinations that an earlier version stored lack newer settings.
  const newer: Partial<WebhookDestination> = { ...CLASSIC_WEBHOOK, filter: NO_FILTER, paused: false }
  const shaped = rest.request ? { request: openedRequest(rest.request, sealedBody, sealedPath) } : {}
  return { ...newer, ...rest, ...shaped, urls, headers, secrets }
}

function openedRequest(request: RequestSettings, body: string | undefined, path: string | undefined): RequestSettings {
  return {
    ...request,
    ...(body === undefined ? {} : { body: JSON.parse(body) as RequestSettings['body'] }),
    ...(path === undefined ? {} : { path }),
  }
}

export function withSecrets(stored: StoredWebhook, change: Sealing): StoredWebhook {
  const { id, sharedSecret, signingSecrets, sealedUrls, sealedHeaders, sealedSecrets, sealedBody, sealedPath, request } = stored
  // Earlier versions stored no such settings.
  const { auth, tls } = stored as Partial<StoredWebhook>
  return {
    ...stored,
    ...(auth ? { auth: withAuthSecrets(auth, (value, name) => change(value, `${id}.auth.${name}`)) } : {}),
    ...(tls ? { tls: withPrivateKey(tls, (key) => change(key, `${id}.tls.privateKey`)) } : {}),
    sharedSecret: sharedSecret === null ? null : change(sharedSecret, id),
    signingSecrets: signingSecrets.map((secret) => change(secret, id)),
    sealedUrls: sealedUrls.map((url, at) => change(url, `${id}.urls.${at}`)),
    sealedHeaders: mapValues(sealedHeaders, (value, name) => change(value, `${id}.headers.${name}`)),
    ...(sealedSecrets && { sealedSecrets: mapValues(sealedSecrets, (value, name) => change(value, `${id}.secrets.${name}`)) }),
    ...(sealedBody === undefined ? {} : { sealedBody: change(sealedBody, requestContext(id, 'body')) }),
    ...(sealedPath === undefined ? {} : { sealedPath: change(sealedPath, requestContext(id, 'path')) }),
    ...(request == null ? {} : { request: withHeaders(request, (value, name) => change(value, `${id}.request.headers.${name}`)) }),
  }
}

/** Earlier versions stored URLs and headers in plain text, and later ones the mapping and the path of `request`. */
export function upgraded(
  stored: StoredWebhook | (WebhookDestination & { sealedUrls?: never }),
  { encrypt, reencrypt }: Encryption,
): StoredWebhook {
  if (stored.sealedUrls !== undefined) return withEncryptedRequest(withSecrets(stored, reencrypt), encrypt)
  // The secrets were encrypted already.
  const { urls, headers, secrets: _, ...rest } = stored
  const secrets = withSecrets({ ...rest, sealedUrls: [], sealedHeaders: {} }, reencrypt)
  const plain = { ...rest, sharedSecret: null, signingSecrets: [], sealedUrls: urls, sealedHeaders: headers }
  const { sealedUrls, sealedHeaders } = withSecrets(plain, encrypt)
  return withEncryptedRequest({ ...secrets, sealedUrls, sealedHeaders }, encrypt)
}

/** Encrypts the mapping and the path of `request`, if they are still in plain text. */
function withEncryptedRequest(stored: StoredWebhook, encrypt: Sealing): StoredWebhook {
  if (stored.request == null) return stored
  const { body, path } = stored.request
  return {
    ...withSealedRequest(stored),
    ...(body == null ? {} : { sealedBody: encrypt(JSON.stringify(body), requestContext(stored.id, 'body')) }),
    ...(path ? { sealedPath: encrypt(path, requestContext(stored.id, 'path')) } : {}),
  }
}

function withAuthSecrets(auth: Auth, change: (value: string, name: string) => string): Auth {
  const changed: Record<string, unknown> = { ...auth }
  for (const name of AUTH_SECRETS[auth.type]) changed[name] = change(changed[name] as string, name)
  return changed as unknown as Auth
}

function withPrivateKey(tls: TlsSettings, change: (key: string) => string): TlsSettings {
  return tls.privateKey === null ? tls : { ...tls, privateKey: change(tls.privateKey) }
}

export function withoutSecrets(stored: StoredWebhook): StoredWebhook {
  // Rows written by earlier versions have URLs and headers in plain text.
  const { urls: _, headers: __, auth: ___, tls: ____, secrets: _____, ...known } = stored as Partial<WebhookDestination> & StoredWebhook
  const { sealedSecrets: ______, sealedBody: _______, sealedPath: ________, ...rest } = known
  return { ...(rest as StoredWebhook), sealedUrls: [], sealedHeaders: {}, sharedSecret: null, signingSecrets: [], request: null }
}

/** Replaces the settings that viewers do not see. Nobody sees the secrets in `auth` and `tls`, so they stay as they are. */
export function hiddenSettings({
  urls,
  headers,
  request,
  auth,
}: WebhookDestination): Pick<WebhookDestination, 'urls' | 'headers' | 'request' | 'auth'> {
  return {
    urls: urls.map(hiddenUrl),
    headers: mapValues(headers, () => HIDDEN),
    request: request === null ? null : hiddenRequest(request, urls),
    auth: auth === null ? null : withAuthSecrets(auth, hiddenAuthValue),
  }
}

/** Header values that consist of placeholders are no credentials. */
export function hiddenRequest(request: RequestSettings, urls: readonly string[]): RequestSettings {
  const { body, path } = request
  const hidden = { ...withHeaders(request, (value) => (isTemplateOnly(value) ? value : HIDDEN)), path: hiddenPath(urls, path) }
  return body === null ? hidden : { ...hidden, body: hiddenBody(body) }
}

/** Hides the constants of a mapping that are URLs, or whose key says that they are credentials. */
function hiddenBody(body: NonNullable<RequestSettings['body']>): RequestSettings['body'] {
  return hiddenMapping({ body })['body'] as RequestSettings['body']
}

function hiddenAuthValue(value: string, name: string): string {
  if (name === 'username') return HIDDEN
  return name === 'tokenUrl' ? hiddenUrl(value) : value
}

export function changedSecrets(before: WebhookDestination, after: WebhookDestination): string[] {
  const changed: string[] = []
  if (before.sharedSecret !== after.sharedSecret) changed.push('sharedSecret')
  if (JSON.stringify(before.signingSecrets) !== JSON.stringify(after.signingSecrets)) changed.push('signingSecrets')
  const shown = ({ urls }: WebhookDestination): string => urls.map(hiddenUrl).join('\n')
  if (before.urls.join('\n') !== after.urls.join('\n') && shown(before) === shown(after)) changed.push('urls')
  changed.push(...changedValues('headers', before.headers, after.headers))
  changed.push(...changedValues('request.headers', before.request?.headers ?? {}, after.request?.headers ?? {}))
  if (!isDeepStrictEqual(before.request?.body, after.request?.body) && isDeepStrictEqual(shownBody(before), shownBody(after)))
    changed.push('request.body')
  if (before.request?.path !== after.request?.path && shownPath(before) === shownPath(after)) changed.push('request.path')
  const names = new Set([...Object.keys(before.secrets), ...Object.keys(after.secrets)])
  changed.push(...[...names].filter((name) => before.secrets[name] !== after.secrets[name]).map((name) => `secrets.${name}`))
  if (before.auth !== null && before.auth.type === after.auth?.type) {
    const [was, is] = [before.auth as Record<string, unknown>, after.auth as Record<string, unknown>]
    changed.push(...AUTH_SECRETS[after.auth.type].filter((name) => was[name] !== is[name]).map((name) => `auth.${name}`))
  }
  if (before.tls !== null && after.tls !== null && before.tls.privateKey !== after.tls.privateKey) changed.push('tls.privateKey')
  return changed
}

function shownBody({ request }: WebhookDestination): unknown {
  return request?.body == null ? null : hiddenBody(request.body)
}

function shownPath({ request, urls }: WebhookDestination): string | null {
  return request === null ? null : hiddenPath(urls, request.path)
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
