// The caller's faults: one table of stable codes with status and sentence, and the one shape of every error answer, on the
// tracking API and the control API alike. What is wrong with a single message is the protocol's own table and is not
// repeated here; what became of a delivery is an outcome and never an error.

import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, REFUSALS } from '@switchyard/protocol'

export const API_ERRORS = {
  // Tracking API: whole requests
  invalid_json: [400, 'The body is not valid JSON in UTF-8.'],
  invalid_request: [400, 'The body must be a JSON object; for a batch, one with a list named batch.'],
  message_too_large: [400, REFUSALS.message_too_large],
  batch_too_large: [400, `A batch may be at most 500 KB (${count(MAX_BATCH_BYTES)} bytes) of JSON, counted after decompression.`],
  too_many_messages: [400, `A batch may hold at most ${count(MAX_BATCH_MESSAGES)} messages.`],
  invalid_write_key: [
    401,
    'The write key is missing or not known. It goes in as the user name of Basic authentication or as writeKey in the body.',
  ],
  oauth_required: [401, 'This source takes messages only with an OAuth 2.0 access token.'],
  invalid_access_token: [401, 'The access token is not valid, has expired or was revoked. Get a new one from POST /oauth2/token.'],
  source_not_allowed: [403, 'The application that this access token belongs to may not send to the source of this write key.'],
  source_disabled: [403, 'The source that this write key belongs to is disabled.'],
  request_timeout: [408, 'The request did not arrive in time.'],
  unsupported_encoding: [415, 'Content-Encoding must be gzip or absent.'],
  rate_limited: [429, 'The source sends more than its limit. Try again after the time in Retry-After.'],
  overloaded: [503, 'The service is receiving as many request bodies as it can hold. Try again after the time in Retry-After.'],
  store_unavailable: [503, 'The message could not be stored. Nothing was accepted; try again after the time in Retry-After.'],
  // Both
  not_found: [404, 'There is nothing at this path.'],
  method_not_allowed: [405, 'This path does not take this method; the Allow header names those it takes.'],
  headers_too_large: [431, 'The request has too many or too large headers.'],
  internal_error: [500, 'The service failed; its log says how.'],
  // Control API
  unauthorized: [401, 'A control token is required, as Authorization: Bearer <token>.'],
  forbidden: [403, 'This needs a token with the role admin; this one is a viewer’s.'],
  cross_site_request: [403, 'A session is for requests of the dashboard itself. Elsewhere, send a token as Authorization: Bearer <token>.'],
  too_many_attempts: [429, 'There were too many wrong tokens from this address. Try again after the time in Retry-After.'],
  invalid_field: [400, 'A field of the request is not valid.'],
  unknown_field: [400, 'The request has a field that is not known here.'],
  body_too_large: [400, 'The request body is too large.'],
  invalid_cursor: [400, 'The cursor is not one that a list gave out.'],
  source_not_found: [404, 'There is no source with this id.'],
  destination_not_found: [404, 'There is no destination with this id.'],
  message_not_found: [404, 'There is no message with this id, or it is older than the retention time.'],
  delivery_not_found: [404, 'There is no delivery with this id, or it is older than the retention time.'],
  replay_not_found: [404, 'There is no replay job with this id.'],
  deletion_not_found: [404, 'There is no deletion request with this id.'],
  oauth_app_not_found: [404, 'There is no OAuth application with this id.'],
  oauth_key_not_found: [404, 'The OAuth application has no key with this id.'],
  oauth_key_taken: [409, 'The OAuth application has a key with this id already.'],
  too_many_oauth_keys: [409, 'The OAuth application has as many keys as it can. Remove one first.'],
  token_not_found: [404, 'There is no control token with this id.'],
  token_of_settings: [409, 'This token is not deleted here: set SWITCHYARD_ADMIN_TOKEN to another, which ends it at the next start.'],
  too_many_tokens: [409, 'There are as many control tokens as there can be. Revoke one first.'],
  write_key_not_found: [404, 'The source has no such write key.'],
  last_write_key: [409, 'A source keeps at least one write key. Add another before removing this one.'],
  write_key_taken: [409, 'Another source has this write key.'],
  too_many_write_keys: [409, 'The source has as many write keys as it can. Remove one first.'],
  too_many_listeners: [429, 'Too many live streams are open: at most 8 per token and 20 in all. Close one, or try again later.'],
  replay_over: [409, 'The replay job has finished or was cancelled, so it cannot be changed any more.'],
  delivery_pending: [409, 'The delivery is still pending; it is attempted by itself.'],
  message_gone: [409, 'The message is no longer stored, so it cannot be sent again.'],
  backup_not_found: [404, 'There is no copy with this id. Copies are kept for a quarter of an hour.'],
  backup_running: [409, 'A copy is being made or waits to be fetched. Remove it first, or wait.'],
  backup_not_ready: [409, 'The copy is not ready.'],
  backup_unsupported: [409, 'This store is PostgreSQL, which is backed up with tools of its own: pg_dump or pg_basebackup.'],
  name_taken: [409, 'The name is already in use, and uniqueName=true allows it only once.'],
  changed_since_read: [
    412,
    'The resource was changed after it was read, so this request changed nothing. Read it again and repeat the change.',
  ],
  same_names: [409, 'Several have the same name, and a configuration file tells entries apart by their names.'],
  destination_gone: [409, 'The destination of this delivery was deleted, so the message cannot be sent to it again.'],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type ApiErrorCode = keyof typeof API_ERRORS

export class ApiError extends Error {
  override name = 'ApiError'
  readonly status: number
  readonly code: ApiErrorCode
  readonly field: string | undefined

  constructor(code: ApiErrorCode, options: { message?: string | undefined; field?: string | undefined; cause?: unknown } = {}) {
    const [status, usual] = API_ERRORS[code]
    super(options.message ?? usual, options.cause === undefined ? undefined : { cause: options.cause })
    this.status = status
    this.code = code
    this.field = options.field
  }
}

export interface ErrorBody {
  success: false
  error: string
  code: string
  message: string
  field?: string
}

/** Public clients read different ones of these keys, so the code is there twice. */
export function errorBody({ code, message, field }: { code: string; message: string; field?: string | undefined }): ErrorBody {
  return { success: false, error: code, code, message, ...(field === undefined ? {} : { field }) }
}

function count(value: number): string {
  return value.toLocaleString('en-US')
}
