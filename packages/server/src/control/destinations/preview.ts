// Shows what a destination would send, with its saved settings or with changes that are not saved. Nothing is sent and nothing is stored.
// Viewers can preview the saved settings. Changes are for those who may save them, because they may contain code, which then runs here.

import { isoTime, type JsonObject, MAX_MESSAGE_BYTES, parseMessage } from '@switchyard/protocol'
import {
  anyObject,
  array,
  boolean,
  integer,
  invalidField,
  nullable,
  object,
  optional,
  record,
  type Schema,
  string,
  withDefault,
} from '../../api/schema.ts'
import type { Previewed } from '../../delivery/delivery.ts'
import { ApiError } from '../../errors.ts'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import { isTooDeep } from '../../store/port/scan-json.ts'
import type { Configuration, Destination, Role, SegmentContent, Skip, Store, StoredMessage } from '../../store/store.ts'
import { builtFor, hideConfiguredHeaders, hideOwnHeaders, replaceSignatures, textFor, urlFor } from '../history/redaction.ts'
import { skipSentence } from '../history/timeline.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { assertLoadable } from './code-check.ts'
import { DESTINATION_PATCH, type DestinationPatch } from './destination-settings.ts'
import { installedDefinition } from './integration-definition.ts'
import { patchedSettings } from './patched-settings.ts'
import { contentToRestore } from './versions.ts'

const MAX_MESSAGES = 50
/** If a destination has more sources than this, its messages are searched among the newest messages of all sources. */
const MAX_LISTED_SOURCES = 20
const SEARCHED_MESSAGES = 1_000

/** The errors of a change name its fields as in an update, without a prefix. */
const CHANGES: Schema<DestinationPatch> = {
  parse(value, path) {
    anyObject().parse(value, path)
    return DESTINATION_PATCH.parse(value, '')
  },
  toJsonSchema: () => ({
    ...DESTINATION_PATCH.toJsonSchema(),
    description: 'Changes as in an update of the destination. They are applied to the preview, and not saved. Not for viewers.',
  }),
}
const PREVIEW = object({
  messageId: optional(string({ min: 1, max: 1_000, description: 'The messageId or the id of a stored message.' })),
  message: optional(anyObject({ description: 'A message as an application would send it, with its `type`.' })),
  limit: withDefault(
    integer({
      min: 1,
      max: MAX_MESSAGES,
      description: "The maximum number of messages if neither `messageId` nor `message` is given: the newest of the destination's sources.",
    }),
    10,
  ),
  changes: optional(CHANGES),
})

const COUNTS = object(
  {
    messages: integer(),
    sent: integer({ description: 'Messages for which a request would be sent.' }),
    skipped: integer({ description: 'Messages that would not be routed to the destination.' }),
    dropped: integer({ description: 'Messages that the transformation would drop.' }),
    failed: integer({ description: 'Messages for which the transformation or the mapping would fail.' }),
    notRun: integer({ description: 'Messages that the preview did not reach: it ends after 10 seconds.' }),
  },
  { title: 'PreviewCounts' },
)
const ANSWER = object({
  data: array(
    object({
      messageId: nullable(string()),
      type: nullable(string()),
      event: nullable(string()),
      receivedAt: string(),
      message: anyObject({ description: 'The message before the transformation.' }),
      requests: optional(
        array(
          object({
            subscription: string({ description: 'The name of the subscription that would send it.' }),
            method: string(),
            url: string(),
            headers: record(string()),
            body: string(),
          }),
          {
            description: 'Only for an integration: the requests that it would send if each were answered with an empty object.',
          },
        ),
      ),
      request: nullable(
        object(
          {
            method: string(),
            url: string({
              description: 'The first URL, with its path. The same request goes to all URLs. For viewers, query values are hidden.',
            }),
            headers: record(
              string({
                description:
                  'Signatures, credentials and the values of `headers` are replaced by `(hidden)`. For viewers, so are the values of `request.headers`.',
              }),
            ),
            body: string({
              description:
                'The text as it would be sent, with `(hidden)` instead of secrets. For viewers, constants that may be credentials are hidden, too.',
            }),
          },
          { description: 'The request that would be sent for this message alone; null if none would be sent.' },
        ),
      ),
      skipped: optional(
        object(
          { reason: string(), rule: nullable(string()), sentence: string() },
          { description: 'Why the message would not be routed to the destination.' },
        ),
      ),
      dropped: optional(boolean({ description: 'Whether the transformation would drop the message.' })),
      error: optional(
        object(
          { reason: string(), sentence: string(), line: nullable(integer({ description: 'The line of the code, if it is known.' })) },
          {
            description:
              'Why no request could be built. The reason is `not_run` if the preview did not reach the message within 10 seconds, or if the transformation could not be run.',
          },
        ),
      ),
      logs: optional(string({ description: 'What the transformation printed.' })),
    }),
  ),
  summary: COUNTS,
  before: nullable(COUNTS),
})

