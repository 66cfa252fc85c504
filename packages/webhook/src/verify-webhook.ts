// Verifies a request whose body is in memory: first its size, then the signatures, then the JSON, so that unsigned data is
// not parsed, except for a batch, which X-Signature requires to be parsed first. Synchronous, without I/O.

import { matchesAny } from './constant-time.ts'
import { type HeadersInput, headerValues, requireHeaders } from './header-values.ts'
import { bodyText, isBatch, type RawBody, requireRawBody } from './raw-body.ts'
import { type Refusal, refusal } from './refusals.ts'
import { readSignatureHeaders, type SignatureHeaders } from './signature-headers.ts'
import { standardDigest } from './standard-webhooks.ts'
import { parseVerifyOptions, type VerifyOptions, type VerifySettings } from './verify-options.ts'
import { matchesBatch, matchesMessage } from './x-signature.ts'

/** A message as Switchyard delivers it. The signature proves the sender; the fields are not validated again. */
export interface WebhookMessage {
  type?: 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias' | 'delete'
  /** Stays the same on every delivery of the message, including replays: use it to deduplicate. A delete has none. */
  messageId?: string
  userId?: string
  timestamp?: string
  [field: string]: unknown
}

export interface VerifiedWebhook {
  ok: true
  /** The body as text. */
  body: string
  /** The parsed body: one message, or an array of messages for a batch. */
  payload: WebhookMessage | WebhookMessage[]
  /** The messages, always as an array, even if there is only one. */
  messages: WebhookMessage[]
  /** Which messages are proven: all of them, or only the first (possible only with `allowUnprovenMessages`). */
  coverage: 'body' | 'first_message'
  /** The number of this attempt, from 1 (X-Attempt); undefined if missing. Not covered by any signature. */
  attempt: number | undefined
  /** Whether this delivery is a replay (X-Replay). Not covered by any signature. */
  replay: boolean
  /** The webhook-id header; present only if a Standard Webhooks signature proved it. */
  webhookId?: string
}

export type VerifyResult = VerifiedWebhook | Refusal

export interface RawWebhook {
  headers: HeadersInput
  /** The bytes as received, or their exact text. */
  body: RawBody
}

const ATTEMPT = /^[1-9]\d{0,8}$/

/** Verifies a body that has already been read. Returns `ok: false` for an invalid request; throws TypeError only for invalid arguments. */
export function verifyWebhook(webhook: RawWebhook, options: VerifyOptions): VerifyResult {
  const settings = parseVerifyOptions(options)
  requireHeaders(webhook.headers)
  requireRawBody(webhook.body)
  const signatures = readSignatureHeaders(webhook.headers, settings)
  return signatures.ok ? verifyBody(webhook, signatures, settings) : signatures
}

/** Verifies the body against signature headers that were checked before the body was read. */
export function verifyBody({ headers, body }: RawWebhook, signatures: SignatureHeaders, settings: VerifySettings): VerifyResult {
  if (Buffer.byteLength(body) > settings.maxBodyBytes) return refusal('body_too_large')
  const { standard, xSignature } = signatures
  if (standard !== undefined) {
    const computed = settings.signingKeys.map((key) => standardDigest(key, standard.id, standard.timestamp, body))
    if (!matchesAny(standard.digests, computed)) return refusal('signature_invalid', 'webhook-signature')
  }
  const batch = isBatch(body)
  const { sharedSecret } = settings
  const checked = xSignature !== undefined && sharedSecret !== undefined
  if (checked && !batch && !matchesMessage(body, xSignature, sharedSecret)) return refusal('signature_invalid', 'x-signature')
  let text: string
  let payload: unknown
  try {
    text = bodyText(body)
    payload = JSON.parse(text)
  } catch {
    return refusal('invalid_json')
  }
  if (checked && batch && !matchesParsedBatch(payload, xSignature, sharedSecret)) return refusal('signature_invalid', 'x-signature')
  if (!isPayload(payload)) return refusal('invalid_payload')
  const messages = Array.isArray(payload) ? payload : [payload]
  const coverage = messages.length > 1 && standard === undefined ? 'first_message' : 'body'
  if (coverage !== 'body' && !settings.allowUnprovenMessages) return refusal('batch_unproven', 'x-signature')
  const attempt = onlyValue(headers, 'x-attempt')
  return {
    ok: true,
    body: text,
    payload,
    messages,
    coverage,
    attempt: attempt !== undefined && ATTEMPT.test(attempt) ? Number(attempt) : undefined,
    replay: onlyValue(headers, 'x-replay') === 'true',
    ...(standard === undefined ? {} : { webhookId: standard.id }),
  }
}

/** JSON.parse accepts arrays nested half a million levels deep, on which JSON.stringify overflows the stack. Switchyard sends no such body. */
function matchesParsedBatch(batch: unknown, signature: string, sharedSecret: string): boolean {
  try {
    return matchesBatch(batch, signature, sharedSecret)
  } catch {
    return false
  }
}

function isPayload(payload: unknown): payload is WebhookMessage | WebhookMessage[] {
  return Array.isArray(payload) ? payload.length > 0 && payload.every(isMessage) : isMessage(payload)
}

function isMessage(value: unknown): value is WebhookMessage {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function onlyValue(headers: HeadersInput, name: string): string | undefined {
  const [value, second] = headerValues(headers, name)
  return second === undefined ? value : undefined
}
