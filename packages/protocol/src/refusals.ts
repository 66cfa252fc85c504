// The stable codes with which a message is rejected, shared by client and service so that both report the same error for
// the same message. Codes that concern a whole request are defined by the service.

export const REFUSALS = {
  invalid_request: 'A message must be a JSON object.',
  unknown_type: 'type must be one of identify, track, page, screen, group or alias.',
  message_id_invalid: 'messageId must be a string of 1 to 100 characters.',
  id_not_string: 'userId, anonymousId, groupId and previousId must be strings.',
  no_user_anon_id: 'Either userId or anonymousId is required.',
  event_required: 'A track call requires event, a non-empty string.',
  group_id_required: 'A group call requires groupId.',
  user_id_required: 'An alias call requires userId, the new ID.',
  previous_id_required: 'An alias call requires previousId, the ID to alias from.',
  properties_not_object: 'properties must be an object.',
  traits_not_object: 'traits must be an object.',
  context_not_object: 'context must be an object.',
  integrations_not_object: 'integrations must be an object.',
  name_not_string: 'name must be a string.',
  category_not_string: 'category must be a string.',
  message_too_large: 'A message may be at most 32 KB (32,768 bytes) of JSON.',
} as const

export type RefusalCode = keyof typeof REFUSALS

export interface Refusal {
  ok: false
  code: RefusalCode
  /** An explanation for people. Programs should use `code`. */
  message: string
  /** The invalid field, if the problem is in one field. */
  field?: string
}

export function refusal(code: RefusalCode, field?: string): Refusal {
  return field === undefined ? { ok: false, code, message: REFUSALS[code] } : { ok: false, code, message: REFUSALS[code], field }
}
