// Checks everything that can be checked before the body is read, so that an unsigned, malformed or stale request costs
// neither reading the body nor computing a digest. The headers it returns are well formed, but not yet verified.

import { type HeadersInput, headerValues } from './header-values.ts'
import { type Refusal, refusal, type SignatureHeader } from './refusals.ts'
import { isWebhookId, parseSignatures, parseTimestamp } from './standard-webhooks.ts'
import type { VerifySettings } from './verify-options.ts'
import { isSignature } from './x-signature.ts'

/** The headers that the configured secrets require; undefined for a kind of secret that is not configured. */
export interface SignatureHeaders {
  ok: true
  standard: { id: string; timestamp: string; digests: string[] } | undefined
  xSignature: string | undefined
}

type SingleHeader = { ok: true; value: string } | Refusal

/**
 * The headers of every configured kind of secret must be present. If one of two were enough, an attacker could leave out the
 * headers of the stronger scheme and attack the other: for a batch, X-Signature proves only the first message.
 */
export function readSignatureHeaders(headers: HeadersInput, settings: VerifySettings): SignatureHeaders | Refusal {
  let standard: SignatureHeaders['standard']
  if (settings.signingKeys.length > 0) {
    const read = readStandard(headers, settings)
    if (!read.ok) return read
    standard = read
  }
  if (settings.sharedSecret === undefined) return { ok: true, standard, xSignature: undefined }
  const x = readOne(headers, 'x-signature')
  if (!x.ok) return x
  return isSignature(x.value) ? { ok: true, standard, xSignature: x.value } : refusal('header_invalid', 'x-signature')
}

function readStandard(
  headers: HeadersInput,
  { now, toleranceSeconds }: VerifySettings,
): { ok: true; id: string; timestamp: string; digests: string[] } | Refusal {
  const id = readOne(headers, 'webhook-id')
  if (!id.ok) return id
  const timestamp = readOne(headers, 'webhook-timestamp')
  if (!timestamp.ok) return timestamp
  const signature = readOne(headers, 'webhook-signature')
  if (!signature.ok) return signature
  if (!isWebhookId(id.value)) return refusal('header_invalid', 'webhook-id')
  const seconds = parseTimestamp(timestamp.value)
  if (seconds === undefined) return refusal('header_invalid', 'webhook-timestamp')
  const digests = parseSignatures(signature.value)
  if (digests === undefined) return refusal('header_invalid', 'webhook-signature')
  if (digests.length === 0) return refusal('signature_missing', 'webhook-signature')
  const apart = Math.abs(Math.floor(now() / 1000) - seconds)
  // Written so that the request is rejected if the clock returns NaN.
  if (!(apart <= toleranceSeconds)) return refusal('timestamp_outside_tolerance', 'webhook-timestamp')
  return { ok: true, id: id.value, timestamp: timestamp.value, digests }
}

/** Repeated headers arrive as several values or joined by commas. Of these headers only webhook-signature may contain a comma. */
function readOne(headers: HeadersInput, name: SignatureHeader): SingleHeader {
  const [value, second] = headerValues(headers, name)
  if (value === undefined) return refusal('signature_missing', name)
  if (second !== undefined) return refusal('header_repeated', name)
  if (name !== 'webhook-signature' && value.includes(',')) return refusal('header_repeated', name)
  return { ok: true, value }
}
