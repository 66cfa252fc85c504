// The settings of a webhook, in addition to those that every destination has: which values are accepted, and the errors for all others. Only this
// folder checks URLs, headers and secrets when they are configured. Delivery decides whether an address may be dialled, when it dials it.
// No error message here may quote a value, because it may be a secret.

import { parseSigningSecret } from '@switchyard/webhook'
import { array, boolean, integer, nullable, record, string, withDefault } from '../../api/schema.ts'
import type { WebhookDestination } from '../../model/configuration.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import type { GivenSettings } from '../port/kind.ts'
import { AUTH_SETTINGS, SHOWN_AUTH_SETTINGS } from './auth-settings.ts'
import { SECRETS_SETTING, SHOWN_SECRETS } from './secret-settings.ts'
import { headerNameProblem, headersProblem, isHeaderValue, MAX_HEADER_VALUE_LENGTH, MAX_HEADERS } from './shaping/headers.ts'
import { REQUEST_SETTING, SHOWN_REQUEST } from './shaping/request-settings.ts'
import { SHOWN_TRANSFORMATION, TRANSFORMATION_SETTING } from './transformation-settings.ts'
import { targetProblem } from './url-problem.ts'

/** The settings of a webhook in a request. In an update, null removes a secret. */
export type GivenWebhook = GivenSettings &
  Partial<
    Pick<WebhookDestination, 'urls' | 'headers' | 'sharedSecret' | 'signingSecrets' | 'request' | 'transformation' | 'auth' | 'tls'>
  > & {
    type?: 'webhook'
    secrets?: Readonly<Record<string, string | null>> | undefined
  }

export const MAX_WEBHOOK_TIMEOUT_MS = 5_000
const MAX_URL_LENGTH = 2_048
const MAX_SHARED_SECRET_LENGTH = 1_024

function signingSecretProblem(secret: string): string | null {
  try {
    if (secret.startsWith('whsec_') && parseSigningSecret(secret).length > 0) return null
  } catch {
    // The error below does not quote the secret.
  }
  return 'must be whsec_ followed by base64'
}

export const WEBHOOK_SETTINGS = {
  urls: array(string({ max: MAX_URL_LENGTH, format: 'uri', check: targetProblem }), {
    min: 1,
    max: 5,
    identity: (url) => new URL(url).href,
    description:
      'Each message is posted to all of these URLs at the same time. The delivery succeeds if one of them answers 2xx. A mail server, `smtps://host:465` or `smtp://host:587`, gets each message as an email.',
  }),
  headers: withDefault(
    record(
      string({
        max: MAX_HEADER_VALUE_LENGTH,
        check: (value) => {
          if (value === HIDDEN) return 'is the placeholder "(hidden)"; send the real value'
          return isHeaderValue(value) ? null : 'must consist only of visible ASCII characters, spaces and tabs'
        },
      }),
      { max: MAX_HEADERS, name: headerNameProblem, whole: headersProblem, description: 'Added to every request.' },
    ),
    {},
  ),
  sharedSecret: withDefault(
    nullable(
      string({
        min: 1,
        max: MAX_SHARED_SECRET_LENGTH,
        writeOnly: true,
        description: 'The key for the X-Signature header; null to send no such header.',
      }),
    ),
    null,
  ),
  signingSecrets: withDefault(
    array(string({ max: 200, check: signingSecretProblem }), {
      max: 2,
      writeOnly: true,
      identity: (secret) => secret,
      description: 'Keys for Standard Webhooks signatures (whsec_…). Set two while rotating from one key to the next.',
    }),
    [],
  ),
  request: REQUEST_SETTING,
  transformation: TRANSFORMATION_SETTING,
  secrets: SECRETS_SETTING,
  ...AUTH_SETTINGS,
}

export const SHOWN_WEBHOOK_SETTINGS = {
  urls: array(
    string({
      description:
        'For a viewer, each value in the query string and each part of the path that looks like a token is replaced by (hidden).',
    }),
  ),
  headers: record(string({ description: 'For a viewer, each value is replaced by (hidden).' })),
  hasSharedSecret: boolean(),
  hasSigningSecrets: boolean(),
  signingSecretCount: integer(),
  request: SHOWN_REQUEST,
  transformation: SHOWN_TRANSFORMATION,
  secrets: SHOWN_SECRETS,
  ...SHOWN_AUTH_SETTINGS,
}
