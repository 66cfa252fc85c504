// What to do about each error: advice per code, shown in the reference (docs/reference/errors.md) below the message of the error. The
// codes are defined in errors.ts and in the protocol package; a code without advice is a type error. Nothing reads these texts at run time.

import type { RefusalCode } from '@switchyard/protocol'
import type { ApiErrorCode } from '../errors.ts'

const WRONG_ID = 'It may have been deleted, or the id belongs to another kind of resource.'
const OBJECT_OR_NOTHING = 'Send an object, or leave out the field.'
const STRING_OR_NOTHING = 'Send a string, or leave out the field.'

export const ERROR_ADVICE: Readonly<Record<ApiErrorCode | RefusalCode, string>> = {
  // Tracking API: whole requests
  invalid_json:
    'The message says what is wrong and where: for example, that the body is empty, is a form, was cut off, or has single quotes or a trailing comma.',
  invalid_request: 'The message says which part of the request is wrong.',
  message_too_large:
    'Send less data in the message, or store large values elsewhere and send a link. In a batch, the context and integrations of the batch count for each message.',
  batch_too_large: 'Client libraries split batches automatically.',
  too_many_messages: 'Client libraries split batches automatically.',
  invalid_write_key:
    'Compare the key with the write keys that GET /api/sources shows. The key may have been removed, or its source deleted.',
  oauth_required:
    'The OAuth application must have the source in its sourceIds. To accept messages without a token, set requireOAuth of the source to false.',
  invalid_access_token: 'Request a new token and send the same request again. Client libraries do this automatically.',
  source_not_allowed: 'Change the application with PATCH /api/oauth-apps/{id}.',
  source_disabled: 'Send PATCH /api/sources/{id} with enabled set to true.',
  request_timeout: 'If this happens often, the connection is too slow for the size of the requests: send smaller batches.',
  unsupported_encoding: 'The tracking API accepts gzip. The control API accepts only bodies without Content-Encoding.',
  rate_limited: 'Send the same request again after the wait. The limit is the setting SWITCHYARD_RATE_LIMIT.',
  overloaded:
    'Send the same request again after the wait. Possible causes: many request bodies that arrive slowly at the same time, messages that arrive faster than the service can deliver them, or the limit SWITCHYARD_MAX_BACKLOG.',
  store_unavailable: 'Send the same request again after the wait. The log of the service has the reason; often the disk is full.',
  // Both
  not_found: 'Compare the path with the HTTP API reference.',
  method_not_allowed: 'Send the request with one of the supported methods.',
  headers_too_large: 'A possible cause is cookies that other services on the same host have set.',
  internal_error: 'This is a bug. Please report it with the details from the log.',
  // Control API
  unauthorized: 'If the token worked before, it has been revoked or replaced. Ask an admin for a new one.',
  forbidden: 'An admin can create a token with another role or more sources.',
  shared_destination: 'An admin can make the change. You can also create a destination for your own sources.',
  cross_site_request:
    'Open the dashboard at the address of the service itself. If a proxy in front of the service changes the address, set SWITCHYARD_PUBLIC_URL.',
  too_many_attempts:
    'Send a valid token after the wait. Behind a proxy, set SWITCHYARD_TRUSTED_PROXIES: without it, all clients of the proxy count as one address.',
  secrets_needed:
    'The change points the destination to another server (scheme, host or port), and stored secrets are only sent to the servers they were given for. Send the secrets that are listed in `fields` in the same request, or set them to null.',
  invalid_field: 'Correct the field that is named in `field`. The message says which values are valid.',
  already_loaded: 'Replay only deliveries to the warehouse that failed or expired, or select another destination.',
  no_archive: 'GET /api/destinations lists all destinations with their engines.',
  archive_unreadable: 'The message says why. Test the destination of the lake with POST /api/destinations/{id}/test.',
  not_installed: 'For a warehouse, run `switchyard warehouse install` on the machine of the service, or call POST /api/warehouse/install.',
  not_a_lake: 'GET /api/destinations lists all destinations. Warehouses with other engines are queried with their own tools.',
  sql_invalid: 'The message says what is wrong, and line and column where. Tables are listed by GET /api/sql/tables.',
  sql_too_large:
    'Select fewer rows or columns, restrict the days, or group by fewer values. If the files of a table in a bucket are too large to fetch, query the bucket with a DuckDB of your own.',
  sql_timed_out: 'Restrict the days, or query the files with a DuckDB of your own.',
  sql_cancelled: 'The client closed the connection, or the service stops.',
  sql_failed: 'The message says why. Run the query again; if it fails again, the log of the service may say more.',
  sql_busy: 'Send the query again later: two queries run at a time, and only a few more may wait.',
  not_a_warehouse: 'Only destinations of the type `warehouse` have tables.',
  unknown_field: 'The field is named in `field`.',
  body_too_large: 'For example, create a deletion request for fewer users at a time.',
  invalid_cursor: 'A cursor is valid only for the list that returned it, with the same filters.',
  source_not_found: WRONG_ID,
  source_deleted: 'To send the messages anyway, send them again from your application to another source.',
  destination_not_found: WRONG_ID,
  integration_not_found:
    'Check the spelling of the slug. If GET /api/catalog returns an empty list, the integrations package is not installed: run `switchyard catalog install`.',
  plan_not_found: WRONG_ID,
  source_has_plan: 'Detach the source from its other plan first, or add the rules to that plan.',
  event_not_found: 'Events are dropped from the event catalogue if they were not seen for 90 days, and when their source is deleted.',
  message_not_found:
    'Messages are kept for the number of days in SWITCHYARD_RETENTION_DAYS. GET /api/rejections shows messages that were rejected.',
  delivery_not_found:
    'Deliveries are kept for the number of days in SWITCHYARD_RETENTION_DAYS. GET /api/deliveries lists deliveries with their ids.',
  replay_not_found: 'The id may belong to another kind of resource.',
  deletion_not_found: 'The id may belong to another kind of resource.',
  incident_not_found: 'Check the id. GET /api/incidents lists the incidents of the last 90 days.',
  incident_closed: 'GET /api/incidents?state=active lists the incidents that are not closed.',
  destination_not_sending: 'GET /api/destinations/{id}/health says why deliveries are held back.',
  mute_not_found: 'Nothing to do: the mute has ended. GET /api/alerts/mutes lists those that have not.',
  oauth_app_not_found: WRONG_ID,
  oauth_key_not_found: 'The key may have been removed already.',
  oauth_key_taken: 'To replace a key, remove the old one first.',
  saved_query_not_found: 'If somebody else has removed it, there is nothing to do.',
  saved_query_name_taken: 'Somebody with access to all sources can see and remove the other query.',
  too_many_saved_queries: 'Remove queries that nobody uses with DELETE /api/destinations/{id}/queries/{queryId}.',
  too_many_oauth_keys: 'Remove keys that are no longer used with DELETE /api/oauth-apps/{id}/keys/{keyId}.',
  token_not_found: 'The token may have been revoked already.',
  token_of_settings: 'The token is either the value of SWITCHYARD_ADMIN_TOKEN or the one that the service printed at its first start.',
  too_many_tokens: 'Revoke tokens that are no longer used: GET /api/tokens shows when each was last used.',
  person_not_found: WRONG_ID,
  oidc_not_configured: 'The page about single sign-on in the documentation lists the settings.',
  invalid_logout_token:
    'Only the identity provider sends logout tokens. If its tokens are rejected, check that the clocks agree and that SWITCHYARD_OIDC_ISSUER is its exact issuer.',
  invalid_login_code: 'Run `switchyard login` again. A code can be exchanged once, within a minute.',
  write_key_not_found: 'The key may have been removed already, or it belongs to another source.',
  built_in_source: 'Attach destinations to the source instead: that is allowed, as with any other source.',
  last_write_key: 'Add the replacement with POST /api/sources/{id}/write-keys.',
  destination_exists:
    'Often a command or a request was repeated. Change the existing destination, whose id is in the message, or send the request with allowDuplicate=true.',
  name_taken: 'Alternatively, change the existing resource. If `switchyard apply` reports this error, run it again.',
  changed_since_read:
    'Check whether your change still applies, and send it with the new ETag in If-Match. If a command reports this error, run it again.',
  write_key_taken: 'A write key identifies one source, so two sources cannot share it.',
  too_many_write_keys: 'Remove keys that are no longer used with DELETE /api/sources/{id}/write-keys/{key}.',
  too_many_listeners: 'Look for dashboards in forgotten browser tabs, and for `switchyard tail` commands that are still running.',
  too_many_previews: 'Wait until other previews have ended, then try again.',
  replay_over: 'The new job skips deliveries that were replayed already and are pending or delivered.',
  delivery_pending: 'GET /api/deliveries/{id} shows when the next attempt is due.',
  holds_no_key: 'GET /api/destinations/{id}/order lists the keys that are held, each with the delivery that holds it.',
  key_not_waiting: 'GET /api/destinations/{id}/order lists the keys that wait or are held. The key is the value itself as text.',
  not_head_of_key: 'It has ended meanwhile. Read the list again, and decide about the message that the key waits for now.',
  message_gone: 'Retention or a deletion request removed it. To keep messages longer, raise SWITCHYARD_RETENTION_DAYS.',
  backup_not_found: 'Download a backup as soon as its state is ready.',
  backup_running: 'Download it with GET /api/backups/{id}/file if you need it, then delete it with DELETE /api/backups/{id}.',
  backup_not_ready: 'Wait until its state is ready. If its state is failed, its error has the reason.',
  backup_unsupported: 'See [Backup and restore](../operations/backup.md).',
  same_names: 'The message contains the name.',
  destination_gone: 'If you create the destination again, it receives new messages only. Its earlier deliveries stay with the deleted one.',
  // Single messages
  unknown_type: 'Set type in each message of the batch.',
  message_id_invalid: 'Shorten the id, or leave out messageId: then the service generates one.',
  id_not_string: 'Convert numbers to strings.',
  no_user_anon_id: 'Send userId for a known user, anonymousId for an unknown one.',
  event_required: 'Send the name of the event, for example "Order Completed".',
  group_id_required: 'Send the id of the group in your database.',
  user_id_required: 'Send both ids: userId is the new id of the user, previousId the old one.',
  previous_id_required: 'Send both ids: userId is the new id of the user, previousId the old one.',
  properties_not_object: OBJECT_OR_NOTHING,
  traits_not_object: OBJECT_OR_NOTHING,
  context_not_object: OBJECT_OR_NOTHING,
  integrations_not_object: 'Send an object such as { "All": true }, or leave out the field.',
  name_not_string: STRING_OR_NOTHING,
  category_not_string: STRING_OR_NOTHING,
}
