// Stored secrets are sent only to the servers that they were given for. Otherwise somebody who may change a destination, but not read its secrets,
// could have them sent to a server of their own. Signing secrets and the private key of `tls` are not sent to the receiver, so they may stay.

import { isDeepStrictEqual } from 'node:util'
import type { RequestSettings, WebhookDestination } from '../../model/configuration.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import { hiddenMapping, isTemplateOnly } from '../../secrets/hidden-values.ts'
import type { MoveContext } from '../port/kind.ts'
import { leftOutSecret } from './auth-settings.ts'
import type { GivenWebhook } from './settings.ts'
import { originOf } from './url-problem.ts'

/** Scheme, host and port. Another scheme is another server: what listens on port 443 need not be what listens on port 80. */
export function originsOf(urls: readonly string[]): string[] {
  return [...new Set(urls.map(originOf))]
}

/** A server that is no longer used is no change. */
function hasNewOrigin(before: readonly string[], after: readonly string[]): boolean {
  const known = new Set(originsOf(before))
  return originsOf(after).some((origin) => !known.has(origin))
}

export function movedSecrets(
  given: GivenWebhook,
  settings: Partial<WebhookDestination>,
  before: WebhookDestination,
  { restoredOrigins }: MoveContext,
): string[] {
  const after = { ...before, ...settings }
  const hasMoved = hasNewOrigin(before.urls, after.urls)
  const isFromElsewhere = restoredOrigins !== undefined && hasNewOrigin(restoredOrigins, after.urls)
  const moved: string[] = []
  if (hasMoved || hasOtherTokenOrigin(before, after)) moved.push(...keptAuth(given, after))
  if (hasMoved) {
    if (given.headers === undefined) moved.push(...namesOf('headers', after.headers))
    // A secret may be named `constructor`, which every object has.
    const again = new Map(Object.entries(given.secrets ?? {}))
    const kept = Object.keys(after.secrets).filter((name) => again.get(name) == null)
    moved.push(...kept.map((name) => `secrets.${name}`))
  }
  if (given.request == null && (hasMoved || isFromElsewhere) && after.request !== null) moved.push(...secretsIn(after.request))
  return moved
}

function hasOtherTokenOrigin({ auth: before }: WebhookDestination, { auth: after }: WebhookDestination): boolean {
  return before?.type === 'oauth2' && after?.type === 'oauth2' && hasNewOrigin([before.tokenUrl], [after.tokenUrl])
}

function keptAuth({ auth: given }: GivenWebhook, { auth }: WebhookDestination): string[] {
  if (auth === null) return []
  if (given == null)
    return auth.type === 'basic' ? ['auth.username', 'auth.password'] : [`auth.${auth.type === 'bearer' ? 'token' : 'clientSecret'}`]
  const missing = leftOutSecret(given)
  return missing === null ? [] : [missing]
}

function secretsIn({ headers, body }: RequestSettings): string[] {
  const hidden = body === null ? null : hiddenMapping({ body })['body']
  return [...namesOf('request.headers', headers), ...(isDeepStrictEqual(hidden, body) ? [] : ['request.body'])]
}

function namesOf(field: string, headers: Readonly<Record<string, string>>): string[] {
  const secret = Object.entries(headers).filter(([, value]) => value !== '' && value !== HIDDEN && !isTemplateOnly(value))
  return secret.map(([name]) => `${field}.${name}`)
}
