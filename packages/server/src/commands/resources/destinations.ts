// `switchyard destinations`: webhooks, their test and their health.

import type { JsonObject } from '@switchyard/protocol'
import { showAttempt } from '../history/message-timeline.ts'
import { type Argument, type Call, type Command, CommandProblem, EXIT } from '../line/command.ts'
import { type Column, cell, showAll, showFacts, state, time } from '../line/listing.ts'
import { at, idOf } from '../line/references.ts'
import { formatDuration } from '../line/times.ts'
import { DESTINATION_FLAGS, destinationBody } from './destination-flags.ts'

const DESTINATION: Argument = { name: 'DESTINATION', sentence: "The destination's id or name." }
const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['name', ({ name }) => name],
  ['enabled', ({ enabled }) => enabled],
  ['paused', ({ paused }) => paused],
  ['sources', ({ sourceIds }) => sourceIds],
  ['urls', ({ urls }) => urls],
]
const SAMPLE_TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete']

export const DESTINATION_COMMANDS: readonly Command[] = [
  {
    name: 'destinations list',
    summary: 'The destinations',
    examples: ['switchyard destinations'],
    async run(call) {
      await showAll(call, '/api/destinations', {}, COLUMNS, 'There is no destination. `switchyard destinations create NAME URL` makes one.')
      return EXIT.ok
    },
  },
  {
    name: 'destinations show',
    summary: 'One destination with all its settings; of secrets, whether there are any',
    arguments: [DESTINATION],
    async run(call) {
      show(call, await call.api.get(await pathOf(call)))
      return EXIT.ok
    },
  },
  {
    name: 'destinations create',
    summary: 'Creates a webhook destination',
    details:
      'It gets the messages of the sources that are named; where there is only one source, of that one. Secrets are read from stdin, a file or a variable, never from the command line.',
    arguments: [
      { name: 'NAME', sentence: "For people, and the key that a message's integrations object may name it by." },
      { name: 'URL', sentence: 'Where messages are posted, up to five; one success is enough.', many: true },
    ],
    flags: {
      ...DESTINATION_FLAGS,
      source: {
        placeholder: 'SOURCE',
        sentence: 'Whose messages it gets, by id or name.',
        many: true,
        usual: 'the source, where there is only one',
      },
      disabled: { placeholder: null, sentence: 'Creates it disabled: messages skip it.' },
      paused: { placeholder: null, sentence: 'Creates it paused: messages are kept for it and sent when it is resumed.' },
    },
    examples: [
      "switchyard destinations create 'my webhook' http://127.0.0.1:9000/",
      "switchyard destinations create orders https://example.com/hook --allow-event 'Order Completed' --shared-secret env:HOOK_SECRET",
    ],
    async run(call) {
      const [name, ...urls] = call.arguments
      const body = await destinationBody(call)
      body['sourceIds'] ??= [await onlySource(call)]
      if (call.has('paused')) body['paused'] = true
      show(call, await call.api.post('/api/destinations', { name, urls, enabled: !call.has('disabled'), ...body }))
      return EXIT.ok
    },
  },
  {
    name: 'destinations update',
    summary: 'Changes what is given',
    details: 'Headers and the lists of the filter that are not named stay as they are.',
    arguments: [DESTINATION],
    flags: {
      name: { placeholder: 'NAME', sentence: 'Another name.' },
      webhook: { placeholder: 'URL', sentence: 'Where messages are posted, instead of where they are now.', many: true },
      ...DESTINATION_FLAGS,
      'remove-header': { placeholder: 'NAME', sentence: 'A header that is no longer added.', many: true },
      'no-filter': { placeholder: null, sentence: 'Sends every message again, but for what other filter flags say.' },
    },
    examples: [
      "switchyard destinations update orders --deny-event 'Cart Viewed' --retry-window 1h",
      'pass show hook | switchyard destinations update orders --shared-secret -',
    ],
    async run(call) {
      const path = await pathOf(call)
      const read = await call.api.get(path)
      const body = await destinationBody(call, read)
      const [name, urls] = [call.flag('name'), call.flags('webhook')]
      if (name !== undefined) body['name'] = name
      if (urls.length > 0) body['urls'] = urls
      if (Object.keys(body).length === 0) throw new CommandProblem('Nothing to change was given.', EXIT.usage)
      // Headers and the filter are sent as a whole, merged with what was read. That must not undo what somebody else has changed since.
      const isMerged = body['headers'] !== undefined || body['filter'] !== undefined
      show(call, await call.api.patch(path, body, isMerged ? read : undefined))
      return EXIT.ok
    },
  },
  {
    name: 'destinations pause',
    summary: 'Sends nothing to it, and keeps for it what comes; nothing is lost',
    arguments: [DESTINATION],
    run: (call) => change(call, { paused: true }, 'paused'),
  },
  {
    name: 'destinations resume',
    summary: 'Sends to it again, first what was kept',
    arguments: [DESTINATION],
    run: (call) => change(call, { paused: false }, 'resumed'),
  },
  {
    name: 'destinations enable',
    summary: 'Sends to it again, first what is still owed',
    arguments: [DESTINATION],
    run: (call) => change(call, { enabled: true }, 'enabled'),
  },
  {
    name: 'destinations disable',
    summary: 'Has new messages skip it, and holds what is owed',
    details: 'What comes while it is disabled is not sent to it later; `switchyard destinations pause` keeps that, too.',
    arguments: [DESTINATION],
    run: (call) => change(call, { enabled: false }, 'disabled'),
  },
  {
    name: 'destinations delete',
    summary: 'Deletes a destination; what it is still owed is cancelled',
    arguments: [DESTINATION],
    async run(call) {
      const id = await idOf(call.api, 'destination', call.arguments[0] as string)
      await call.api.delete(at`/api/destinations/${id}`)
      if (call.json) call.out.json({ id, deleted: true })
      else call.out.line(`Destination ${id} is deleted.`)
      return EXIT.ok
    },
  },
  {
    name: 'destinations test',
    summary: 'Sends one sample message now, and tells what came of it; exit code 1 when it failed',
    arguments: [DESTINATION],
    flags: { type: { placeholder: 'TYPE', sentence: 'Of the sample message.', usual: 'track', values: SAMPLE_TYPES } },
    examples: ["switchyard destinations test 'my webhook'"],
    async run(call) {
      const type = call.flag('type')
      const answer = await call.api.post(`${await pathOf(call)}/test`, type === undefined ? {} : { type })
      const isTaken = answer['success'] === true
      if (call.json) call.out.json(answer)
      else {
        for (const attempt of answer['attempts'] as JsonObject[]) showAttempt(call.out, attempt)
        call.out.line(isTaken ? call.out.paint('green', 'It was taken.') : call.out.paint('red', 'It was not taken.'))
      }
      return isTaken ? EXIT.ok : EXIT.failed
    },
  },
  {
    name: 'destinations health',
    summary: 'How a destination does now: breaker, what is owed, success and latency',
    arguments: [DESTINATION],
    async run(call) {
      const health = await call.api.get(`${await pathOf(call)}/health`)
      if (call.json) call.out.json(health)
      else showHealth(call, health)
      return EXIT.ok
    },
  },
]

