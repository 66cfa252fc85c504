// X-Signature: lowercase hex HMAC-SHA1 with the destination's sharedSecret, over the body; for a batch (a JSON array)
// over the first message alone. Both sides of it: what the service signs and what a receiver compares. The batch
// rule is weak, but receivers of Segment's webhooks rely on it; Standard Webhooks signs the whole body (standard-webhooks.ts).

import { createHmac } from 'node:crypto'
import { matchesAny } from './constant-time.ts'
import { bodyText, isBatch, type RawBody, requireRawBody } from './raw-body.ts'

const HEX_SHA1 = /^[0-9a-f]{40}$/

/**
 * X-Signature of one message's JSON. For a batch, the service passes the text of the first message, which it has before
 * it joins the batch: nothing is parsed. A string is hashed as UTF-8 without a copy being made of it.
 */
export function signMessage(messageJson: RawBody, sharedSecret: string): string {
  return createHmac('sha1', requireSharedSecret(sharedSecret)).update(messageJson).digest('hex')
}

/** X-Signature of a body, single or batch. Throws TypeError for a batch that has no first message, or is not JSON. */
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
 * Whether the header is the X-Signature of the body; for a batch this proves only the first message. False, never an error, for
 * whatever a sender can do wrong: no header or several, a malformed one, a batch that is empty or not JSON.
 */
export function verifySignature(
  body: RawBody,
  signatureHeader: string | readonly string[] | null | undefined,
  sharedSecret: string,
): boolean {
  requireSharedSecret(sharedSecret)
  requireRawBody(body)
  const signature = Array.isArray(signatureHeader) && signatureHeader.length === 1 ? signatureHeader[0] : signatureHeader
  // The shape is checked first, so that a garbage header does not buy the parsing of a whole batch.
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

/** The batch rule, for a body that is parsed already. An empty batch has nothing that could have been signed. */
export function matchesBatch(batch: unknown, signature: string, sharedSecret: string): boolean {
  const first = firstMessageJson(batch)
  return first !== undefined && matchesMessage(first, signature, sharedSecret)
}

export function requireSharedSecret(secret: unknown): string {
  // An empty key is a valid HMAC key that anyone can guess: an unset variable must not become one.
  if (typeof secret !== 'string' || secret === '') throw new TypeError('sharedSecret must be a non-empty string.')
  return secret
}

/**
 * The text that the batch rule signs. Parsing and writing JSON again does change texts in general: 1.0 becomes 1, -0
 * becomes 0, 1e21 becomes 1e+21, integer-like keys move to the front, of equal keys the last stays. It is safe because
 * it changes them only once, JSON.stringify(JSON.parse(x)) being idempotent (`__proto__`, an own key to both, included),
 * and the service sends every body in the form that has already been through it.
 */
function firstMessageJson(batch: unknown): string | undefined {
  return Array.isArray(batch) && batch.length > 0 ? JSON.stringify(batch[0]) : undefined
}
