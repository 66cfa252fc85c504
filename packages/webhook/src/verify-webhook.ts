// The judgement of a request whose body is in memory: sizes, signatures, then JSON, in that order, so that nothing
// unsigned is interpreted except the batch that X-Signature makes us parse. Synchronous and free of I/O.

import { matchesAny } from './constant-time.ts'
import { type HeadersInput, headerValues, requireHeaders } from './header-values.ts'
import { bodyText, isBatch, type RawBody, requireRawBody } from './raw-body.ts'
import { type Refusal, refusal } from './refusals.ts'
import { readSignatureHeaders, type SignatureHeaders } from './signature-headers.ts'
import { standardDigest } from './standard-webhooks.ts'
import { parseVerifyOptions, type VerifyOptions, type VerifySettings } from './verify-options.ts'
import { matchesBatch, matchesMessage } from './x-signature.ts'

/** A message as the service writes it. The signature vouches for the sender; the fields are not checked again here. */
export interface WebhookMessage {
  type?: 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias' | 'delete'
  /** The same on every delivery of the message, replays included: what to deduplicate by. A delete has none. */
  messageId?: string
  userId?: string
  timestamp?: string
  [field: string]: unknown
}

export interface VerifiedWebhook {
  ok: true
  /** The body as text. */
  body: string
  /** The body as JSON: one message or a batch of them. */
  payload: WebhookMessage | WebhookMessage[]
  /** The messages, always as an array. */
  messages: WebhookMessage[]
  /** Which messages are proven: all of them, or only the first (possible only with `allowUnprovenMessages`). */
  coverage: 'body' | 'first_message'
  /** X-Attempt, from 1. No signature covers it. */
  attempt: number | undefined
  /** X-Replay. No signature covers it. */
  replay: boolean
  /** webhook-id, where Standard Webhooks proved it. */
  webhookId?: string
}

export type VerifyResult = VerifiedWebhook | Refusal

export interface RawWebhook {
  headers: HeadersInput
  /** The bytes as received, or their exact text. */
  body: RawBody
}

const ATTEMPT = /^[1-9]\d{0,8}$/

/** Verifies a body that has been read already. Refusals are returned; only wrong arguments throw, as TypeError. */
export function verifyWebhook(webhook: RawWebhook, options: VerifyOptions): VerifyResult {
  const settings = parseVerifyOptions(options)
  requireHeaders(webhook.headers)
  requireRawBody(webhook.body)
  const signatures = readSignatureHeaders(webhook.headers, settings)
  return signatures.ok ? verifyBody(webhook, signatures, settings) : signatures
}

/** The second half, for a caller that has judged the headers before it read the body. */
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

/** JSON.parse reads arrays nested half a million deep; JSON.stringify runs out of stack on them. No service body is such. */
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
