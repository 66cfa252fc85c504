// Explains why the tracking API rejected a call: what the code means, in the words of the service, and what to do about it. The codes are
// the API's (packages/server/src/errors.ts and packages/protocol/src/refusals.ts); a test compares them. Pure.

interface Rejection {
  says: string
  advice: string
}

const SENDS_OBJECT = 'Send an object, or leave it out.'
const SENDS_STRING = 'Send a string, or leave it out.'
const SMALLER = 'The client libraries split batches automatically.'

const REJECTIONS: Readonly<Record<string, Rejection>> = {
  invalid_json: {
    says: 'The request body is not valid JSON encoded as UTF-8.',
    advice: 'If you use a shell, check that it did not remove the quotes.',
  },
  invalid_request: {
    says: 'The request body must be a JSON object; for a batch, an object with an array named batch.',
    advice: 'Compare the body with the code snippets on the page of the source.',
  },
  message_too_large: {
    says: 'A message may be at most 32 KB (32,768 bytes) of JSON.',
    advice:
      'Make the message smaller: store large values elsewhere and send a link to them. In a batch, the context and integrations of the batch count for each message.',
  },
  batch_too_large: {
    says: 'The batch is larger than 500 KB (512,000 bytes) of JSON, counted after decompression. Split it into smaller batches.',
    advice: SMALLER,
  },
  too_many_messages: { says: 'The batch has more than 2,500 messages. Split it into smaller batches.', advice: SMALLER },
  invalid_write_key: {
    says: 'The write key is missing or unknown. Send it as the user name of Basic authentication, or as writeKey in the request body.',
    advice:
      "Copy the key from the page of the source; it may have been removed, or its source deleted. With curl, add a colon after the key: --user 'KEY:'.",
  },
  oauth_required: {
    says: 'This source requires an OAuth 2.0 access token. Get one from POST /oauth2/token and send it as Authorization: Bearer <token>.',
    advice: 'The OAuth application must be allowed to send to this source. To accept the write key alone, turn off OAuth for the source.',
  },
  invalid_access_token: {
    says: 'The access token is invalid, has expired or was revoked. Get a new one from POST /oauth2/token.',
    advice:
      'The client libraries get a new token automatically. If the error persists, compare the client id and the key with the OAuth application.',
  },
  source_not_allowed: {
    says: 'The OAuth application of this access token is not allowed to send to this source. Add the source to the sourceIds of the application.',
    advice: 'OAuth applications are in Settings.',
  },
  source_disabled: {
    says: 'The source of this write key is disabled. Enable the source to send messages to it.',
    advice: 'Rejected messages are not stored: the sender has to send them again.',
  },
  request_timeout: {
    says: 'The request did not arrive in time. Send it again.',
    advice: 'If this happens often, the connection is too slow for the size of the requests: send smaller batches.',
  },
  unsupported_encoding: {
    says: 'The Content-Encoding of the request is not supported. Compress the body with gzip, or send it uncompressed.',
    advice: 'An uncompressed body needs no Content-Encoding header.',
  },
  rate_limited: {
    says: 'The source exceeded its rate limit. Wait for the number of seconds in the Retry-After header, then try again.',
    advice: 'The client libraries wait and retry. The limit is set with SWITCHYARD_RATE_LIMIT.',
  },
  store_unavailable: {
    says: 'The store is unavailable, so no message was accepted. Wait for the number of seconds in the Retry-After header, then try again.',
    advice: 'The client libraries retry. Check the log of the service: a common cause is a full disk.',
  },
  internal_error: {
    says: 'The service failed unexpectedly. Its log has the details.',
    advice: 'This is a bug: please report it with the details from the log.',
  },
  unknown_type: {
    says: 'type must be one of identify, track, page, screen, group or alias.',
    advice: 'Give each message of a batch one of these types.',
  },
  message_id_invalid: {
    says: 'messageId must be a string of 1 to 100 characters.',
    advice: 'Send an id of the right length, or none: the service then generates one.',
  },
  id_not_string: {
    says: 'userId, anonymousId, groupId and previousId must be strings.',
    advice: 'Send numbers as strings: "42" instead of 42.',
  },
  no_user_anon_id: {
    says: 'Either userId or anonymousId is required.',
    advice: 'Send userId for a known user, or anonymousId for an unknown one.',
  },
  event_required: {
    says: 'A track call requires event, a non-empty string.',
    advice: 'Name what happened, for example "Order Completed".',
  },
  group_id_required: { says: 'A group call requires groupId.', advice: 'Send the id of the group in your database.' },
  user_id_required: { says: 'An alias call requires userId, the new ID.', advice: 'Send both ids: userId is the new one.' },
  previous_id_required: {
    says: 'An alias call requires previousId, the ID to alias from.',
    advice: 'Send both ids: previousId is the old one.',
  },
  properties_not_object: { says: 'properties must be an object.', advice: SENDS_OBJECT },
  traits_not_object: { says: 'traits must be an object.', advice: SENDS_OBJECT },
  context_not_object: { says: 'context must be an object.', advice: SENDS_OBJECT },
  integrations_not_object: { says: 'integrations must be an object.', advice: 'Send an object such as { "All": true }, or leave it out.' },
  name_not_string: { says: 'name must be a string.', advice: SENDS_STRING },
  category_not_string: { says: 'category must be a string.', advice: SENDS_STRING },
}

export const REJECTION_CODES: readonly string[] = Object.keys(REJECTIONS)

export function rejectionSentence(code: string): string {
  return own(code)?.says ?? `Rejected with the code ${code}.`
}

/** Empty if the code is unknown. */
export function rejectionAdvice(code: string): string {
  return own(code)?.advice ?? ''
}

function own(code: string): Rejection | undefined {
  return Object.hasOwn(REJECTIONS, code) ? REJECTIONS[code] : undefined
}
