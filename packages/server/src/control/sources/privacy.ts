// The privacy rules of a source in the control API: a preview of what they do. A preview stores nothing. It is not
// for viewers: whoever can hash guessed values can find out whose hash is in a message.

import type { JsonObject } from '@switchyard/protocol'
import { PRIVACY_ACTIONS } from '../../api/resources/privacy-path.ts'
import { PRIVACY } from '../../api/resources/source.ts'
import { anyObject, array, integer, invalidField, nullable, object, oneOf, optional, string, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import { MAX_HASHED_VALUES, TooManyHashedValues } from '../../ingest/privacy/privacy.ts'
import type { StoredMessage } from '../../store/store.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const MAX_MESSAGES = 50

const PREVIEW = object({
  privacy: optional(PRIVACY),
  message: optional(anyObject({ description: 'A message. If left out, the newest stored messages of the source are used.' })),
  limit: withDefault(integer({ min: 1, max: MAX_MESSAGES, description: 'The maximum number of stored messages.' }), 10),
})
const PREVIEW_ANSWER = object({
  data: array(
    object({
      messageId: nullable(string()),
      before: anyObject({
        description:
          'The message without these rules. The rules that were saved when a stored message was received have already been applied to it.',
      }),
      after: anyObject({ description: 'The message as it would be stored.' }),
    }),
  ),
  rules: array(
    object({
      path: string(),
      action: oneOf(PRIVACY_ACTIONS),
      messages: integer({ description: 'The number of these messages that the rule changes.' }),
    }),
    { description: 'The rules, in their order.' },
  ),
})

export function privacyRoutes({ store, privacy }: ControlParts): Route[] {
  return [
    route('POST', '/sources/:id/privacy/preview', {
      summary: 'Preview privacy rules',
      access: { role: 'editor', sources: 'limited', subject: 'source' },
      description:
        'Applies rules to a given message or to the newest stored messages of the source, and returns each message before and after. If you leave out `privacy`, the saved rules are used. Nothing is stored or changed.',
      body: PREVIEW,
      answer: PREVIEW_ANSWER,
      errors: ['source_not_found'],
      async handle({ params, body }) {
        const source = store.configuration().sources.get(params['id'] ?? '')
        if (source === undefined) throw new ApiError('source_not_found')
        const rules = body.privacy ?? source.privacy ?? []
        const messages =
          body.message === undefined
            ? (await store.history.messages({ sourceId: source.id }, { limit: body.limit, cursor: null })).data.flatMap(receivedMessage)
            : [body.message as JsonObject]
        const applied = rules.map((rule) => ({ rule, messages: 0, protect: privacy.of({ id: source.id, privacy: [rule] })?.() }))
        const data = messages.map((before) => {
          const after = structuredClone(before)
          for (const each of applied) if (changed(() => each.protect?.(after))) each.messages++
          const messageId: unknown = before['messageId']
          return { messageId: typeof messageId === 'string' ? messageId : null, before, after }
        })
        return { data, rules: applied.map(({ rule: { path, action }, messages: count }) => ({ path, action, messages: count })) }
      },
    }),
  ]
}

function changed(protect: () => number | undefined): boolean {
  try {
    return (protect() ?? 0) > 0
  } catch (error) {
    if (!(error instanceof TooManyHashedValues)) throw error
    throw invalidField('privacy', `would hash more than ${MAX_HASHED_VALUES} values of these messages; preview fewer or smaller messages`)
  }
}

/** The message as the rules would see it, with the fields of its batch. Empty if it was purged. */
function receivedMessage({ content, index }: StoredMessage): JsonObject[] {
  const item = content.items[index]
  if (item == null) return []
  const context = content.context === null ? item['context'] : { ...content.context, ...(item['context'] as JsonObject | null | undefined) }
  return [context === undefined ? item : { ...item, context }]
}
