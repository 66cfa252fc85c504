// `switchyard send`: sends one message to the tracking API and prints the response.

import { randomUUID } from 'node:crypto'
import type { JsonObject } from '@switchyard/protocol'
import { counted } from '../../api/counted.ts'
import { isMaskedWriteKey } from '../../api/write-key-mask.ts'
import { createTimelineFeed, showMessageFacts, showOthers } from '../history/message-timeline.ts'
import { type Call, type Command, CommandProblem, EXIT, type ExitCode, type Flag, UsageProblem } from '../line/command.ts'
import { readJsonObject } from '../line/input.ts'
import { cell } from '../line/listing.ts'
import { at, idOf } from '../line/references.ts'
import { parseDuration, parseTimeFlag } from '../line/times.ts'
import { type Api, parseAnswer, pause } from '../service/api.ts'
import { connectionProblem, pathAdvice } from '../service/connection-problem.ts'

const TYPES = ['track', 'identify', 'page', 'screen', 'group', 'alias'] as const
/** The field that holds the custom data of a message, by type. */
const DATA_FIELD: Record<(typeof TYPES)[number], 'properties' | 'traits' | null> = {
  track: 'properties',
  page: 'properties',
  screen: 'properties',
  identify: 'traits',
  group: 'traits',
  alias: null,
}
const DEADLINE_MS = 30_000
const POLL_MS = 200
const DEFAULT_WAIT_MS = 60_000
/** For a warehouse that is loaded less often than this, the command does not wait longer. */
const LONGEST_INTERVAL_MS = 600_000
const JSON_FORMS = 'as JSON, @FILE, or - for stdin'

const FIELDS: Readonly<Record<string, Flag>> = {
  'user-id': { placeholder: 'USER_ID', description: 'The userId.', defaultText: 'user-1, if no other id is given' },
  'anonymous-id': { placeholder: 'ID', description: 'The anonymousId, for a user who is not identified yet.' },
  event: { placeholder: 'EVENT', description: 'The event name (track).', defaultText: 'Test Event' },
  name: { placeholder: 'NAME', description: 'The name (page, screen).' },
  'group-id': { placeholder: 'GROUP_ID', description: 'The groupId (group).' },
  'previous-id': { placeholder: 'ID', description: 'The previousId (alias).' },
  'message-id': { placeholder: 'ID', description: 'The messageId, which identifies duplicates.', defaultText: 'a new UUID' },
  timestamp: { placeholder: 'TIME', description: 'When it happened: 2h (two hours ago) or 2026-11-14T09:00:00Z.', defaultText: 'now' },
}

export const WRITE_KEY_FLAG: Flag = {
  placeholder: 'KEY',
  description: 'The write key of the source.',
  variable: 'SWITCHYARD_WRITE_KEY',
  defaultText: 'read from the control API',
}

export const send: Command = {
  name: 'send',
  summary: 'Send one message and print the response',
  details:
    'Without --write-key, the command gets the write key from the control API: that of the source given with --source, otherwise that of the source named default, otherwise that of the only source.\n\n' +
    'With --wait, the command waits for the deliveries and prints each attempt when it has ended; with --json, the attempts go to stderr. The command asks active warehouses that get the message to load it at once, if the control token allows that. Without --timeout, it waits for 60 s. If a delivery to a warehouse that is loaded at least every 10 minutes is pending, it waits 60 s longer than the time between two loads. The exit code is 1 if the message was not delivered to every destination, or if it has no destination.',
  arguments: [{ name: 'TYPE', description: `One of ${TYPES.join(', ')}.`, optional: true, values: TYPES }],
  flags: {
    ...FIELDS,
    properties: { placeholder: 'JSON', description: `The properties (track, page, screen), ${JSON_FORMS}.` },
    traits: { placeholder: 'JSON', description: `The traits (identify, group), ${JSON_FORMS}.` },
    context: { placeholder: 'JSON', description: `The context, ${JSON_FORMS}.` },
    message: { placeholder: 'JSON', description: `The whole message, ${JSON_FORMS}. Other flags override its fields.` },
    'write-key': WRITE_KEY_FLAG,
    source: { placeholder: 'SOURCE', description: 'The source whose write key to use, by id or name.' },
    wait: { placeholder: null, description: 'Wait until no delivery of the message is pending any more.' },
    timeout: { placeholder: 'DURATION', description: 'How long to wait with --wait.', defaultText: '60s, and longer for a warehouse' },
  },
  examples: [
    'switchyard send',
    `switchyard send track --event 'Order Completed' --properties '{"total":42}' --wait`,
    'switchyard send identify --user-id user-1 --traits @traits.json',
  ],
  async run(call) {
    const timeout = call.flag('timeout')
    const givenMs = timeout === undefined ? null : parseDuration('timeout', timeout)
    const message = await messageOf(call)
    const writeKey = await writeKeyOf(call)
    const answer = await post(call, writeKey, message)
    const { messageId, type } = message
    if (answer.status !== 200 || answer.body['success'] !== true) {
      if (call.json) call.out.json({ messageId, ...answer })
      const { code, message: sentence } = answer.body
      throw new CommandProblem(`The service answered ${answer.status}: ${cell(sentence)} (${cell(code)})`, exitOf(answer.status))
    }
    for (const { message: warning } of (answer.body['warnings'] ?? []) as JsonObject[]) call.out.remark(`Warning: ${cell(warning)}`)
    const accepted = `Accepted: ${cell(type)} ${cell(messageId)}`
    if (!call.has('wait')) {
      if (call.json) call.out.json({ messageId, ...answer })
      else {
        call.out.line(accepted)
        call.out.remark(`Run \`switchyard trace ${cell(messageId)}\` to see its deliveries.`)
      }
      return EXIT.ok
    }
    if (call.json) call.out.remark(accepted)
    else call.out.line(accepted)
    return await follow(call, String(messageId), givenMs)
  },
}