async function pathOf({ api, arguments: [reference = ''] }: Call): Promise<string> {
  return at`/api/destinations/${await idOf(api, 'destination', reference)}`
}

async function onlySource({ api }: Call): Promise<string> {
  const ids: string[] = []
  for await (const { id } of api.all('/api/sources')) ids.push(String(id))
  if (ids.length === 1) return ids[0] as string
  throw new CommandProblem(
    ids.length === 0
      ? 'There is no source that it could get messages of. `switchyard sources create NAME` makes one.'
      : 'There are several sources: name those whose messages it gets with --source.',
    EXIT.usage,
  )
}

async function change(call: Call, to: { enabled: boolean } | { paused: boolean }, done: string): Promise<typeof EXIT.ok> {
  const destination = await call.api.patch(await pathOf(call), to)
  if (call.json) call.out.json(destination)
  else
    call.out.line(
      `Destination ${cell(destination['name'])} is ${done}.${done === 'enabled' || done === 'resumed' ? stillHeld(destination) : ''}`,
    )
  return EXIT.ok
}

/** That it is sent nothing for the other reason, too. */
function stillHeld({ id, enabled, paused }: JsonObject): string {
  if (enabled === false && paused === false) return ` It is disabled: \`switchyard destinations enable ${cell(id)}\` has messages go to it.`
  if (enabled === true && paused === true) return ` It is paused: \`switchyard destinations resume ${cell(id)}\` sends what is kept for it.`
  return ''
}

