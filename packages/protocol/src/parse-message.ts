// The one judge of a message, on both hot paths: the client's call and the service's door. It copies nothing — the
// message returned is the object given, now typed — because both callers pick the fields they write themselves, and a
// copy here would be paid for twice. It must not look at sizes (bytes are the caller's knowledge) or at the clock.

import { MAX_MESSAGE_ID_LENGTH } from './limits.ts'
import { isMessageType, type Message } from './messages.ts'
import { type Refusal, refusal } from './refusals.ts'

export type ParseResult = { ok: true; message: Message } | Refusal

type Fields = { [field: string]: unknown }

export function parseMessage(input: unknown): ParseResult {
  if (!isObject(input)) return refusal('invalid_request')
  const type = input['type']
  if (!isMessageType(type)) return refusal('unknown_type', 'type')
  const messageId = input['messageId']
  if (messageId != null && (typeof messageId !== 'string' || messageId.length === 0 || messageId.length > MAX_MESSAGE_ID_LENGTH)) {
    return refusal('message_id_invalid', 'messageId')
  }
  const problem =
    identityProblem(input, type) ?? objectProblem(input, 'context') ?? objectProblem(input, 'integrations') ?? bodyProblem(input, type)
  return problem ?? { ok: true, message: input as unknown as Message }
}

function identityProblem(input: Fields, type: Message['type']): Refusal | undefined {
  const { userId, anonymousId } = input
  if (notString(userId)) return refusal('id_not_string', 'userId')
  if (notString(anonymousId)) return refusal('id_not_string', 'anonymousId')
  if (type === 'alias') {
    const { previousId } = input
    if (notString(previousId)) return refusal('id_not_string', 'previousId')
    if (!userId) return refusal('user_id_required', 'userId')
    return previousId ? undefined : refusal('previous_id_required', 'previousId')
  }
  return userId || anonymousId ? undefined : refusal('no_user_anon_id', 'userId')
}

function bodyProblem(input: Fields, type: Message['type']): Refusal | undefined {
  switch (type) {
    case 'track': {
      const { event } = input
      if (typeof event !== 'string' || event.length === 0) return refusal('event_required', 'event')
      return objectProblem(input, 'properties')
    }
    case 'identify':
      return objectProblem(input, 'traits')
    case 'page':
    case 'screen':
      if (notString(input['name'])) return refusal('name_not_string', 'name')
      if (notString(input['category'])) return refusal('category_not_string', 'category')
      return objectProblem(input, 'properties')
    case 'group': {
      const { groupId } = input
      if (notString(groupId)) return refusal('id_not_string', 'groupId')
      if (!groupId) return refusal('group_id_required', 'groupId')
      return objectProblem(input, 'traits')
    }
    case 'alias':
      return undefined
  }
}

function objectProblem(input: Fields, field: 'properties' | 'traits' | 'context' | 'integrations'): Refusal | undefined {
  const value = input[field]
  return value == null || isObject(value) ? undefined : refusal(`${field}_not_object`, field)
}

function notString(value: unknown): boolean {
  return value != null && typeof value !== 'string'
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
