// Verifies both signature schemes like packages/webhook, but with WebCrypto instead of node:crypto: same headers, same accepted formats,
// same error codes. Both are tested with that package's vectors. Nothing here guesses; find-mistakes.ts does.

import { parsedJson } from '../../text/json-tokens.ts'
import type { SignatureHeader } from './parse-headers.ts'

export type Headers = ReadonlyMap<string, readonly string[]>

/** The error code of packages/webhook, or `valid` if it would accept the request. */
export type Code =
  | 'valid'
  | 'signature_missing'
  | 'header_repeated'
  | 'header_invalid'
  | 'timestamp_outside_tolerance'
  | 'signature_invalid'
  | 'batch_unproven'
  | 'invalid_json'
  | 'invalid_payload'

export interface SignatureVerdict {
  code: Code
  header?: SignatureHeader
  /** The full values of the signature header; empty if it is missing. */
  received: readonly string[]
  /** The signature computed from the body and the secret, in the format of the header; null if it cannot be computed. */
  computed: string | null
  /** Whether the signature itself is correct, even if the request is rejected for another reason. */
  matches: boolean
  /** The age of webhook-timestamp in seconds; negative if it is in the future. */
  ageSeconds: number | null
}

export const TOLERANCE_SECONDS = 300

const HEX_SHA1 = /^[0-9a-f]{40}$/
const ID = /^[!-+\-/-~]{1,256}$/
const TIMESTAMP = /^\d{1,12}$/
const V1 = /^v1,([A-Za-z0-9+/]{43}=)$/
const MAX_SIGNATURE_HEADER_LENGTH = 4_096
const MAX_SIGNATURES = 16
const PREFIX = 'whsec_'

const encoder = new TextEncoder()

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text)
}

/** Whether WebCrypto is available. Browsers offer it only over https and on localhost. */
export function canCompute(): boolean {
  return (globalThis.crypto as Crypto | undefined)?.subtle !== undefined
}

export async function hmac(hash: 'SHA-1' | 'SHA-256', key: Uint8Array, bytes: Uint8Array): Promise<Uint8Array> {
  const imported = await crypto.subtle.importKey('raw', key as Uint8Array<ArrayBuffer>, { name: 'HMAC', hash }, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, bytes as Uint8Array<ArrayBuffer>))
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

/** Null if the text is not canonical base64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null
  try {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
    const canonical = base64(bytes)
    // atob ignores excess bits at the end, which would turn a mistyped secret into a different key.
    return text === canonical || text === canonical.replace(/=+$/, '') ? bytes : null
  } catch {
    return null
  }
}

/** The key bytes of `whsec_…`; null if it is not a signing secret. */
export function signingKey(secret: string): Uint8Array<ArrayBuffer> | null {
  return fromBase64(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret)
}

/** The body as text; null if it is not UTF-8. */
export function textOf(body: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    return null
  }
}

export function isBatch(body: Uint8Array): boolean {
  const first = body.find((byte) => byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)
  return first === 0x5b
}

export function isBatchOfSeveral(body: Uint8Array): boolean {
  const payload = parsed(textOf(body))
  return Array.isArray(payload) && payload.length > 1
}

/** The bytes that X-Signature signs: the body, or for a batch the first message serialized again. Null if there is none. */
export function xSignedBytes(body: Uint8Array): Uint8Array | null {
  if (!isBatch(body)) return body
  const batch = parsed(textOf(body))
  return Array.isArray(batch) && batch.length > 0 ? utf8(JSON.stringify(batch[0])) : null
}

export async function xDigest(body: Uint8Array, key: Uint8Array): Promise<string | null> {
  const bytes = xSignedBytes(body)
  return bytes === null ? null : hex(await hmac('SHA-1', key, bytes))
}

export async function standardDigest(key: Uint8Array, id: string, timestamp: string, body: Uint8Array): Promise<string> {
  const start = utf8(`${id}.${timestamp}.`)
  const signed = new Uint8Array(start.length + body.length)
  signed.set(start)
  signed.set(body, start.length)
  return base64(await hmac('SHA-256', key, signed))
}

