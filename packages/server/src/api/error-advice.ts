// What to do about each error: one sentence per code, for the reference. The tables of codes are errors.ts and the
// protocol's; the compiler asks for a sentence here when one of them gets a code. Nothing is decided by these.

import type { RefusalCode } from '@switchyard/protocol'
import type { ApiErrorCode } from '../errors.ts'

const SAME = 'The id may be of another kind of thing, or the thing was deleted: list what there is.'

export const ERROR_ADVICE: Readonly<Record<ApiErrorCode | RefusalCode, string>> = {
  // Tracking API: whole requests
  invalid_json: 'Send JSON in UTF-8, without trailing commas. A body that was cut off on its way looks like this, too.',
  invalid_request: 'Look at the message: it says what the request lacks.',
  message_too_large: 'Send less in it; put large values somewhere else and send where.',
  batch_too_large: 'Send smaller batches. Clients do this by themselves.',
  too_many_messages: 'Send smaller batches. Clients do this by themselves.',
  invalid_write_key: 'Compare the key with those that GET /api/sources shows. It may have been removed, or its source deleted.',
  oauth_required:
    'Get an access token from POST /oauth2/token with an application that the source is attached to, or turn requireOAuth off.',
  invalid_access_token: 'Ask POST /oauth2/token for a new token and send the same again. Clients do this by themselves.',
  source_not_allowed: 'Attach the source to the application: PATCH /api/oauth-apps/{id} with its id in sourceIds.',
  source_disabled: 'Enable the source: PATCH /api/sources/{id} with enabled true.',
  request_timeout: 'Try again. If it happens often, the connection is too slow for what is sent: send smaller batches.',
  unsupported_encoding: 'Send the body with Content-Encoding: gzip or none; to the control API with none.',
  rate_limited: 'Wait as long as Retry-After says and send the same again. The limit is SWITCHYARD_RATE_LIMIT.',
  overloaded:
    'Wait as long as Retry-After says and send the same request again. The cause is a large number of request bodies that arrive slowly at the same time.',
  store_unavailable: 'Wait as long as Retry-After says and send the same again. The log of the service says why: often a full disk.',
  // Both
  not_found: 'Compare the path with this reference. Paths have no slash at their end.',
  method_not_allowed: 'Use one of the methods that the Allow header names.',
  headers_too_large: 'Send fewer or smaller headers; cookies of other services on the same host may be the cause.',
  internal_error: 'This is a bug. The log of the service has the details: please report them.',
  // Control API
  unauthorized: 'Send a control token. A token that worked before was revoked or has been replaced.',
  forbidden: 'Ask whoever runs the service for a token with the role admin.',
  cross_site_request: 'Open the dashboard at the address of the service itself; programs send a token instead of a cookie.',
  too_many_attempts:
    'Wait as long as Retry-After says, then send the right token. Behind a proxy, set SWITCHYARD_TRUSTED_PROXIES, or all who come through it count as one.',
  invalid_field: 'Correct the field that the answer names; its message says what is taken.',
  unknown_field: 'Leave out the field that the answer names, or correct its spelling.',
  body_too_large: 'Ask for less at once: several requests instead of one.',
  invalid_cursor: 'Give back next of the page before as it is, to the same list with the same filters; or begin anew without a cursor.',
  source_not_found: SAME,
  destination_not_found: SAME,
  message_not_found:
    'Ask with the id or the messageId. Messages are kept for SWITCHYARD_RETENTION_DAYS; GET /api/rejections shows what was refused.',
  delivery_not_found: 'Deliveries are kept for SWITCHYARD_RETENTION_DAYS, and their ids are those that GET /api/deliveries shows.',
  replay_not_found: 'GET /api/replays lists the jobs there are.',
  deletion_not_found: SAME,
  oauth_app_not_found: SAME,
  oauth_key_not_found: 'GET /api/oauth-apps/{id} shows the keys of the application.',
  oauth_key_taken: 'Choose another id, or leave it out to get a new one. To replace a key, remove the old one first.',
  too_many_oauth_keys: 'Remove the keys that are no longer used.',
  token_not_found: 'GET /api/tokens lists the tokens there are.',
  token_of_settings: 'Set SWITCHYARD_ADMIN_TOKEN to a new token and restart the service.',
  too_many_tokens: 'Revoke tokens that nobody uses: GET /api/tokens shows when each was last used.',
  write_key_not_found: 'GET /api/sources/{id} shows the write keys of the source.',
  last_write_key: 'Add the key that replaces it first: POST /api/sources/{id}/write-keys.',
  name_taken: 'Choose another name, or change the existing entry. If `switchyard apply` reports this, run it again.',
  changed_since_read:
    'Read the resource again, check whether your change still applies, and send it with the new ETag in If-Match. If a command reports this, run it again.',
  write_key_taken: 'Choose another key, or leave it out to get a new one.',
  too_many_write_keys: 'Remove the keys that are no longer used.',
  too_many_listeners: 'Close a stream that nobody watches: a dashboard in a forgotten tab, a switchyard tail that still runs.',
  replay_over: 'Create another job: what was sent again by this one is not sent twice.',
  delivery_pending: 'Wait for its end. GET /api/deliveries/{id} shows when the next attempt is due.',
  message_gone:
    'It cannot be sent again: retention or a deletion request has removed it. Keep messages longer with SWITCHYARD_RETENTION_DAYS.',
  backup_not_found: 'Begin another with POST /api/backups.',
  backup_running: 'Fetch the copy that is there, remove it with DELETE /api/backups/{id}, or wait until it is forgotten.',
  backup_not_ready: 'Ask GET /api/backups/{id} until its state is ready; when it is failed, its error says why.',
  backup_unsupported: 'Use pg_dump or pg_basebackup; docs/operations/backup.md says how.',
  same_names: 'Give them different names first; the message says which name it is.',
  destination_gone: 'Create the destination anew; what it was sent before stays with the old one.',
  // Single messages
  unknown_type: 'Give each message of a batch one of these types.',
  message_id_invalid: 'Send an id of the right length, or none: then the service makes one up.',
  id_not_string: 'Send numbers as strings.',
  no_user_anon_id: 'Send userId for a user that you know, anonymousId for one that you do not.',
  event_required: 'Name what happened, for example "Order Completed".',
  group_id_required: 'Send the id of the group in your database.',
  user_id_required: 'Send both ids: userId is the one from now on.',
  previous_id_required: 'Send both ids: previousId is the one until now.',
  properties_not_object: 'Send an object, or leave it out.',
  traits_not_object: 'Send an object, or leave it out.',
  context_not_object: 'Send an object, or leave it out.',
  integrations_not_object: 'Send an object such as { "All": true }, or leave it out.',
  name_not_string: 'Send a string, or leave it out.',
  category_not_string: 'Send a string, or leave it out.',
}
