// Why a call was refused at the door, in words: what the code means, as the service says it, and what to do about it from here. The codes are
// the API's (packages/server/src/errors.ts and the protocol's refusals); a test holds them together. Pure.

interface Refusal {
  says: string
  advice: string
}

const SENDS_OBJECT = 'Send an object, or leave it out.'
const SENDS_STRING = 'Send a string, or leave it out.'
const SMALLER = 'Send smaller batches. The clients do this by themselves.'

const REFUSALS: Readonly<Record<string, Refusal>> = {
  invalid_json: {
    says: 'The request body is not valid JSON encoded as UTF-8. Check for trailing commas, and whether the body was cut off.',
    advice: 'Look for a trailing comma, or quotes that a shell took away. A body that was cut off on its way looks like this, too.',
  },
  invalid_request: {
    says: 'The request body must be a JSON object; for a batch, an object with an array named batch.',
    advice: 'Each message is an object of its own. Compare with the snippets of the source.',
  },
  message_too_large: {
    says: 'A message may be at most 32 KB (32,768 bytes) of JSON.',
    advice: 'Send less in it: put large values somewhere else and send where.',
  },
  batch_too_large: {
    says: 'The batch is larger than 500 KB (512,000 bytes) of JSON, counted after decompression. Split it into smaller batches.',
    advice: SMALLER,
  },
  too_many_messages: { says: 'The batch has more than 2,500 messages. Split it into smaller batches.', advice: SMALLER },
  invalid_write_key: {
    says: 'The write key is missing or unknown. Send it as the user name of Basic authentication, or as writeKey in the request body.',
    advice:
      "Copy the key of the source again. With curl a colon follows it: --user 'KEY:'. It may also have been removed, or its source deleted.",
  },
  oauth_required: {
    says: 'This source requires an OAuth 2.0 access token. Get one from POST /oauth2/token and send it as Authorization: Bearer <token>.',
    advice: 'Send with an access token of an OAuth application that the source is attached to, or let the source take its write key alone.',
  },
  invalid_access_token: {
    says: 'The access token is invalid, has expired or was revoked. Get a new one from POST /oauth2/token.',
    advice: 'The clients get a new one by themselves. If it goes on, compare the client id and the key with the OAuth application.',
  },
  source_not_allowed: {
    says: 'The OAuth application of this access token is not allowed to send to this source. Add the source to the sourceIds of the application.',
    advice: 'Attach the source to the OAuth application, in the settings.',
  },
  source_disabled: {
    says: 'The source of this write key is disabled. Enable the source to send messages to it.',
    advice: 'Enable the source. What was refused until then is not here: the sender has to send it again.',
  },
  request_timeout: {
    says: 'The request did not arrive in time. Send it again.',
    advice: 'If it happens often, the connection is too slow for what is sent: send smaller batches.',
  },
  unsupported_encoding: {
    says: 'The Content-Encoding of the request is not supported. Send the body with gzip or uncompressed.',
    advice: 'Send the body with Content-Encoding: gzip, or with none.',
  },
  rate_limited: {
    says: 'The source exceeded its rate limit. Wait for the number of seconds in the Retry-After header, then try again.',
    advice: 'The clients wait and send the same again. The limit is SWITCHYARD_RATE_LIMIT.',
  },
  store_unavailable: {
    says: 'The store is unavailable, so no message was accepted. Wait for the number of seconds in the Retry-After header, then try again.',
    advice: 'The clients send it again. The log of the service says why: often a full disk.',
  },
  internal_error: {
    says: 'The service failed unexpectedly. Its log has the details.',
    advice: 'This is a bug. The log of the service has the details: please report them.',
  },
  unknown_type: {
    says: 'type must be one of identify, track, page, screen, group or alias.',
    advice: 'Give each message of a batch one of these types.',
  },
  message_id_invalid: {
    says: 'messageId must be a string of 1 to 100 characters.',
    advice: 'Send an id of the right length, or none: then the service makes one up.',
  },
  id_not_string: {
    says: 'userId, anonymousId, groupId and previousId must be strings.',
    advice: 'Send numbers as strings: "42" instead of 42.',
  },
  no_user_anon_id: {
    says: 'Either userId or anonymousId is required.',
    advice: 'Send userId for a user that you know, anonymousId for one that you do not.',
  },
  event_required: {
    says: 'A track call requires event, a non-empty string.',
    advice: 'Name what happened, for example "Order Completed".',
  },
  group_id_required: { says: 'A group call requires groupId.', advice: 'Send the id of the group in your database.' },
  user_id_required: { says: 'An alias call requires userId, the new ID.', advice: 'Send both ids: userId is the one from now on.' },
  previous_id_required: {
    says: 'An alias call requires previousId, the ID to alias from.',
    advice: 'Send both ids: previousId is the one until now.',
  },
  properties_not_object: { says: 'properties must be an object.', advice: SENDS_OBJECT },
  traits_not_object: { says: 'traits must be an object.', advice: SENDS_OBJECT },
  context_not_object: { says: 'context must be an object.', advice: SENDS_OBJECT },
  integrations_not_object: { says: 'integrations must be an object.', advice: 'Send an object such as { "All": true }, or leave it out.' },
  name_not_string: { says: 'name must be a string.', advice: SENDS_STRING },
  category_not_string: { says: 'category must be a string.', advice: SENDS_STRING },
}

export const REJECTION_CODES: readonly string[] = Object.keys(REFUSALS)

export function rejectionSentence(code: string): string {
  return own(code)?.says ?? `It was refused as ${code}.`
}

/** Empty where none is known. */
export function rejectionAdvice(code: string): string {
  return own(code)?.advice ?? ''
}

function own(code: string): Refusal | undefined {
  return Object.hasOwn(REFUSALS, code) ? REFUSALS[code] : undefined
}