/** `isBodySigned`: whether there is also a Standard Webhooks signature, which covers all messages of a batch. X-Signature covers only the first. */
export async function verifyX(headers: Headers, body: Uint8Array, sharedSecret: string, isBodySigned = false): Promise<SignatureVerdict> {
  const received = valuesOf(headers, 'x-signature')
  const computed = await xDigest(body, utf8(sharedSecret))
  const verdict = { received, computed, matches: computed !== null && received.includes(computed), ageSeconds: null }
  const one = readOne(headers, 'x-signature')
  if ('code' in one) return { ...verdict, ...one }
  if (!HEX_SHA1.test(one.value)) return { ...verdict, code: 'header_invalid', header: 'x-signature' }
  if (isBatch(body) && parsed(textOf(body)) === undefined) return { ...verdict, code: 'invalid_json' }
  if (computed !== one.value) return { ...verdict, code: 'signature_invalid', header: 'x-signature' }
  const code = payloadCode(body)
  if (code === 'valid' && !isBodySigned && isBatchOfSeveral(body)) return { ...verdict, code: 'batch_unproven', header: 'x-signature' }
  return { ...verdict, code }
}

/** With several keys, a match with any of them is enough. */
export async function verifyStandard(
  headers: Headers,
  body: Uint8Array,
  keys: readonly Uint8Array[],
  nowMs: number,
  toleranceSeconds: number = TOLERANCE_SECONDS,
): Promise<SignatureVerdict> {
  const received = valuesOf(headers, 'webhook-signature')
  const empty = { received, computed: null, matches: false, ageSeconds: null }
  const id = readOne(headers, 'webhook-id')
  if ('code' in id) return { ...empty, ...id }
  const timestamp = readOne(headers, 'webhook-timestamp')
  if ('code' in timestamp) return { ...empty, ...timestamp }
  const signature = readOne(headers, 'webhook-signature')
  const digests = await Promise.all(keys.map((key) => standardDigest(key, id.value, timestamp.value, body)))
  const computed = digests.length === 0 ? null : digests.map((digest) => `v1,${digest}`).join(' ')
  const isNumber = TIMESTAMP.test(timestamp.value)
  const ageSeconds = isNumber ? Math.floor(nowMs / 1_000) - Number(timestamp.value) : null
  const found = 'code' in signature ? undefined : parseSignatures(signature.value)
  const verdict = { received, computed, matches: found?.some((digest) => digests.includes(digest)) ?? false, ageSeconds }
  if ('code' in signature) return { ...verdict, ...signature }
  if (!ID.test(id.value)) return { ...verdict, code: 'header_invalid', header: 'webhook-id' }
  if (!isNumber) return { ...verdict, code: 'header_invalid', header: 'webhook-timestamp' }
  if (found === undefined) return { ...verdict, code: 'header_invalid', header: 'webhook-signature' }
  if (found.length === 0) return { ...verdict, code: 'signature_missing', header: 'webhook-signature' }
  if (Math.abs(ageSeconds as number) > toleranceSeconds)
    return { ...verdict, code: 'timestamp_outside_tolerance', header: 'webhook-timestamp' }
  if (!verdict.matches) return { ...verdict, code: 'signature_invalid', header: 'webhook-signature' }
  return { ...verdict, code: payloadCode(body) }
}

/** The v1 digests; undefined if an entry is malformed. */
export function parseSignatures(value: string): string[] | undefined {
  const entries = value.split(' ')
  if (value.length > MAX_SIGNATURE_HEADER_LENGTH || entries.length > MAX_SIGNATURES) return undefined
  const digests: string[] = []
  for (const entry of entries) {
    if (!entry.startsWith('v1,')) continue
    const digest = V1.exec(entry)?.[1]
    if (digest === undefined) return undefined
    digests.push(digest)
  }
  return digests
}

/** What is wrong with a body whose signature is correct. */
export function payloadCode(body: Uint8Array): 'valid' | 'invalid_json' | 'invalid_payload' {
  const payload = parsed(textOf(body))
  if (payload === undefined) return 'invalid_json'
  const messages: unknown[] = Array.isArray(payload) ? payload : [payload]
  const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)
  return messages.length > 0 && messages.every(isObject) ? 'valid' : 'invalid_payload'
}

export function parsed(text: string | null): unknown {
  return text === null ? undefined : parsedJson(text)
}

export function valuesOf(headers: Headers, name: SignatureHeader): string[] {
  return (headers.get(name) ?? []).filter((value) => value !== '')
}

function readOne(
  headers: Headers,
  name: SignatureHeader,
): { value: string } | { code: 'signature_missing' | 'header_repeated'; header: SignatureHeader } {
  const [value, second] = valuesOf(headers, name)
  if (value === undefined) return { code: 'signature_missing', header: name }
  if (second !== undefined || (name !== 'webhook-signature' && value.includes(','))) return { code: 'header_repeated', header: name }
  return { value }
}
