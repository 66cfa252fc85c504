// verify(): finds the body in what a framework calls a request, and hands it to the judgement in verify-webhook.ts.
// Prefers the bytes as received over anything a parser made of them. It decides nothing about signatures itself.

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
 * Verifies a request, reading its body if nobody has. Refusals are returned; the promise rejects with TypeError only for
 * wrong arguments. In order of preference the body is: rawBody; body as bytes or text; body as parsed JSON; the stream.
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
  return announcesTooMuch(request.headers, limits) ? refusal('body_too_large') : readFetchRequest(request, limits)
}

function readServer(request: ServerRequest, limits: ReadLimits): BodyRead | Promise<BodyRead> {
  const rawBody = asRawBody(request.rawBody)
  const body = asRawBody(request.body)
  if (isRawBody(rawBody)) return { ok: true, body: rawBody }
  if (isRawBody(body)) return { ok: true, body }
  const stream = [request.raw, request].find(isNodeStream)
  const unread = stream !== undefined && !stream.readableDidRead && !stream.readableEnded
  // Express 4 sets body to {} where no parser took the request on; then the stream still has everything.
  if (body !== undefined && body !== null && !(unread && isEmptyObject(body))) return writtenAgain(body)
  if (!unread) return refusal('body_already_read')
  if (stream.destroyed) return refusal('body_unreadable')
  return announcesTooMuch(request.headers, limits) ? refusal('body_too_large') : readNodeStream(stream, limits)
}

/**
 * A parsed body, as JSON again. Right for both schemes, not only for X-Signature's batch rule, because the service sends
 * every body in the form JSON.stringify gives what JSON.parse made of it. A body that a middleware changed is refused
 * like a forged one. Two bodies that parse alike pass alike, and parsed is what the application sees of them.
 */
function writtenAgain(parsed: unknown): BodyRead {
  try {
    const body: unknown = JSON.stringify(parsed)
    return typeof body === 'string' ? { ok: true, body } : refusal('body_unreadable')
  } catch {
    return refusal('body_unreadable')
  }
}

/** Spares the reading where the sender says beforehand that it is for nothing. Lying does not help: the reader counts. */
function announcesTooMuch(headers: HeadersInput, { maxBodyBytes }: ReadLimits): boolean {
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
