// Everything that can be judged before the body is read, so that an unsigned, malformed or stale request costs neither
// the reading of a body nor a digest. What it returns is well formed, not yet proven.

import { type HeadersInput, headerValues } from './header-values.ts'
import { type Refusal, refusal, type SignatureHeader } from './refusals.ts'
import { isWebhookId, parseSignatures, parseTimestamp } from './standard-webhooks.ts'
import type { VerifySettings } from './verify-options.ts'
import { isSignature } from './x-signature.ts'

/** What the configured secrets call for; undefined is what they do not. */
export interface SignatureHeaders {
  ok: true
  standard: { id: string; timestamp: string; digests: string[] } | undefined
  xSignature: string | undefined
}

type One = { ok: true; value: string } | Refusal

/**
 * Each kind of secret that is configured must find its headers. Were one of two enough, a forger would leave out the
 * headers of the better scheme and attack the other: for a batch, X-Signature vouches for the first message alone.
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
  // Written so that a clock that gives NaN refuses.
  if (!(apart <= toleranceSeconds)) return refusal('timestamp_outside_tolerance', 'webhook-timestamp')
  return { ok: true, id: id.value, timestamp: timestamp.value, digests }
}

/** Repeated headers come as several values or joined by commas, which none of these but webhook-signature contains. */
function readOne(headers: HeadersInput, name: SignatureHeader): One {
  const [value, second] = headerValues(headers, name)
  if (value === undefined) return refusal('signature_missing', name)
  if (second !== undefined) return refusal('header_repeated', name)
  if (name !== 'webhook-signature' && value.includes(',')) return refusal('header_repeated', name)
  return { ok: true, value }
}