function show({ json, out }: Call, destination: JsonObject): void {
  if (json) return out.json(destination)
  const { id, name, enabled, paused, sourceIds, urls, headers, hasSharedSecret, signingSecretCount, batch, filter, createdAt } = destination
  const { timeoutMs, retryWindowMs, maxInFlight, historical } = destination
  const { size, bytes, lingerMs } = batch as { size: number; bytes: number; lingerMs: number }
  showFacts(out, [
    ['id', id],
    ['name', name],
    ['enabled', enabled],
    ['paused', paused],
    ['sources', sourceIds],
    ['urls', urls],
    ['headers', Object.keys(headers as object)],
    ['shared secret', hasSharedSecret],
    ['signing secrets', signingSecretCount],
    ['batch', size === 1 ? 'off' : `${size} messages, ${bytes} bytes, waits ${formatDuration(lingerMs)}`],
    ['timeout', formatDuration(Number(timeoutMs))],
    ['retry window', formatDuration(Number(retryWindowMs))],
    ['max in flight', maxInFlight],
    ['historical', historical],
    ...filterFacts(filter as JsonObject | undefined),
    ['created', time(createdAt)],
  ])
}

function filterFacts(filter: JsonObject | undefined): [string, unknown][] {
  const rows = (['types', 'events'] as const).flatMap((kind) => {
    const { allow = [], deny = [] } = (filter?.[kind] ?? {}) as { allow?: string[]; deny?: string[] }
    return [
      [`only ${kind}`, allow],
      [`not ${kind}`, deny],
    ] as [string, string[]][]
  })
  const set = rows.filter(([, names]) => names.length > 0)
  return set.length === 0 ? [['filter', 'every message']] : set
}

function showHealth(call: Call, health: JsonObject): void {
  const { out } = call
  const { breaker, openSince, inFlight, pending, oldestPendingAt, nextAttemptAt, ledger, success, latencyMs, urls } = health
  showFacts(out, [
    ['breaker', state(call, breaker)],
    ['open since', openSince == null ? undefined : time(openSince)],
    ['in flight', inFlight],
    ['pending', pending],
    ['oldest pending', oldestPendingAt === null ? undefined : time(oldestPendingAt)],
    ['next attempt', nextAttemptAt === null ? undefined : time(nextAttemptAt)],
    ['recent success', percent(success)],
    ['recent latency', latencyText(latencyMs)],
    ...Object.entries(ledger as JsonObject).filter(([name]) => name !== 'pending'),
  ])
  for (const url of urls as JsonObject[])
    out.line(`${cell(url['url'])}: ${percent(url['success'])} taken, ${latencyText(url['latencyMs'])}, ${cell(url['inFlight'])} in flight`)
}

function percent(share: unknown): string {
  return typeof share === 'number' ? `${Math.round(share * 1_000) / 10}%` : 'no attempt yet'
}

function latencyText(latency: unknown): string {
  if (typeof latency !== 'object' || latency === null) return '–'
  return Object.entries(latency as Record<string, number>)
    .map(([name, ms]) => `${name} ${formatDuration(ms)}`)
    .join(', ')
}