interface Entry {
  content: SegmentContent
  item: JsonObject
}
type Result = { skip: Skip } | Previewed

export function previewRoutes({
  store,
  clock,
  delivery,
  route: routeMessages,
  checkUrl = () => null,
  checkCode,
  catalog,
}: ControlParts): Route[] {
  /** The destination with the changes applied. Throws as an update would. */
  async function changed(before: Destination, changes: DestinationPatch): Promise<Destination> {
    await assertLoadable(checkCode, before.type, changes, before)
    const restored = await contentToRestore(store.resources, before.id, changes)
    const definition = await installedDefinition(catalog, before)
    const fields = patchedSettings(changes, before, { configuration: store.configuration(), restored, checkUrl, definition })
    return { ...before, ...fields, version: before.version } as Destination
  }

  async function resultsOf(destination: Destination, entries: readonly Entry[]): Promise<Result[]> {
    const skips = entries.map(({ content }) => skipOf(destination, content))
    const routed = entries.filter((_, at) => skips[at] === undefined)
    const previewed = await delivery.preview(
      destination,
      routed.map(({ content }) => content),
    )
    return skips.map((skip) => (skip === undefined ? (previewed.shift() as Previewed) : { skip }))
  }

  /** As routing decides, but for this destination alone, as if it were enabled and attached to the source of the message. */
  function skipOf(destination: Destination, content: SegmentContent): Skip | undefined {
    const alone = { ...destination, enabled: true, sourceIds: [content.sourceId] }
    const configuration: Configuration = { ...store.configuration(), destinations: new Map([[alone.id, alone]]) }
    return routeMessages?.(configuration, content.sourceId, content).skips[0]
  }

  return [
    route('POST', '/destinations/:id/preview', {
      summary: 'Preview what a destination would send',
      access: { role: 'viewer', sources: 'limited', subject: 'destination', fieldRoles: { changes: 'editor' } },
      description:
        'Returns what the destination would send for a stored message (`messageId`), for a given `message`, or for the newest messages of its sources, even if it is disabled or paused. Nothing is sent, stored or saved. With `changes`, the changes are applied first. `summary` counts the messages by result; `before` does the same for the saved settings, and is null without `changes`. Each message is shown in a request of its own, even if the destination sends batches.',
      body: PREVIEW,
      answer: ANSWER,
      errors: ['destination_not_found', 'message_not_found', 'forbidden', 'shared_destination', 'too_many_previews', 'secrets_needed'],
      async handle({ params, body, roleOn, isWhole }) {
        const { messageId, message, limit, changes } = body
        const saved = store.configuration().destinations.get(params['id'] ?? '')
        if (saved === undefined) throw new ApiError('destination_not_found')
        if (changes !== undefined && !isWhole(saved.id)) throw new ApiError('shared_destination')
        const role = roleOn(saved.id)
        if (messageId !== undefined && message !== undefined)
          throw invalidField('message', 'cannot be combined with messageId; send one of both')
        const destination = changes === undefined ? saved : await changed(saved, changes)
        const entries =
          message === undefined
            ? storedEntries(messageId === undefined ? await newest(store, destination, limit) : await found(store, messageId))
            : [givenEntry(message as JsonObject, destination, clock.wallMs())]
        const results = await resultsOf(builtFor(role, destination), entries)
        return {
          data: entries.map((entry, at) => entryView(entry, results[at] as Result, destination, role)),
          summary: countsOf(results),
          before: changes === undefined ? null : countsOf(await resultsOf(saved, entries)),
        }
      },
    }),
  ]
}

async function found({ history }: Store, messageId: string): Promise<StoredMessage[]> {
  const stored = await history.message(messageId)
  if (stored?.content.items[stored.index] == null) throw new ApiError('message_not_found', { field: 'messageId' })
  return [stored]
}

