// Validates a message, in the client at the call and in the service when it arrives: both are hot paths. It returns the
// given object itself, typed, instead of a copy, because both callers choose the fields that they write and would copy
// again. It checks neither sizes, because only the caller knows the bytes as sent, nor times, because it has no clock.

import { MAX_MESSAGE_ID_LENGTH } from './limits.ts'
import { isMessageType, isObject, type Message } from './messages.ts'
import { type Refusal, refusal } from './refusals.ts'

export type ParseResult = { ok: true; message: Message } | Refusal

type Fields = { [field: string]: unknown }

export function parseMessage(input: unknown): ParseResult {
  if (!isObject(input)) return refusal('invalid_request')
  const type = input['type']
  if (!isMessageType(type)) return misspelt(refusal('unknown_type', 'type'), input, TYPE)
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
    if (!userId) return misspelt(refusal('user_id_required', 'userId'), input, USER_ID)
    return previousId ? undefined : misspelt(refusal('previous_id_required', 'previousId'), input, PREVIOUS_ID)
  }
  return userId || anonymousId ? undefined : misspelt(refusal('no_user_anon_id', 'userId'), input, USER_OR_ANONYMOUS_ID)
}

function bodyProblem(input: Fields, type: Message['type']): Refusal | undefined {
  switch (type) {
    case 'track': {
      const { event } = input
      if (typeof event !== 'string' || event.length === 0) return misspelt(refusal('event_required', 'event'), input, EVENT)
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
      if (!groupId) return misspelt(refusal('group_id_required', 'groupId'), input, GROUP_ID)
      return objectProblem(input, 'traits')
    }
    case 'alias':
      return undefined
  }
}

const TYPE = { type: 'type', messagetype: 'type' }
const EVENT = { event: 'event', eventname: 'event' }
const USER_ID = { userid: 'userId' }
const PREVIOUS_ID = { previousid: 'previousId' }
const GROUP_ID = { groupid: 'groupId' }
const USER_OR_ANONYMOUS_ID = { userid: 'userId', anonymousid: 'anonymousId' }
const MAX_NAME_LENGTH = 40

/** Adds a hint to a refusal if the missing field is there under another spelling, such as `user_id`. Not called for a valid message. */
function misspelt(problem: Refusal, input: Fields, spellings: Readonly<Record<string, string>>): Refusal {
  for (const name of Object.keys(input)) {
    if (name.length > MAX_NAME_LENGTH) continue
    const plain = name.toLowerCase().replace(/[-_ ]/g, '')
    const field = Object.hasOwn(spellings, plain) ? spellings[plain] : undefined
    if (field !== undefined && field !== name)
      return { ...problem, message: `${problem.message} The message has ${name}: did you mean ${field}?` }
  }
  return problem
}

function objectProblem(input: Fields, field: 'properties' | 'traits' | 'context' | 'integrations'): Refusal | undefined {
  const value = input[field]
  return value == null || isObject(value) ? undefined : refusal(`${field}_not_object`, field)
}

function notString(value: unknown): boolean {
  return value != null && typeof value !== 'string'
}
