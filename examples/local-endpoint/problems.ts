// What can be wrong with a whole request: code, status and sentence in one table, and the one shape of every error
// answer. What can be wrong with one message is the protocol's own table and must not be repeated here.

import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, REFUSALS } from '@switchyard/protocol'

const PROBLEMS = {
  invalid_json: [400, 'The body is not valid JSON in UTF-8.'],
  invalid_request: [400, 'The body must be a JSON object; for a batch, one with a list named batch.'],
  message_too_large: [400, REFUSALS.message_too_large],
  batch_too_large: [400, `A batch may be at most 500 KB (${count(MAX_BATCH_BYTES)} bytes) of JSON, counted after decompression.`],
  too_many_messages: [400, `A batch may hold at most ${count(MAX_BATCH_MESSAGES)} messages.`],
  invalid_write_key: [401, 'A write key is required, as the user name of Basic authentication or as writeKey in the body.'],
  not_found: [404, 'There is nothing at this path. Send to /v1/batch, /v1/import or /v1/ and the type of a call.'],
  method_not_allowed: [405, 'This path does not take this method; the Allow header names those it takes.'],
  request_timeout: [408, 'The request did not arrive in time.'],
  unsupported_encoding: [415, 'Content-Encoding must be gzip or absent.'],
  headers_too_large: [431, 'The request has too many or too large headers.'],
  internal_error: [500, 'The local endpoint failed; its own output says how.'],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type ProblemCode = keyof typeof PROBLEMS

export interface Problem {
  ok: false
  status: number
  code: ProblemCode
  message: string
}

export function problem(code: ProblemCode, message?: string): Problem {
  const [status, usual] = PROBLEMS[code]
  return { ok: false, status, code, message: message ?? usual }
}

/** Public clients read different ones of these keys, so the code is there twice. */
export function errorBody({ code, message }: { code: string; message: string }): { [key: string]: unknown } {
  return { success: false, error: code, code, message }
}

function count(value: number): string {
  return value.toLocaleString('en-US')
}
