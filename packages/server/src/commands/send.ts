// `switchyard send`: one message to the tracking API, and what the service said to it.

import { randomUUID } from 'node:crypto'
import type { JsonObject } from '@switchyard/protocol'
import { showTimeline } from './history/message-timeline.ts'
import { type Call, type Command, CommandProblem, EXIT, type ExitCode, type Flag } from './line/command.ts'
import { readJsonObject } from './line/input.ts'
import { cell } from './line/listing.ts'
import { at, idOf } from './line/references.ts'
import { parseDuration, parseTimeFlag } from './line/times.ts'
import { pause } from './service/api.ts'

const TYPES = ['track', 'identify', 'page', 'screen', 'group', 'alias'] as const
/** What holds the message's own fields, by its type. */
const BAG: Record<(typeof TYPES)[number], 'properties' | 'traits' | null> = {
  track: 'properties',
  page: 'properties',
  screen: 'properties',
  identify: 'traits',
  group: 'traits',
  alias: null,
}
const DEADLINE_MS = 30_000
const POLL_MS = 200
const USUAL_WAIT = '60s'
const JSON_FORMS = 'as JSON, @FILE, or - for stdin'

const FIELDS: Readonly<Record<string, Flag>> = {
  'user-id': { placeholder: 'USER_ID', sentence: 'Who did it.', usual: 'user-1, where no other id is given' },
  'anonymous-id': { placeholder: 'ID', sentence: 'Who did it, while not known.' },
  event: { placeholder: 'EVENT', sentence: 'Of track: what was done.', usual: 'Test Event' },
  name: { placeholder: 'NAME', sentence: 'Of page and screen.' },
  'group-id': { placeholder: 'GROUP_ID', sentence: 'Of group.' },
  'previous-id': { placeholder: 'ID', sentence: 'Of alias.' },
  'message-id': { placeholder: 'ID', sentence: 'By which duplicates are known.', usual: 'a new one' },
  timestamp: { placeholder: 'TIME', sentence: 'When it was done: 2h (ago) or 2026-11-14T09:00:00Z.', usual: 'now' },
}

export const send: Command = {
  name: 'send',
  summary: 'Sends one message, and tells what the service answered',
  details:
    'Without --write-key, a key of the source is asked of the control API: of the one that --source names, else of the one named default, else of the only one.\n\n' +
    '--wait follows the message to its webhooks: exit code 1 when it was not delivered to each of them, or went to none.',
  arguments: [{ name: 'TYPE', sentence: `One of ${TYPES.join(', ')}.`, optional: true, values: TYPES }],
  flags: {
    ...FIELDS,
    properties: { placeholder: 'JSON', sentence: `Of track, page and screen, ${JSON_FORMS}.` },
    traits: { placeholder: 'JSON', sentence: `Of identify and group, ${JSON_FORMS}.` },
    context: { placeholder: 'JSON', sentence: `About the circumstances, ${JSON_FORMS}.` },
    message: { placeholder: 'JSON', sentence: `The whole message, ${JSON_FORMS}; other flags add to it.` },
    'write-key': { placeholder: 'KEY', sentence: 'Of the source.', variable: 'SWITCHYARD_WRITE_KEY', usual: 'asked of the control API' },
    source: { placeholder: 'SOURCE', sentence: 'Whose key is asked for, by id or name.' },
    wait: { placeholder: null, sentence: 'Follows it until every webhook has it, or one has failed.' },
    timeout: { placeholder: 'DURATION', sentence: 'How long --wait waits.', usual: USUAL_WAIT },
  },
  examples: [
    'switchyard send',
    `switchyard send track --event 'Order Completed' --properties '{"total":42}' --wait`,
    'switchyard send identify --user-id user-1 --traits @traits.json',
  ],
  async run(call) {
    const waitMs = parseDuration('timeout', call.flag('timeout') ?? USUAL_WAIT)
    const message = await messageOf(call)
    const writeKey = await writeKeyOf(call)
    const answer = await post(call, writeKey, message)
    const { messageId, type } = message
    if (answer.status !== 200 || answer.body['success'] !== true) {
      if (call.json) call.out.json({ messageId, ...answer })
      const { code, message: sentence } = answer.body
      throw new CommandProblem(`The service answered ${answer.status}: ${cell(sentence)} (${cell(code)})`, exitOf(answer.status))
    }
    if (!call.has('wait')) {
      if (call.json) call.out.json({ messageId, ...answer })
      else {
        call.out.line(`Accepted: ${cell(type)} ${cell(messageId)}`)
        call.out.remark(`\`switchyard trace ${cell(messageId)}\` tells what becomes of it.`)
      }
      return EXIT.ok
    }
    return await follow(call, String(messageId), waitMs)
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
    if (name !== 'context' && BAG[type] !== name)
      throw new CommandProblem(`--${name} does not go with ${type}${BAG[type] == null ? '' : `, which has --${BAG[type]}`}.`, EXIT.usage)
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
    for await (const source of api.all('/api/sources')) sources.push(source)
  } catch (error) {
    if (!(error instanceof CommandProblem) || call.env['SWITCHYARD_TOKEN'] || call.env['SWITCHYARD_ADMIN_TOKEN'] || call.has('token'))
      throw error
    if (!/control token/.test(error.message)) throw error
    throw new CommandProblem(
      'send needs a write key: --write-key or SWITCHYARD_WRITE_KEY; or a control token (SWITCHYARD_TOKEN), to ask the service for one.',
      EXIT.usage,
      { cause: error },
    )
  }
  const chosen = sources.find(({ name }) => name === 'default') ?? (sources.length === 1 ? sources[0] : undefined)
  if (chosen === undefined) throw new CommandProblem('Which source? Name it with --source, or give --write-key.', EXIT.usage)
  return firstKey(chosen)
}

function firstKey({ writeKeys }: JsonObject): string {
  return String((writeKeys as string[])[0])
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
    const body = JSON.parse(await response.body.text()) as JsonObject
    // One message that is refused is told as itself, not as a batch of which none was good.
    const [rejected] = (body['rejected'] ?? []) as JsonObject[]
    if (rejected !== undefined && response.statusCode === 400) return { status: 400, body: { success: false, ...rejected } }
    return { status: response.statusCode, body }
  } catch (error) {
    if (call.signal.aborted) throw error
    throw new CommandProblem(
      `No service answers at ${url}. Is it running? Start it with \`switchyard serve\`, or name another with --url.`,
      EXIT.unreachable,
      { cause: error },
    )
  }
}

function exitOf(status: number): ExitCode {
  return status === 401 || status === 403 ? EXIT.unreachable : status === 400 ? EXIT.usage : EXIT.failed
}

async function follow(call: Call, messageId: string, waitMs: number): Promise<ExitCode> {
  const { api, out, json, signal } = call
  const deadline = performance.now() + waitMs
  for (;;) {
    const message = await api.get(at`/api/messages/${messageId}`)
    const deliveries = message['deliveries'] as JsonObject[]
    const pending = deliveries.filter(({ state }) => state === 'pending')
    const isLate = performance.now() > deadline
    if (pending.length > 0 && !isLate && !signal.aborted) {
      await pause(POLL_MS, signal)
      continue
    }
    if (json) out.json(message)
    else showTimeline(out, message)
    if (signal.aborted) return EXIT.interrupted
    if (pending.length > 0) out.remark(`Not delivered within ${waitMs / 1_000} s. It is tried on.`)
    else if (deliveries.length === 0) out.remark('It goes to no webhook.')
    return deliveries.length > 0 && deliveries.every(({ state }) => state === 'delivered') ? EXIT.ok : EXIT.failed
  }
}
