// The stable codes with which a request is rejected, each with the HTTP status to respond with and a message. A test keeps
// the README's table equal to this one. A message must not contain anything from a request or a secret, because receivers
// log messages. Mistakes in the calling program (a missing or malformed secret) throw TypeError instead.

export const REFUSALS = {
  signature_missing: [401, 'A signature header that the configured secrets require is missing.'],
  header_repeated: [400, 'A signature header appears more than once.'],
  header_invalid: [400, 'A signature header is malformed.'],
  timestamp_outside_tolerance: [401, 'webhook-timestamp differs from the current time by more than toleranceSeconds.'],
  signature_invalid: [401, 'The signature does not match the body.'],
  batch_unproven: [
    401,
    'X-Signature proves only the first message of a batch, and this batch has more. Give the destination a signing secret and set signingSecrets.',
  ],
  // 500 instead of 4xx: the receiver is set up wrongly, and Switchyard retries after a 5xx, so no message is lost meanwhile.
  body_already_read: [
    500,
    'The body was read before verification, and the request has neither rawBody nor body. Call verify() before the body is read, or keep the raw bytes in rawBody.',
  ],
  body_too_large: [413, 'The body is larger than maxBodyBytes.'],
  // Switchyard retries after a 408, too.
  body_timeout: [408, 'The body did not arrive within timeoutMs.'],
  body_unreadable: [400, 'The body could not be read completely.'],
  invalid_json: [400, 'The body is not valid JSON in UTF-8.'],
  invalid_payload: [400, 'The body is neither a JSON object nor a non-empty array of JSON objects.'],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type RefusalCode = keyof typeof REFUSALS

export type SignatureHeader = 'x-signature' | 'webhook-id' | 'webhook-timestamp' | 'webhook-signature'

export interface Refusal {
  ok: false
  code: RefusalCode
  /** An explanation for people; programs should use `code`. Never contains anything from the request. */
  message: string
  /** The HTTP status to respond with. */
  status: number
  /** The missing or invalid header, if the problem is in one header. */
  header?: SignatureHeader
}

export function refusal(code: RefusalCode, header?: SignatureHeader): Refusal {
  const [status, message] = REFUSALS[code]
  return header === undefined ? { ok: false, code, message, status } : { ok: false, code, message, status, header }
}
