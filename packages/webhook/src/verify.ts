// verify(): finds the body in the request of a framework, and passes it to verify-webhook.ts, which checks the signatures.
// Prefers the bytes as received over a parsed body.

import type { Readable } from 'node:stream'
import { type HeadersInput, headerValues, requireHeaders } from './header-values.ts'
import { asRawBody, isRawBody } from './raw-body.ts'
import { type BodyRead, type ReadLimits, readFetchRequest, readNodeStream } from './read-body.ts'
import { refusal } from './refusals.ts'
import type { FetchRequest, ServerRequest, WebhookRequest } from './request-shapes.ts'
import { readSignatureHeaders } from './signature-headers.ts'
import { parseVerifyOptions, type VerifyOptions } from './verify-options.ts'
import { type VerifyResult, verifyBody } from './verify-webhook.ts'

/**
 * Verifies a request, and reads its body if that has not been read. Resolves to `ok: false` for an invalid request; the promise
 * rejects with TypeError only for invalid arguments. Uses the first of these bodies that exists: rawBody; body as bytes or text;
 * body as parsed JSON; the unread stream.
 */
export async function verify(request: WebhookRequest, options: VerifyOptions): Promise<VerifyResult> {
  const settings = parseVerifyOptions(options)
  if (typeof request !== 'object' || request === null) throw new TypeError('request must be an object.')
  const headers: HeadersInput = request.headers
  requireHeaders(headers)
  const signatures = readSignatureHeaders(headers, settings)
  if (!signatures.ok) return signatures
  const read = isFetchRequest(request) ? await readFetch(request, settings) : await readServer(request, settings)
  return read.ok ? verifyBody({ headers, body: read.body }, signatures, settings) : read
}

function readFetch(request: FetchRequest, limits: ReadLimits): BodyRead | Promise<BodyRead> {
  return announcesTooLarge(request.headers, limits) ? refusal('body_too_large') : readFetchRequest(request, limits)
}

function readServer(request: ServerRequest, limits: ReadLimits): BodyRead | Promise<BodyRead> {
  const rawBody = asRawBody(request.rawBody)
  const body = asRawBody(request.body)
  if (isRawBody(rawBody)) return { ok: true, body: rawBody }
  if (isRawBody(body)) return { ok: true, body }
  const stream = [request.raw, request].find(isNodeStream)
  const unread = stream !== undefined && !stream.readableDidRead && !stream.readableEnded
  // Express 4 sets body to {} if no parser handled the request; then the stream still contains the whole body.
  if (body !== undefined && body !== null && !(unread && isEmptyObject(body))) return stringified(body)
  if (!unread) return refusal('body_already_read')
  if (stream.destroyed) return refusal('body_unreadable')
  return announcesTooLarge(request.headers, limits) ? refusal('body_too_large') : readNodeStream(stream, limits)
}

/**
 * Converts a parsed body back to JSON. This is correct for both signature schemes, because the service sends every body in the
 * form that JSON.stringify(JSON.parse(body)) returns. A body that a middleware has changed is rejected like a forged one. Two
 * different texts that parse to the same value are both accepted, but the application sees only the parsed value.
 */
function stringified(parsed: unknown): BodyRead {
  try {
    const body: unknown = JSON.stringify(parsed)
    return typeof body === 'string' ? { ok: true, body } : refusal('body_unreadable')
  } catch {
    return refusal('body_unreadable')
  }
}

/** Whether Content-Length exceeds the limit, so that the body need not be read. A false value does no harm: the bytes are counted, too. */
function announcesTooLarge(headers: HeadersInput, { maxBodyBytes }: ReadLimits): boolean {
  return Number(headerValues(headers, 'content-length')[0]) > maxBodyBytes
}

function isFetchRequest(request: WebhookRequest): request is FetchRequest {
  return typeof (request as Partial<FetchRequest>).arrayBuffer === 'function'
}

function isNodeStream(value: unknown): value is Readable {
  return typeof value === 'object' && value !== null && typeof (value as { pipe?: unknown }).pipe === 'function'
}

function isEmptyObject(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !Array.isArray(body) && Object.keys(body).length === 0
}