async function messageOf(call: Call): Promise<JsonObject> {
  const { flag } = call
  const whole = flag('message')
  const message: JsonObject = whole === undefined ? {} : await readJsonObject('--message', whole)
  const type = (call.arguments[0] ?? message['type'] ?? 'track') as (typeof TYPES)[number]
  message['type'] = type
  const texts = {
    'user-id': 'userId',
    'anonymous-id': 'anonymousId',
    event: 'event',
    name: 'name',
    'group-id': 'groupId',
    'previous-id': 'previousId',
  }
  for (const [name, field] of Object.entries(texts)) {
    const text = flag(name)
    if (text !== undefined) message[field] = text
  }
  for (const name of ['properties', 'traits', 'context'] as const) {
    const text = flag(name)
    if (text === undefined) continue
    if (name !== 'context' && DATA_FIELD[type] !== name)
      throw new UsageProblem(`--${name} cannot be used with ${type}${DATA_FIELD[type] == null ? '' : `; use --${DATA_FIELD[type]}`}.`)
    message[name] = await readJsonObject(`--${name}`, text)
  }
  const timestamp = flag('timestamp')
  if (timestamp !== undefined) message['timestamp'] = parseTimeFlag('timestamp', timestamp)
  if (whole === undefined) {
    if (message['userId'] === undefined && message['anonymousId'] === undefined) message['userId'] = 'user-1'
    if (type === 'track') message['event'] ??= 'Test Event'
  }
  message['messageId'] = flag('message-id') ?? message['messageId'] ?? randomUUID()
  return message
}

async function writeKeyOf(call: Call): Promise<string> {
  const given = call.flag('write-key') ?? (call.env['SWITCHYARD_WRITE_KEY'] || undefined)
  const reference = call.flag('source')
  if (given !== undefined && reference === undefined) return given
  const { api } = call
  if (reference !== undefined) return firstKey(await api.get(at`/api/sources/${await idOf(api, 'source', reference)}`))
  const sources: JsonObject[] = []
  try {
    for await (const source of api.all('/api/sources')) if (source['builtIn'] !== true) sources.push(source)
  } catch (error) {
    if (!(error instanceof CommandProblem) || call.env['SWITCHYARD_TOKEN'] || call.env['SWITCHYARD_ADMIN_TOKEN'] || call.has('token'))
      throw error
    if (!/control token/.test(error.message)) throw error
    throw new UsageProblem(
      'A write key is missing. Use --write-key or SWITCHYARD_WRITE_KEY, or set SWITCHYARD_TOKEN to a control token so that the command can read one from the service.',
      { cause: error },
    )
  }
  const chosen = sources.find(({ name }) => name === 'default') ?? (sources.length === 1 ? sources[0] : undefined)
  if (chosen === undefined)
    throw new UsageProblem(
      sources.length === 0
        ? 'There are no sources. Create one first with `switchyard sources create NAME`.'
        : 'There are several sources and none is named default. Choose one with --source, or use --write-key.',
    )
  return firstKey(chosen)
}

/** Throws if the control token is that of a viewer, who does not see write keys. */
export function firstKey({ writeKeys }: JsonObject): string {
  const key = String((writeKeys as string[])[0])
  if (!isMaskedWriteKey(key)) return key
  throw new UsageProblem(
    'The control token has the role viewer, which does not see write keys. Use --write-key or SWITCHYARD_WRITE_KEY, or the token of an admin.',
  )
}