/** The newest messages of the sources of a destination. */
async function newest({ history }: Store, { sourceIds }: Destination, limit: number): Promise<StoredMessage[]> {
  if (sourceIds.length > MAX_LISTED_SOURCES) {
    const { data } = await history.messages({}, { limit: SEARCHED_MESSAGES, cursor: null })
    return data.filter(({ content }) => sourceIds.includes(content.sourceId)).slice(0, limit)
  }
  const pages = await Promise.all(sourceIds.map((sourceId) => history.messages({ sourceId }, { limit, cursor: null })))
  const all = pages.flatMap(({ data }) => data)
  return all.sort((left, right) => right.content.receivedAtMs - left.content.receivedAtMs).slice(0, limit)
}

/** Each message alone in its segment. Purged messages are left out. */
function storedEntries(messages: readonly StoredMessage[]): Entry[] {
  return messages.flatMap(({ content, index }) => {
    const item = content.items[index]
    return item == null ? [] : [{ content: { ...content, items: [item] }, item }]
  })
}

/** Throws if an application could not send the message. */
function givenEntry(message: JsonObject, { sourceIds }: Destination, nowMs: number): Entry {
  const bytes = Buffer.from(JSON.stringify(message))
  if (bytes.length > MAX_MESSAGE_BYTES) throw invalidField('message', `must have at most ${MAX_MESSAGE_BYTES} bytes as JSON`)
  if (isTooDeep(bytes)) throw invalidField('message', 'is nested too deeply')
  const parsed = parseMessage(message)
  if (!parsed.ok) throw new ApiError('invalid_field', { field: 'message', message: parsed.message })
  const item = { ...message, messageId: message['messageId'] ?? 'preview' }
  const about = { sourceId: sourceIds[0] ?? '', receivedAtMs: nowMs, ip: null, browser: false, trace: null }
  return { content: { ...about, sentAt: null, context: null, integrations: null, items: [item] }, item }
}

function entryView({ content, item }: Entry, result: Result, destination: Destination, role: Role) {
  const about = {
    messageId: text(item['messageId']),
    type: text(item['type']),
    event: text(item['event']),
    receivedAt: isoTime(content.receivedAtMs),
    message: outboundMessage(content, 0),
  }
  if ('skip' in result) {
    const { reason, rule } = result.skip
    const sentence = skipSentence({ reason, ...(rule && { rule }) }, item, destination.subscribe)
    return { ...about, request: null, skipped: { reason, rule: rule ?? null, sentence } }
  }
  const { logs } = result
  const shown = { ...about, request: null, ...(logs === null ? {} : { logs }) }
  if (result.kind === 'dropped') return { ...shown, dropped: true }
  if (result.kind === 'failed') {
    const [, line] = /\bline (\d+)/.exec(result.error) ?? []
    return { ...shown, error: { reason: result.reason, sentence: result.error, line: line === undefined ? null : Number(line) } }
  }
  if (result.kind === 'requests') {
    const text = textFor(role, destination)
    const requests = result.requests.map(({ subscription, method, url, headers, body }) => {
      const names = Object.entries(headers).map(([name, value]) => [name, text(value)])
      return { subscription, method, url: urlFor(role)(text(url)), headers: Object.fromEntries(names) as typeof headers, body: text(body) }
    })
    const error = result.error === null ? {} : { error: { reason: result.failure ?? 'not_run', sentence: result.error, line: null } }
    return { ...shown, requests, ...error }
  }
  const { method, url, headers, body } = result.request
  const textOf = textFor(role, destination)
  const unsigned = replaceSignatures(headers, HIDDEN)
  const hide = role !== 'viewer' ? hideConfiguredHeaders : hideOwnHeaders
  return { ...shown, request: { method, url: urlFor(role)(url), headers: hide(unsigned, destination), body: textOf(body) } }
}

function countsOf(results: readonly Result[]) {
  const count = (has: (result: Result) => boolean): number => results.filter(has).length
  const isFailed = (result: Result): boolean => !('skip' in result) && result.kind === 'requests' && result.failure != null
  const isNotRun = (result: Result): boolean => !('skip' in result) && result.kind === 'failed' && result.reason === 'not_run'
  return {
    messages: results.length,
    sent: count((result) => !('skip' in result) && (result.kind === 'request' || result.kind === 'requests') && !isFailed(result)),
    skipped: count((result) => 'skip' in result),
    dropped: count((result) => !('skip' in result) && result.kind === 'dropped'),
    failed: count((result) => isFailed(result) || (!('skip' in result) && result.kind === 'failed' && !isNotRun(result))),
    notRun: count(isNotRun),
  }
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
