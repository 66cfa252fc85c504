// Routes for the quarantine: list the messages that a tracking plan holds back, release them, delete them. A call ends the quarantine of many
// messages in steps, each of which is one transaction of the store.

import { VIOLATION_CODES } from '@switchyard/protocol'
import { array, boolean, type Infer, integer, invalidField, nullable, object, oneOf, optional, string, time } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { Actor, QuarantineChange, QuarantinedMessage, Store } from '../../store/store.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const MAX_IDS = 1_000
const MESSAGES_PER_STEP = 500
/** Each may be in a request of its own, and the requests are read as a whole: up to 50 MB. */
const IDS_PER_STEP = 100
/** The limits of one call. A client with more to do calls again. */
const MESSAGES_PER_CALL = 10_000
const MS_PER_CALL = 10_000

const RULE = { min: 1, description: 'Only messages that violate this rule: `track Order Completed`, or a type such as `identify`.' }

const OLDER_NAME = 'The older name of `sourceId`.'

const FILTERS = {
  sourceId: optional(string({ min: 1, description: 'Only messages from this source.' })),
  source: optional(string({ min: 1, description: OLDER_NAME })),
  plan: optional(string({ min: 1, description: 'Only messages that violate the plan with this id.' })),
  rule: optional(string(RULE)),
}

const SELECTION = object({
  ids: optional(
    array(string({ min: 1, max: 100 }), {
      min: 1,
      max: MAX_IDS,
      identity: (id) => id,
      description:
        'The ids of the messages, as GET /api/quarantine lists them, or their messageIds, which select every message in quarantine with that messageId. Cannot be combined with the filters below.',
    }),
  ),
  sourceId: optional(string({ min: 1, max: 100, description: 'All messages from this source.' })),
  source: optional(string({ min: 1, max: 100, description: OLDER_NAME })),
  rule: optional(string({ ...RULE, max: 40_000 })),
})

export const VIOLATION = object({
  rule: string({ description: 'The rule: `track` and the name of the event, or the type of the message.' }),
  code: oneOf(VIOLATION_CODES),
  path: string({ description: 'Where in the message, such as `properties.price`.' }),
  expected: string({ description: 'What the rule expects, in words.' }),
  found: string({ description: 'What the message has there, in words. Never a value of the message.' }),
})

const MESSAGE = object({
  id: string({ description: 'The id of the message in the store. GET /api/messages/{id} shows the message.' }),
  messageId: nullable(string({ description: 'The id that the sender chose.' })),
  sourceId: string(),
  type: nullable(string()),
  event: nullable(string()),
  userId: nullable(string()),
  anonymousId: nullable(string()),
  receivedAt: time({ description: 'When the service received the message.' }),
  planId: string({ description: 'The plan that the message violates.' }),
  rule: string({ description: 'The rule that the message violates.' }),
  violations: array(VIOLATION),
})

const MORE = boolean({ description: 'Whether more messages match than one call handles. Send the same request again to continue.' })

type Selection = Infer<typeof SELECTION>
type Step = (messages: readonly QuarantinedMessage[]) => Promise<readonly string[]>

export function quarantineRoutes({ store, route: routeMessages, clock }: ControlParts): Route[] {
  return [
    route('GET', '/quarantine', {
      summary: 'List messages in quarantine, newest first',
      access: { role: 'viewer', sources: 'limited' },
      description: 'These messages violate a tracking plan. They are not sent to any destination until they are released.',
      query: listQuery(FILTERS),
      answer: listAnswer(MESSAGE),
      async handle({ query }) {
        const { source, sourceId = source, plan: planId, rule } = query
        return pageAnswer('quarantine', await store.quarantine.list({ sourceId, planId, rule }, pageRequest('quarantine', query)), view)
      },
    }),
    route('POST', '/quarantine/release', {
      summary: 'Release messages from quarantine',
      access: { role: 'editor', sources: 'limited' },
      description:
        'Sends the messages to the destinations that would get them if they were received now. Each message is released once, even if several requests name it. Messages of a deleted source stay in quarantine, because no destination would get them.',
      body: SELECTION,
      answer: object({
        released: integer({ description: 'The number of messages that were released.' }),
        kept: integer({ description: 'The number of messages that stay in quarantine because their source was deleted.' }),
        more: MORE,
      }),
      errors: ['source_deleted'],
      async handle({ body, actor }) {
        if (routeMessages === undefined) throw new Error('this service cannot route messages')
        let kept = 0
        const { count, more } = await inSteps({ store, clock }, body, async (messages) => {
          const configuration = store.configuration()
          const routable = messages.filter(({ content }) => configuration.sources.has(content.sourceId))
          kept += messages.length - routable.length
          if (routable.length === 0) return []
          const released = routable.map(({ id, content }) => ({ id, routing: routeMessages(configuration, content.sourceId, content) }))
          return store.quarantine.release(released, audit(actor, 'quarantine.release', body, routable))
        })
        if (count === 0 && kept > 0) throw new ApiError('source_deleted')
        return { released: count, kept, more }
      },
    }),
    route('POST', '/quarantine/delete', {
      summary: 'Delete messages from quarantine',
      access: { role: 'editor', sources: 'limited' },
      description: 'The messages are never sent. They stay in the history until the end of the retention period.',
      body: SELECTION,
      answer: object({ deleted: integer({ description: 'The number of messages that were deleted from quarantine.' }), more: MORE }),
      async handle({ body, actor }) {
        const { count, more } = await inSteps({ store, clock }, body, (messages) =>
          store.quarantine.delete(
            messages.map(({ id }) => id),
            audit(actor, 'quarantine.delete', body, messages),
          ),
        )
        return { deleted: count, more }
      },
    }),
  ]
}

