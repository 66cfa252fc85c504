// The errors of the tracking API and the control API: one table of stable codes with HTTP status and default message, and the single
// JSON shape of every error response. Problems of a single message are in the table of the protocol package (REFUSALS). The result of a
// delivery attempt is an outcome (delivery/link/outcome.ts) and never one of these errors.

import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, REFUSALS } from '@switchyard/protocol'

export const API_ERRORS = {
  // Tracking API: whole requests
  invalid_json: [400, 'The request body is not valid JSON encoded as UTF-8.'],
  invalid_request: [400, 'The request body must be a JSON object; for a batch, an object with an array named batch.'],
  message_too_large: [400, REFUSALS.message_too_large],
  batch_too_large: [
    400,
    `The batch is larger than 500 KB (${count(MAX_BATCH_BYTES)} bytes) of JSON, counted after decompression. Split it into smaller batches.`,
  ],
  too_many_messages: [400, `The batch has more than ${count(MAX_BATCH_MESSAGES)} messages. Split it into smaller batches.`],
  invalid_write_key: [
    401,
    'The write key is missing or unknown. Send it as the user name of Basic authentication, or as writeKey in the request body.',
  ],
  oauth_required: [
    401,
    'This source requires an OAuth 2.0 access token. Get one from POST /oauth2/token and send it as Authorization: Bearer <token>.',
  ],
  invalid_access_token: [401, 'The access token is invalid, has expired or was revoked. Get a new one from POST /oauth2/token.'],
  source_not_allowed: [
    403,
    'The OAuth application of this access token is not allowed to send to this source. Add the source to the sourceIds of the application.',
  ],
  source_disabled: [403, 'The source of this write key is disabled. Enable the source to send messages to it.'],
  request_timeout: [408, 'The request did not arrive in time. Send it again.'],
  unsupported_encoding: [
    415,
    'The Content-Encoding of the request is not supported. Compress the body with gzip, or send it uncompressed.',
  ],
  rate_limited: [429, 'The source exceeded its rate limit. Wait for the number of seconds in the Retry-After header, then try again.'],
  overloaded: [
    503,
    'The service is receiving more than it can handle, so no message was accepted. Wait for the number of seconds in the Retry-After header, then try again.',
  ],
  store_unavailable: [
    503,
    'The store is unavailable, so no message was accepted. Wait for the number of seconds in the Retry-After header, then try again.',
  ],
  // Both
  not_found: [404, 'Nothing exists at this path. Check its spelling, and remove any trailing slash.'],
  method_not_allowed: [405, 'This path does not support this HTTP method. The Allow header lists the supported methods.'],
  headers_too_large: [431, 'The request headers are too large. Send fewer or smaller headers.'],
  internal_error: [500, 'The service failed unexpectedly. Its log has the details.'],
  // Control API
  unauthorized: [401, 'A valid control token is required. Send it as Authorization: Bearer <token>.'],
  forbidden: [403, 'The role or the sources of your token do not allow this operation. Ask an admin.'],
  shared_destination: [
    403,
    'The destination also serves sources that you have no access to, so you cannot change or test it, or see its counts and its health. Ask an admin.',
  ],
  cross_site_request: [
    403,
    'The session cookie and the login work only from the dashboard of this service. In other programs, send a control token as Authorization: Bearer <token>.',
  ],
  too_many_attempts: [
    429,
    'Too many invalid tokens were sent from this address. Wait for the number of seconds in the Retry-After header, then try again.',
  ],
  invalid_field: [400, 'A field of the request is not valid.'],
  secrets_needed: [
    400,
    'The change would send stored secrets to a server that they were not given for. Send the secrets again in the same request.',
  ],
  not_a_lake: [
    400,
    'There is no such lake. A lake is a warehouse with the engine parquet; create one, or send the id of one as destinationId.',
  ],
  sql_invalid: [400, 'The query is not valid.'],
  sql_too_large: [400, 'The query needs more memory than a query may use.'],
  sql_timed_out: [400, 'The query took too long.'],
  sql_cancelled: [400, 'The query was cancelled.'],
  sql_failed: [400, 'The query could not be run.'],
  not_a_warehouse: [400, 'The destination is not a warehouse, so it has no tables and no loads.'],
  unknown_field: [400, 'The request has an unknown field. Remove it or correct its spelling.'],
  body_too_large: [400, 'The request body is too large. Split it into several requests.'],
  invalid_cursor: [
    400,
    'The cursor is not valid for this list. Send the value of next from the previous page unchanged, or leave out cursor to start at the first page.',
  ],
  source_not_found: [404, 'There is no source with this id. GET /api/sources lists all sources.'],
  source_deleted: [
    409,
    'The source of these messages was deleted, so no destination would get them. They stay in quarantine. Delete them with POST /api/quarantine/delete.',
  ],
  built_in_source: [409, 'The source system is part of the service. It cannot be changed or deleted.'],
  destination_not_found: [404, 'There is no destination with this id. GET /api/destinations lists all destinations.'],
  integration_not_found: [404, 'The catalogue has no integration with this slug. GET /api/catalog lists all integrations.'],
  plan_not_found: [404, 'There is no tracking plan with this id. GET /api/plans lists all plans.'],
  source_has_plan: [409, 'One of the sources already has another tracking plan. A source has at most one plan.'],
  event_not_found: [404, 'The event catalogue has no event with this id. GET /api/events lists all events.'],
  message_not_found: [404, 'No message with this id or messageId is stored. It may be older than the retention period.'],
  delivery_not_found: [404, 'No delivery with this id is stored. It may be older than the retention period.'],
  replay_not_found: [404, 'There is no replay job with this id. GET /api/replays lists all jobs.'],
  deletion_not_found: [404, 'There is no deletion request with this id. GET /api/deletions lists all requests.'],
  incident_not_found: [
    404,
    'There is no incident with this id. Closed incidents are kept for 90 days. GET /api/incidents lists all incidents.',
  ],
  incident_closed: [409, 'The incident is closed, so it cannot be acknowledged any more.'],
  destination_not_sending: [409, 'The destination is paused, disabled or held back, so nothing is sent to it. Resume or enable it first.'],
  mute_not_found: [404, 'There is no mute with this id, or it has ended. GET /api/alerts/mutes lists all mutes.'],
  oauth_app_not_found: [404, 'There is no OAuth application with this id. GET /api/oauth-apps lists all applications.'],
  oauth_key_not_found: [404, 'The OAuth application has no key with this id. GET /api/oauth-apps/{id} lists its keys.'],
  oauth_key_taken: [409, 'The OAuth application already has a key with this id. Choose another id, or leave it out to get a new one.'],
  saved_query_not_found: [404, 'The warehouse has no saved query with this id. GET /api/destinations/{id}/queries lists all of them.'],
  saved_query_name_taken: [
    409,
    'The warehouse has a query with this name that you cannot see, because it may be about sources that you have no access to. Choose another name.',
  ],
  too_many_saved_queries: [409, 'The warehouse already has 200 saved queries, which is the limit. Remove one first.'],
  too_many_oauth_keys: [409, 'The OAuth application has reached its maximum number of keys. Remove a key first.'],
  token_not_found: [404, 'There is no control token with this id. GET /api/tokens lists all tokens.'],
  token_of_settings: [
    409,
    'The first admin token cannot be deleted through the API. To replace it, set SWITCHYARD_ADMIN_TOKEN to a new token and restart the service.',
  ],
  too_many_tokens: [409, 'The maximum number of control tokens has been reached. Revoke a token first.'],
  person_not_found: [404, 'There is no person with this id. GET /api/people lists everybody who has logged in with single sign-on.'],
  oidc_not_configured: [
    404,
    'Single sign-on is not set up. Log in with a control token, or set SWITCHYARD_OIDC_ISSUER and the other settings of single sign-on.',
  ],
  invalid_logout_token: [400, 'The logout token is not valid, or was used before.'],
  invalid_login_code: [400, 'The code is not valid, was used before or has expired. Start the login again.'],
  write_key_not_found: [404, 'The source does not have this write key. GET /api/sources/{id} lists its write keys.'],
  last_write_key: [409, 'A source must have at least one write key. Add another key before you remove this one.'],
  write_key_taken: [409, 'Another source already has this write key. Choose another key, or leave it out to get a new one.'],
  too_many_write_keys: [409, 'The source has reached its maximum number of write keys. Remove a key first.'],
  too_many_listeners: [429, 'Too many live streams are open: at most 8 per token and 20 in total. Close one, or try again later.'],
  too_many_previews: [429, 'Too many previews are running: at most 4 at the same time. Try again in a few seconds.'],
  replay_over: [409, 'The replay job has finished or was cancelled, so it cannot be changed. Create a new job instead.'],
  delivery_pending: [
    409,
    'The delivery is still pending and will be attempted automatically, so it cannot be replayed yet. Wait until it has ended.',
  ],
  holds_no_key: [409, 'The delivery does not hold a key of an ordered destination, so it cannot be resumed. Replay it without `resume`.'],
  key_not_waiting: [404, 'No message of this key waits: its last message was delivered, or the key is not ordered by this destination.'],
  not_head_of_key: [
    409,
    'The message is no longer the one that its key waits for. GET /api/destinations/{id}/order shows the current one.',
  ],
  message_gone: [409, 'The message is no longer stored, so it cannot be sent again.'],
  backup_not_found: [404, 'There is no backup with this id. A backup is kept for 15 minutes; create a new one with POST /api/backups.'],
  backup_running: [
    409,
    'Another backup is in progress or is still stored. Delete it, or wait: it is removed 15 minutes after it was created.',
  ],
  backup_not_ready: [409, 'The backup is not ready for download. GET /api/backups/{id} shows its state.'],
  backup_unsupported: [409, 'The store is PostgreSQL, which this service does not back up. Use pg_dump or pg_basebackup.'],
  destination_exists: [
    409,
    'Another destination of the same source has the same name and URL, or the same name and integration, so every message would be sent twice.',
  ],
  already_loaded: [409, 'The messages are in the tables of the warehouse already. Loading them again would add each row a second time.'],
  no_archive: [409, 'The destination keeps no archive. Only warehouses with the engine `parquet` do.'],
  archive_unreadable: [409, 'The archive of the lake cannot be read.'],
  sql_busy: [503, 'Too many queries are running. Try again in a few seconds.'],
  not_installed: [409, 'The destination needs a package that is not installed on this server. Install it first.'],
  name_taken: [409, 'The name is already in use, and the request has uniqueName=true. Choose another name.'],
  changed_since_read: [
    412,
    'The resource was changed after you read it, so this request changed nothing. Read it again and repeat the change.',
  ],
  same_names: [
    409,
    'Several resources of the same kind have the same name, so they cannot be exported: a configuration file identifies them by name. Rename all but one.',
  ],
  destination_gone: [409, 'The destination of this delivery was deleted, so the message cannot be sent to it again.'],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type ApiErrorCode = keyof typeof API_ERRORS

interface Details {
  field?: string | undefined
  /** All fields that the error is about, if there may be several. */
  fields?: readonly string[] | undefined
  /** The existing destination that the error is about. */
  destinationId?: string | undefined
  /** Why a message is not stored, if that is known. The source is null for an unknown write key. */
  rejection?: { code: string; sourceId: string | null; at: string } | undefined
  /** The place in a query, from 1; null if no place is the cause. */
  line?: number | null | undefined
  column?: number | null | undefined
}

interface ApiErrorOptions extends Details {
  message?: string | undefined
  cause?: unknown
}

export class ApiError extends Error {
  override name = 'ApiError'
  readonly status: number
  readonly code: ApiErrorCode
  readonly field: Details['field']
  readonly fields: Details['fields']
  readonly destinationId: Details['destinationId']
  readonly rejection: Details['rejection']
  readonly line: Details['line']
  readonly column: Details['column']

  constructor(code: ApiErrorCode, options: ApiErrorOptions = {}) {
    const [status, defaultMessage] = API_ERRORS[code]
    super(options.message ?? defaultMessage, options.cause === undefined ? undefined : { cause: options.cause })
    this.status = status
    this.code = code
    this.field = options.field ?? options.fields?.[0]
    this.fields = options.fields
    this.destinationId = options.destinationId
    this.rejection = options.rejection
    this.line = options.line
    this.column = options.column
  }
}

export interface ErrorBody extends Details {
  success: false
  error: string
  code: string
  message: string
}

/** The code is under two keys, `error` and `code`, because public client libraries read one or the other. */
export function errorBody(error: Pick<ErrorBody, 'code' | 'message'> & Details): ErrorBody {
  const { code, message, field, fields, destinationId, rejection, line, column } = error
  return {
    success: false,
    error: code,
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(fields === undefined ? {} : { fields }),
    ...(destinationId === undefined ? {} : { destinationId }),
    ...(rejection === undefined ? {} : { rejection }),
    ...(line === undefined ? {} : { line }),
    ...(column === undefined ? {} : { column }),
  }
}

/** Does not use toLocaleString, which loads locale data at the first call and takes 10 ms. */
function count(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',')
}
