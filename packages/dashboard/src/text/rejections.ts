// Explains why the tracking API rejected a call: what the code means, in the words of the service (api/rules.ts), and what to do about it. Pure.

import { REJECTIONS } from '../api/rules.ts'

const SENDS_OBJECT = 'Send an object, or leave it out.'
const SENDS_STRING = 'Send a string, or leave it out.'
const SMALLER = 'The client libraries split batches automatically.'

const ADVICE: Readonly<Record<keyof typeof REJECTIONS, string>> = {
  invalid_json: 'If you use a shell, check that it did not remove the quotes.',
  invalid_request: 'Compare the body with the code snippets on the page of the source.',
  message_too_large:
    'Make the message smaller: store large values elsewhere and send a link to them. In a batch, the context and integrations of the batch count for each message.',
  batch_too_large: SMALLER,
  too_many_messages: SMALLER,
  invalid_write_key:
    "Copy the key from the page of the source; it may have been removed, or its source deleted. With curl, add a colon after the key: --user 'KEY:'.",
  oauth_required:
    'The OAuth application must be allowed to send to this source. To accept the write key alone, turn off OAuth for the source.',
  invalid_access_token:
    'The client libraries get a new token automatically. If the error persists, compare the client id and the key with the OAuth application.',
  source_not_allowed: 'OAuth applications are in Settings.',
  source_disabled: 'Rejected messages are not stored: the sender has to send them again.',
  request_timeout: 'If this happens often, the connection is too slow for the size of the requests: send smaller batches.',
  unsupported_encoding: 'An uncompressed body needs no Content-Encoding header.',
  rate_limited: 'The client libraries wait and retry. The limit is set with SWITCHYARD_RATE_LIMIT.',
  store_unavailable: 'The client libraries retry. Check the log of the service: a common cause is a full disk.',
  internal_error: 'This is a bug: please report it with the details from the log.',
  unknown_type: 'Give each message of a batch one of these types.',
  message_id_invalid: 'Send an id of the right length, or none: the service then generates one.',
  id_not_string: 'Send numbers as strings: "42" instead of 42.',
  no_user_anon_id: 'Send userId for a known user, or anonymousId for an unknown one.',
  event_required: 'Name what happened, for example "Order Completed".',
  group_id_required: 'Send the id of the group in your database.',
  user_id_required: 'Send both ids: userId is the new one.',
  previous_id_required: 'Send both ids: previousId is the old one.',
  properties_not_object: SENDS_OBJECT,
  traits_not_object: SENDS_OBJECT,
  context_not_object: SENDS_OBJECT,
  integrations_not_object: 'Send an object such as { "All": true }, or leave it out.',
  name_not_string: SENDS_STRING,
  category_not_string: SENDS_STRING,
  overloaded: 'The client libraries wait and retry. If this happens often, run more nodes or send less.',
}

function isKnown(code: string): code is keyof typeof REJECTIONS {
  return Object.hasOwn(REJECTIONS, code)
}

export function rejectionSentence(code: string): string {
  return isKnown(code) ? REJECTIONS[code] : `Rejected with the code ${code}.`
}

/** Empty if the code is unknown. */
export function rejectionAdvice(code: string): string {
  return isKnown(code) ? ADVICE[code] : ''
}