async function post(call: Call, writeKey: string, message: JsonObject): Promise<{ status: number; body: JsonObject }> {
  const { request } = await import('undici')
  const { url } = call.api
  try {
    const response = await request(`${url}/v1/batch`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`, 'content-type': 'application/json' },
      body: JSON.stringify({ batch: [message], sentAt: new Date().toISOString() }),
      signal: AbortSignal.any([call.signal, AbortSignal.timeout(DEADLINE_MS)]),
    })
    const body = parseAnswer(await response.body.text())
    if (body === undefined || (response.statusCode !== 200 && body['code'] === undefined))
      throw new CommandProblem(
        `The server at ${url} answered ${response.statusCode}, but the response is not from a Switchyard service. ${pathAdvice(url) || 'Check --url or SWITCHYARD_URL.'}`,
        EXIT.unreachable,
      )
    // Below /api, the control API answers: it wants a control token, and knows no such path.
    if ((body['code'] === 'not_found' || body['code'] === 'unauthorized') && pathAdvice(url) !== '')
      throw new CommandProblem(`The service at ${url} has no endpoint /v1/batch. ${pathAdvice(url)}`, EXIT.unreachable)
    // Report the error of the message itself, not that of a batch without a valid message.
    const [rejected] = (body['rejected'] ?? []) as JsonObject[]
    if (rejected !== undefined && response.statusCode === 400) return { status: 400, body: { success: false, ...rejected } }
    return { status: response.statusCode, body }
  } catch (error) {
    if (call.signal.aborted) throw error
    if (error instanceof CommandProblem) throw error
    throw connectionProblem(url, error, DEADLINE_MS)
  }
}

function exitOf(status: number): ExitCode {
  return status === 401 || status === 403 ? EXIT.unreachable : status === 400 ? EXIT.usage : EXIT.failed
}

/** Shows each change of the deliveries when it happens. With --json, stdout gets only the final message, and the changes go to stderr. */
async function follow(call: Call, messageId: string, givenMs: number | null): Promise<ExitCode> {
  const { api, out, json, signal } = call
  const startMs = performance.now()
  const path = at`/api/messages/${messageId}`
  const feed = createTimelineFeed(out, (line) => (json ? out.remark(line) : out.line(line)))
  let message = await api.get(path)
  if (!json) showMessageFacts(out, message)
  const usualMs = await waitFor(api, pendingOf(message))
  const waitMs = givenMs ?? usualMs
  for (;;) {
    feed.show(message)
    const deliveries = message['deliveries'] as JsonObject[]
    const pending = pendingOf(message)
    const isLate = performance.now() > startMs + waitMs
    if (pending.length > 0 && !isLate && !signal.aborted) {
      await pause(POLL_MS, signal)
      message = await api.get(path)
      continue
    }
    if (json) out.json(message)
    else showOthers(out, message)
    if (signal.aborted) return EXIT.interrupted
    if (pending.length > 0)
      out.remark(
        `${counted(pending.length, 'delivery is', 'deliveries are')} still pending after ${waitMs / 1_000} s. The service keeps retrying; run \`switchyard trace ${messageId}\` to check again.`,
      )
    else if (deliveries.length === 0) out.remark('The message has no destination.')
    return deliveries.length > 0 && deliveries.every(({ state }) => state === 'delivered') ? EXIT.ok : EXIT.failed
  }
}

/** Asks the warehouses of the pending deliveries to load them now. Returns how long to wait for the deliveries if the caller does not say. */
export async function waitFor(api: Pick<Api, 'get' | 'post'>, pending: readonly JsonObject[]): Promise<number> {
  let longestMs = 0
  for (const id of new Set(pending.map(({ destinationId }) => String(destinationId)))) {
    try {
      const { enabled, paused, load } = await api.get(at`/api/destinations/${id}`)
      // While it is disabled or paused, nothing is loaded.
      if (load === undefined || enabled !== true || paused !== false) continue
      const everyMs = Number((load as JsonObject)['everyMs'])
      if (everyMs <= LONGEST_INTERVAL_MS) longestMs = Math.max(longestMs, everyMs)
      await api.post(at`/api/destinations/${id}/load`)
    } catch (error) {
      // The message was accepted, so the command does not fail. The destination may have been deleted, or the token may not allow loads.
      if (!(error instanceof CommandProblem)) throw error
    }
  }
  return DEFAULT_WAIT_MS + longestMs
}

function pendingOf(message: JsonObject): JsonObject[] {
  return (message['deliveries'] as JsonObject[]).filter(({ state }) => state === 'pending')
}
