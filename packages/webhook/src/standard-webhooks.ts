// Standard Webhooks v1 (standardwebhooks.com): HMAC-SHA256 over `id.timestamp.body`, with the whole body, batch or not. Signs
// for the service, and validates each header on its own. The clock and the order of checks are in signature-headers.ts.

import { createHmac, type KeyObject } from 'node:crypto'
import type { RawBody } from './raw-body.ts'
import { parseSigningSecrets } from './signing-secrets.ts'

export interface StandardWebhook {
  /** Unique to the message and the same on every retry: 1 to 256 visible ASCII characters without full stop and comma. */
  id: string
  /** Time of this attempt, in whole seconds since the epoch. */
  timestampSeconds: number
  /** The exact bytes that are sent. */
  body: RawBody
}

export interface StandardWebhookHeaders {
  'webhook-id': string
  'webhook-timestamp': string
  'webhook-signature': string
}

/** Maximum number of secrets that sign one request: the current one and, during a rotation, the previous one. */
export const MAX_SIGNING_SECRETS = 2

/**
 * No full stop, because `a.1` + `2` + `{}` and `a` + `1` + `2.{}` would get the same signature; no comma, because repeated
 * headers are joined by commas; no control characters, because they end a header.
 */
const ID = /^[!-+\-/-~]{1,256}$/
const TIMESTAMP = /^\d{1,12}$/
const V1_SIGNATURE = /^v1,([A-Za-z0-9+/]{43}=)$/

/** A sender needs two entries of 47 characters. The rest leaves room for future versions, while limiting the work per request. */
const MAX_SIGNATURE_HEADER_LENGTH = 4096
const MAX_SIGNATURES = 16

/** Returns the three headers of one attempt. With two secrets, newest first, both sign. Throws TypeError for invalid arguments. */
export function signStandardWebhook(webhook: StandardWebhook, signingSecrets: string | readonly string[]): StandardWebhookHeaders {
  return standardWebhookSigner(signingSecrets)(webhook)
}

/**
 * Returns a function that signs any number of attempts with the same secrets. A program that sends many webhooks should keep it: parsing the secrets
 * takes about as long as signing a message.
 */
export function standardWebhookSigner(signingSecrets: string | readonly string[]): (webhook: StandardWebhook) => StandardWebhookHeaders {
  const keys = parseSigningSecrets(signingSecrets)
  if (keys.length > MAX_SIGNING_SECRETS) throw new TypeError(`At most ${MAX_SIGNING_SECRETS} signing secrets can sign at once.`)
  return (webhook) => sign(webhook, keys)
}

function sign({ id, timestampSeconds, body }: StandardWebhook, keys: readonly KeyObject[]): StandardWebhookHeaders {
  const timestamp = String(timestampSeconds)
  if (typeof id !== 'string' || !ID.test(id)) throw new TypeError('id must be 1 to 256 visible ASCII characters without "." and ",".')
  if (!TIMESTAMP.test(timestamp)) throw new TypeError('timestampSeconds must be a whole number of seconds since the epoch.')
  let signatures = ''
  for (const key of keys) signatures += `${signatures === '' ? '' : ' '}v1,${standardDigest(key, id, timestamp, body)}`
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures }
}

/**
 * Returns the digest in base64. The parts are hashed one after the other, because joining them would copy the body. The key is a
 * KeyObject: for a message of 900 bytes, Node.js 24 takes 3.2 µs with it and 21 µs with the key's bytes. Computing the HMAC from
 * copies of two prepared hashes takes 4.4 µs, and from the one-shot `crypto.hash`, which Node.js 18 does not have, 2.9 µs.
 */
export function standardDigest(key: KeyObject, id: string, timestamp: string, body: RawBody): string {
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
}

export function isWebhookId(value: string): boolean {
  return ID.test(value)
}

/** Returns seconds since the epoch, or undefined if the value is not a plain whole number. */
export function parseTimestamp(value: string): number | undefined {
  return TIMESTAMP.test(value) ? Number(value) : undefined
}

/**
 * Returns the v1 digests of a webhook-signature header, and ignores other versions. Returns undefined if the header is too long,
 * has too many entries, or contains a malformed v1 entry (two headers joined by a comma look like that, too).
 */
export function parseSignatures(value: string): string[] | undefined {
  if (value.length > MAX_SIGNATURE_HEADER_LENGTH) return undefined
  const entries = value.split(' ')
  if (entries.length > MAX_SIGNATURES) return undefined
  const digests: string[] = []
  for (const entry of entries) {
    if (!entry.startsWith('v1,')) continue
    const digest = V1_SIGNATURE.exec(entry)?.[1]
    if (digest === undefined) return undefined
    digests.push(digest)
  }
  return digests
}
