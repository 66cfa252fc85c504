// X-Signature: lowercase hex HMAC-SHA1 with the destination's sharedSecret, over the body; for a batch (a JSON array)
// over the first message only. Contains both the signing of the service and the verification of the receiver. The batch rule
// is weak, but receivers of Segment's webhooks rely on it; Standard Webhooks signs the whole body (standard-webhooks.ts).

import { createHmac } from 'node:crypto'
import { matchesAny } from './constant-time.ts'
import { bodyText, isBatch, type RawBody, requireRawBody } from './raw-body.ts'

const HEX_SHA1 = /^[0-9a-f]{40}$/

/**
 * Returns the X-Signature of the JSON of one message. For a batch, pass the text of its first message: the service has that text
 * before it joins the batch, so nothing has to be parsed. A string is hashed as UTF-8 without copying it.
 */
export function signMessage(messageJson: RawBody, sharedSecret: string): string {
  return createHmac('sha1', requireSharedSecret(sharedSecret)).update(messageJson).digest('hex')
}

/** Returns the X-Signature of a body: a single message or a batch. Throws TypeError for a batch that is empty or not JSON. */
export function signBody(body: RawBody, sharedSecret: string): string {
  if (!isBatch(body)) return signMessage(body, sharedSecret)
  let first: string | undefined
  try {
    first = firstMessageJson(JSON.parse(bodyText(body)))
  } catch (cause) {
    throw new TypeError('A batch to sign must be a JSON array.', { cause })
  }
  if (first === undefined) throw new TypeError('An empty batch has no first message to sign.')
  return signMessage(first, sharedSecret)
}

/**
 * Whether the header is the X-Signature of the body; for a batch this proves only the first message. Returns false instead of
 * throwing for every mistake of a sender: a missing, repeated or malformed header, or a batch that is empty or not JSON.
 */
export function verifySignature(
  body: RawBody,
  signatureHeader: string | readonly string[] | null | undefined,
  sharedSecret: string,
): boolean {
  requireSharedSecret(sharedSecret)
  requireRawBody(body)
  const signature = Array.isArray(signatureHeader) && signatureHeader.length === 1 ? signatureHeader[0] : signatureHeader
  // The format is checked first, so that a malformed header does not cause a whole batch to be parsed.
  if (!isSignature(signature)) return false
  if (!isBatch(body)) return matchesMessage(body, signature, sharedSecret)
  try {
    return matchesBatch(JSON.parse(bodyText(body)), signature, sharedSecret)
  } catch {
    return false
  }
}

export function isSignature(value: unknown): value is string {
  return typeof value === 'string' && HEX_SHA1.test(value)
}

export function matchesMessage(messageJson: RawBody, signature: string, sharedSecret: string): boolean {
  return matchesAny([signature], [signMessage(messageJson, sharedSecret)])
}

/** Whether the signature matches the first message of a parsed batch. False for an empty batch. */
export function matchesBatch(batch: unknown, signature: string, sharedSecret: string): boolean {
  const first = firstMessageJson(batch)
  return first !== undefined && matchesMessage(first, signature, sharedSecret)
}

export function requireSharedSecret(secret: unknown): string {
  // HMAC accepts an empty key, which anyone can guess: an unset variable must not become the key.
  if (typeof secret !== 'string' || secret === '') throw new TypeError('sharedSecret must be a non-empty string.')
  return secret
}

/**
 * Returns the text that is signed for a batch. In general, parsing JSON and writing it again changes the text: 1.0 becomes 1,
 * -0 becomes 0, 1e21 becomes 1e+21, integer-like keys move to the front, and of duplicate keys only the last remains. It is safe
 * here because JSON.stringify(JSON.parse(x)) is idempotent (also for `__proto__`, which both treat as an own key), and the
 * service has already applied it to every body that it sends.
 */
function firstMessageJson(batch: unknown): string | undefined {
  return Array.isArray(batch) && batch.length > 0 ? JSON.stringify(batch[0]) : undefined
}