function audit(actor: Actor, action: string, { source, sourceId = source, rule }: Selection, messages: readonly QuarantinedMessage[]) {
  const sources = [...new Set(messages.map(({ content }) => content.sourceId))]
  const entry = (change: QuarantineChange | null) => {
    if (change === null) return null
    return { messages: change.ids.length, ...(sourceId === undefined ? { ids: [...change.ids] } : { sourceId, rule: rule ?? null }) }
  }
  return (after: QuarantineChange | null, before: QuarantineChange | null) => {
    return { actor, action, subject: sourceId ?? null, before: entry(before), after: entry(after), sources }
  }
}

/** By id, or by messageId for those that are not ids of messages in quarantine. */
async function found(store: Store, ids: readonly string[]): Promise<readonly QuarantinedMessage[]> {
  const byId = await store.quarantine.find(ids)
  const known = new Set(byId.map(({ id }) => id))
  const held: string[] = []
  for (const id of ids) {
    if (known.has(id)) continue
    for (const trail of await store.history.trails(id)) if (trail.quarantine?.state === 'held') held.push(trail.id)
  }
  const others = held.filter((id) => !known.has(id))
  return others.length === 0 ? byId : [...byId, ...(await store.quarantine.find(others))]
}

/** Returns the number of messages for which `step` ended the quarantine, and whether there are more. */
async function inSteps(
  { store, clock }: Pick<ControlParts, 'store' | 'clock'>,
  selection: Selection,
  step: Step,
): Promise<{ count: number; more: boolean }> {
  const { ids, source, sourceId = source, rule } = selection
  if (ids !== undefined) {
    const other = (['sourceId', 'source', 'rule'] as const).find((name) => selection[name] !== undefined)
    if (other !== undefined) throw invalidField(other, 'cannot be combined with ids. Select messages either by ids or by sourceId')
    let ended = 0
    for (let at = 0; at < ids.length; at += IDS_PER_STEP) ended += (await step(await found(store, ids.slice(at, at + IDS_PER_STEP)))).length
    return { count: ended, more: false }
  }
  if (source !== undefined && source !== sourceId)
    throw invalidField('source', 'is another name of sourceId and must have the same value; send only one of them')
  if (sourceId === undefined) throw invalidField('sourceId', 'is missing. Select messages either by ids or by sourceId')
  const endMs = clock.scheduleMs() + MS_PER_CALL
  let count = 0
  let seen = 0
  let cursor: string | null = null
  do {
    // The oldest first, so that receivers get them in the order in which they were received.
    const page = await store.quarantine.list({ sourceId, rule }, { limit: MESSAGES_PER_STEP, cursor, oldestFirst: true })
    if (page.data.length === 0 && !store.configuration().sources.has(sourceId))
      throw invalidField('sourceId', 'is not the id of a source with messages in quarantine. GET /api/sources lists all sources')
    count += page.data.length === 0 ? 0 : (await step(page.data)).length
    seen += page.data.length
    cursor = page.next
  } while (cursor !== null && seen < MESSAGES_PER_CALL && clock.scheduleMs() < endMs)
  return { count, more: cursor !== null }
}

function view({ id, index, planId, rule, content }: QuarantinedMessage) {
  const item = content.items[index] ?? {}
  const text = (name: string): string | null => (typeof item[name] === 'string' ? item[name] : null)
  return {
    id,
    messageId: text('messageId'),
    sourceId: content.sourceId,
    type: text('type'),
    event: text('event'),
    userId: text('userId'),
    anonymousId: text('anonymousId'),
    receivedAtMs: content.receivedAtMs,
    planId,
    rule,
    violations: content.violations?.[index] ?? [],
  }
}
