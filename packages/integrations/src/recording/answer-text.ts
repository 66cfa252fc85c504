// The text of an answer's body, as far as it is recorded. It is collected while the action reads the body, so nothing is read twice or held back.

import { brotliDecompressSync, constants, inflateSync, unzipSync } from 'node:zlib'
import type { OpenRequest } from './open-request.ts'

/** More than is kept: a compressed body is longer as text, and a secret must be complete to be found. */
const MAX_COLLECTED_BYTES = 16_384
/** A few compressed kilobytes can hold gigabytes of zeros. */
const MAX_INFLATED_BYTES = 1 << 20

type AnsweredRequest = Pick<OpenRequest, 'answer' | 'answerBytes' | 'answerEncoding' | 'status'>

export function addAnswer(request: AnsweredRequest, chunk: unknown): void {
  if (request.answerBytes >= MAX_COLLECTED_BYTES) return
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk instanceof Uint8Array ? chunk : null
  if (bytes === null) return
  // A copy: the parser reuses its memory.
  request.answer.push(Buffer.from(bytes.subarray(0, MAX_COLLECTED_BYTES - request.answerBytes)))
  request.answerBytes += bytes.length
}

/** Null if there was no answer. Longer than what is kept of it: cut it after its secrets are removed. */
export function answerText(request: AnsweredRequest): string | null {
  if (request.status === null) return null
  const bytes = inflated(Buffer.concat(request.answer), request.answerEncoding)
  return bytes === null ? '(compressed)' : bytes.toString('utf8', 0, MAX_COLLECTED_BYTES)
}

function inflated(bytes: Buffer, encoding: string | undefined): Buffer | null {
  if (encoding === undefined || encoding === 'identity' || bytes.length === 0) return bytes
  // The end may be missing.
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: MAX_INFLATED_BYTES }
  try {
    if (/^(x-)?gzip$/.test(encoding)) return unzipSync(bytes, options)
    if (encoding === 'deflate') return inflateSync(bytes, options)
    if (encoding === 'br')
      return brotliDecompressSync(bytes, { finishFlush: constants.BROTLI_OPERATION_FLUSH, maxOutputLength: MAX_INFLATED_BYTES })
  } catch {
    // Not what its header says, or too long.
  }
  return null
}
