// A request while it is in progress, as the parts of the recorder fill it in.

import type { RecordedRequest } from '../integration.ts'

/** More than is kept, because a secret must be complete to be found. */
const MAX_BODY_BYTES = 80 * 1024

/** A request while it is in progress. */
export interface OpenRequest extends Pick<RecordedRequest, 'positions' | 'method' | 'url' | 'startedAtMs'> {
  startedAt: number
  totalMs: number | null
  status: number | null
  retryAfter: string | null
  error: string | null
  answer: Buffer[]
  answerBytes: number
  answerEncoding: string | undefined
  headers: Readonly<Record<string, unknown>> | null
  body: Buffer[]
  bodyBytes: number
}

export function addBody(request: OpenRequest, chunk: unknown, encoding: unknown): void {
  if (request.bodyBytes >= MAX_BODY_BYTES) return
  let bytes: Buffer
  if (typeof chunk === 'string') bytes = Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  else if (chunk instanceof Uint8Array) bytes = Buffer.from(chunk)
  else return
  request.body.push(bytes.subarray(0, MAX_BODY_BYTES - request.bodyBytes))
  request.bodyBytes += bytes.length
}

export function failed(request: OpenRequest, error: unknown): void {
  request.error ??= codeOf(error)
  ended(request)
}

export function ended(request: OpenRequest): void {
  request.totalMs ??= performance.now() - request.startedAt
}

export function codeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return typeof code === 'string' ? code : typeof name === 'string' ? name : 'ERROR'
}
