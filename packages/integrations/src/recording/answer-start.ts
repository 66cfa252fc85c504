// The start of an answer's body as text. It is collected while the action reads the body, so nothing is read twice or held back.

import { brotliDecompressSync, constants, inflateSync, unzipSync } from 'node:zlib'
import type { OpenRequest } from './open-request.ts'

const MAX_TEXT_BYTES = 4_096
/** Of a compressed body; enough for more than 4 KB of text. */
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

/** Null if there was no answer. */
export function answerStart(request: AnsweredRequest): string | null {
  if (request.status === null) return null
  const bytes = inflated(Buffer.concat(request.answer), request.answerEncoding)
  if (bytes === null) return '(compressed)'
  // Removes the half of a character at the end.
  return new TextDecoder().decode(bytes.subarray(0, MAX_TEXT_BYTES), { stream: true })
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
