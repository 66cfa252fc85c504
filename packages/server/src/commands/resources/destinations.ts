// `switchyard destinations`: manages webhooks, tests them, and shows their health.

import type { JsonObject } from '@switchyard/protocol'
import { counted } from '../../api/counted.ts'
import type { DestinationKind } from '../../destinations/port/kind.ts'
import { showAttempt } from '../history/message-timeline.ts'
import { type Call, type Command, CommandProblem, EXIT, UsageProblem } from '../line/command.ts'
import { type Column, cell, showFacts, showResult, state, time } from '../line/listing.ts'
import { at } from '../line/references.ts'
import { deleteCommand, listCommand, showCommand } from '../line/resource-commands.ts'
import { formatDuration } from '../line/times.ts'
import { ApiProblem } from '../service/api.ts'
import { CHOICES_COMMANDS } from './destination-choices.ts'
import { DESTINATION_ARGUMENT, DESTINATION_FLAGS, destinationBody, destinationPath, NEW_DESTINATION_FLAGS } from './destination-flags.ts'
import { ORDER_COMMANDS } from './destination-order.ts'
import { VERSION_COMMANDS } from './destination-versions.ts'
import { WAREHOUSE_FLAGS, warehouseOf } from './warehouse-flags.ts'

const SAMPLE_TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete']

export const DESTINATION_COMMANDS: readonly Command[] = [
  listCommand({
    name: 'destinations list',
    summary: 'List destinations',
    examples: ['switchyard destinations'],
    path: '/api/destinations',
    columns,
    none: 'There are no destinations. Create one with `switchyard destinations create NAME URL`.',
  }),
  showCommand({
    name: 'destinations show',
    summary: 'Show a destination with all its settings (but not its secrets)',
    arguments: [DESTINATION_ARGUMENT],
    kind: 'destination',
    show,
  }),
  {
    name: 'destinations create',
    summary: 'Create a destination: a webhook, an integration from the catalogue, or a warehouse',
    details:
      'A webhook needs a URL; an integration needs --integration, and --set for each of its settings; a lake in a folder needs --lake, and any other warehouse --warehouse-file. The destination receives the messages of the sources given with --source; if there is only one source, --source can be left out. Secrets are read from stdin, a file or an environment variable, never from the command line.',
    arguments: [
      { name: 'NAME', description: "The display name, which also selects the destination in a message's integrations object." },
      {
        name: 'URL',
        description:
          'The URL of a webhook to send messages to. With several (up to five), a message counts as delivered when one of them accepts it.',
        many: true,
        optional: true,
      },
    ],
    flags: {
      integration: {
        placeholder: 'SLUG',
        description: 'Create an integration instead of a webhook. `switchyard catalog` lists the slugs.',
      },
      ...WAREHOUSE_FLAGS,
      ...NEW_DESTINATION_FLAGS,
      source: {
        placeholder: 'SOURCE',
        description: 'A source whose messages the destination receives, by id or name.',
        many: true,
        defaultText: 'the only source',
      },
      disabled: { placeholder: null, description: 'Create it disabled: messages are neither sent to it nor kept for it.' },
      paused: { placeholder: null, description: 'Create it paused: messages are kept for it and sent when it is resumed.' },
      'allow-duplicate': {
        placeholder: null,
        description:
          'Create it even if a destination with this name and URL, or this name and integration, gets messages of the same source. Every message is then sent twice.',
      },
    },
    examples: [
      "switchyard destinations create 'my webhook' http://127.0.0.1:9000/",
      'switchyard destinations create amplitude --integration actions-amplitude --set apiKey=env:API_KEY --set secretKey=env:SECRET_KEY',
      "switchyard destinations create orders https://example.com/hook --allow-event 'Order Completed' --shared-secret env:HOOK_SECRET",
      'switchyard destinations create Lake --lake main',
      'switchyard destinations create Analytics --warehouse-file analytics.yaml',
    ],
    async run(call) {
      const [name, ...urls] = call.arguments
      const integration = call.flag('integration')
      const kinds = [urls.length > 0, integration !== undefined, call.flag('lake') !== undefined, call.flag('warehouse-file') !== undefined]
      if (kinds.filter((isGiven) => isGiven).length !== 1)
        throw new UsageProblem(
          'Give one of these: a URL, for a webhook; --integration SLUG; --lake FOLDER; or --warehouse-file FILE, for any other warehouse.',
        )
      const body = await destinationBody(call)
      body['sourceIds'] ??= [await onlySource(call)]
      if (call.has('paused')) body['paused'] = true
      const warehouse = await warehouseOf(call)
      const kind = warehouse ?? (integration === undefined ? { urls } : { type: 'integration', integration })
      await show(call, await create(call, { name, ...kind, enabled: !call.has('disabled'), ...body }))
    },
  },
  {
    name: 'destinations update',
    summary: 'Change the given settings of a destination',
    details:
      'Settings that are not given stay unchanged. --header adds or replaces one header and keeps the others, and --set does the same for the settings of an integration. Each filter flag replaces its own list and keeps the other lists. If --webhook points to another server, give the stored secrets again in the same command.',
    arguments: [DESTINATION_ARGUMENT],
    flags: {
      name: { placeholder: 'NAME', description: 'The new name.' },
      webhook: { placeholder: 'URL', description: 'A URL to send messages to. Replaces all current URLs.', many: true },
      ...DESTINATION_FLAGS,
      'remove-header': { placeholder: 'NAME', description: 'A header to remove.', many: true },
      'no-filter': { placeholder: null, description: 'Remove the current filter before applying the other filter flags.' },
    },
    examples: [
      "switchyard destinations update orders --deny-event 'Cart Viewed' --retry-window 1h",
      `switchyard destinations update orders --subscribe 'type = "track" and properties.total > 100'`,
      'pass show hook | switchyard destinations update orders --shared-secret -',
    ],
    async run(call) {
      const path = await destinationPath(call)
      const read = await call.api.get(path)
      const body = await destinationBody(call, read)
      const [name, urls] = [call.flag('name'), call.flags('webhook')]
      if (name !== undefined) body['name'] = name
      if (urls.length > 0) body['urls'] = urls
      if (Object.keys(body).length === 0)
        throw new UsageProblem('Nothing to change: give at least one setting. Run `switchyard destinations update --help` for a list.')
      // These are replaced as a whole, merged with what was read, so the request must fail if they have changed since.
      const isMerged = ['headers', 'filter', 'transformation', 'auth', 'tls'].some((field) => body[field] != null)
      await show(call, await call.api.patch(path, body, isMerged ? read : undefined))
    },
  },
  {
    name: 'destinations pause',
    summary: 'Stop sending to a destination, and keep new messages for it',
    arguments: [DESTINATION_ARGUMENT],
    run: (call) => change(call, { paused: true }, 'paused'),
  },
  {
    name: 'destinations resume',
    summary: 'Resume sending to a paused destination, beginning with the messages kept for it',
    arguments: [DESTINATION_ARGUMENT],
    run: (call) => change(call, { paused: false }, 'resumed'),
  },
  {
    name: 'destinations retry',
    summary: 'Attempt the pending deliveries of a destination now, for example because its receiver works again',
    details: 'It ends with the first attempt that fails. After that, deliveries are retried as before.',
    arguments: [DESTINATION_ARGUMENT],
    async run(call) {
      const path = await destinationPath(call)
      const answer = await call.api.post(at`${path}/retry`, {})
      const pending = Number(answer['pending'])
      showResult(
        call,
        answer,
        pending === 0 ? 'No deliveries are pending.' : `Attempting ${counted(pending, 'pending delivery', 'pending deliveries')} now.`,
      )
    },
  },
  {
    name: 'destinations enable',
    summary: 'Enable a disabled destination, and send its pending deliveries',
    arguments: [DESTINATION_ARGUMENT],
    run: (call) => change(call, { enabled: true }, 'enabled'),
  },
  {
    name: 'destinations disable',
    summary: 'Disable a destination: it gets no new messages, and its pending deliveries are held',
    details: 'Messages that arrive while it is disabled are never sent to it. To keep them, use `switchyard destinations pause` instead.',
    arguments: [DESTINATION_ARGUMENT],
    run: (call) => change(call, { enabled: false }, 'disabled'),
  },
  deleteCommand({
    name: 'destinations delete',
    summary: 'Delete a destination and cancel its pending deliveries',
    details: 'Its settings and secrets cannot be restored. To stop sending for a while, use `switchyard destinations pause` instead.',
    arguments: [DESTINATION_ARGUMENT],
    kind: 'destination',
    async question(_reference, id, { api }) {
      const { name } = await api.get(at`/api/destinations/${id}`)
      const pending = Number((await api.get(at`/api/destinations/${id}/health`))['pending'])
      const owed = pending === 0 ? '' : ` ${counted(pending, 'pending delivery', 'pending deliveries')} will be cancelled.`
      return `Delete the destination ${cell(name)} (${id})?${owed}`
    },
  }),
  {
    name: 'destinations test',
    summary: 'Send a sample message now and show the result (exit code 1 if it failed)',
    arguments: [DESTINATION_ARGUMENT],
    flags: { type: { placeholder: 'TYPE', description: 'The type of the sample message.', defaultText: 'track', values: SAMPLE_TYPES } },
    examples: ["switchyard destinations test 'my webhook'"],
    async run(call) {
      const type = call.flag('type')
      const answer = await call.api.post(`${await destinationPath(call)}/test`, type === undefined ? {} : { type })
      const isSuccess = answer['success'] === true
      showResult(call, answer, () => {
        for (const attempt of answer['attempts'] as JsonObject[]) showAttempt(call.out, attempt)
        call.out.line(isSuccess ? call.out.paint('green', 'Test passed.') : call.out.paint('red', failed(answer)))
      })
      return isSuccess ? EXIT.ok : EXIT.failed
    },
  },
  ...CHOICES_COMMANDS,
  ...ORDER_COMMANDS,
  ...VERSION_COMMANDS,
  {
    name: 'destinations health',
    summary: 'Show the circuit breaker, backlog, success rate and latency of a destination',
    arguments: [DESTINATION_ARGUMENT],
    async run(call) {
      const health = await call.api.get(`${await destinationPath(call)}/health`)
      showResult(call, health, () => showHealth(call, health))
    },
  },
]

function failed({ request, attempts }: JsonObject): string {
  if (request !== null) return 'Test failed: no URL answered 2xx.'
  return (attempts as JsonObject[]).length === 0 ? 'Test failed: nothing was sent.' : 'Test failed: not every subscription succeeded.'
}

async function create({ api, has, out }: Call, body: JsonObject): Promise<JsonObject> {
  const destination = await api
    .post('/api/destinations', body, has('allow-duplicate') ? { allowDuplicate: true } : {})
    .catch((error: unknown) => {
      if (!(error instanceof ApiProblem) || error.code !== 'destination_exists' || error.destinationId === undefined) throw error
      const what = body['type'] === 'warehouse' ? 'place' : body['integration'] === undefined ? 'URL' : 'integration'
      throw new CommandProblem(
        `The destination ${error.destinationId} already has the name ${JSON.stringify(body['name'])} and the same ${what}, and gets messages of the same source, so every message would be sent twice. Nothing was changed. Change it with \`switchyard destinations update\`, choose another name, or add --allow-duplicate.`,
        EXIT.failed,
        { cause: error },
      )
    })
  const others: string[] = []
  for await (const { id, name } of api.all('/api/destinations'))
    if (name === destination['name'] && id !== destination['id']) others.push(String(id))
  if (others.length > 0)
    out.remark(
      `Another destination has the same name (${others.join(', ')}). Use the id in commands to tell them apart, or rename one of them.`,
    )
  return destination
}

async function onlySource({ api }: Call): Promise<string> {
  const ids: string[] = []
  for await (const { id, builtIn } of api.all('/api/sources')) if (builtIn !== true) ids.push(String(id))
  if (ids.length === 1) return ids[0] as string
  throw new UsageProblem(
    ids.length === 0
      ? 'There are no sources. Create one first with `switchyard sources create NAME`.'
      : 'There are several sources. Choose one or more with --source.',
  )
}

async function change(call: Call, to: { enabled: boolean } | { paused: boolean }, done: string): Promise<void> {
  const destination = await call.api.patch(await destinationPath(call), to)
  const hint = done === 'enabled' || done === 'resumed' ? call.out.inForm(stillInactive(destination)) : ''
  showResult(call, destination, `Destination ${cell(destination['name'])} is ${done}.${hint}`)
}

/** A hint if nothing is sent because the destination is also disabled or paused. */
function stillInactive({ id, enabled, paused }: JsonObject): string {
  if (enabled === false && paused === false)
    return ` It is still disabled: run \`switchyard destinations enable ${cell(id)}\` to send messages to it.`
  if (enabled === true && paused === true)
    return ` It is still paused: run \`switchyard destinations resume ${cell(id)}\` to send the messages kept for it.`
  return ''
}

/** What only destinations of its kind have. A service of another version may have kinds that are not known here. */
async function factsOf(): Promise<(destination: JsonObject) => DestinationKind['facts'] | undefined> {
  const { KINDS } = await import('../../destinations/kinds.ts')
  return ({ type }) => Object.values(KINDS).find((kind) => kind.type === type)?.facts
}

async function columns(): Promise<readonly Column[]> {
  const facts = await factsOf()
  return [
    ['id', ({ id }) => id],
    ['name', ({ name }) => name],
    ['enabled', ({ enabled }) => enabled],
    ['paused', ({ paused }) => paused],
    ['sources', ({ sourceIds }) => sourceIds],
    ['to', (destination) => facts(destination)?.receiver(destination)],
  ]
}

async function show({ json, out }: Call, destination: JsonObject): Promise<void> {
  for (const { message } of (destination['warnings'] ?? []) as JsonObject[]) out.remark(`Warning: ${cell(message)}`)
  if (json) return out.json(destination)
  const facts = (await factsOf())(destination)
  const { id, name, enabled, paused, sourceIds, batch, filter, createdAt } = destination
  const { timeoutMs, maxInFlight, historical, subscribe } = destination
  const { size, bytes, lingerMs } = batch as { size: number; bytes: number; lingerMs: number }
  showFacts(out, [
    ['id', id],
    ['name', name],
    ['imported from', destination['origin'] ?? undefined],
    ['aliases', listed(destination['aliases'])],
    ['enabled', enabled],
    ['paused', paused],
    ['sources', sourceIds],
    ...(facts?.settings(destination) ?? []),
    ['batch', size === 1 ? 'off' : `up to ${size} messages or ${bytes} bytes, waits up to ${formatDuration(lingerMs)}`],
    ['timeout', formatDuration(Number(timeoutMs))],
    ...retryFacts(destination),
    ['max in flight', maxInFlight],
    ['historical', historical],
    ['include violations', destination['includeViolations']],
    ...filterFacts(filter as JsonObject | undefined),
    ...conditionalFacts(destination['conditionalFilters']),
    ['subscribe', subscribe ?? undefined],
    ...(facts?.content(destination) ?? []),
    ['created', time(createdAt)],
  ])
}

/** A line with an empty list is left out. */
function listed(names: unknown): unknown {
  return Array.isArray(names) && names.length > 0 ? names : undefined
}

function retryFacts({ retry, deadLetter }: JsonObject): [string, unknown][] {
  const { windowMs, initialMs, maxMs, factor, retryStatuses, failStatuses } = retry as Record<string, number> & Record<string, number[]>
  return [
    ['retry window', formatDuration(windowMs as number)],
    [
      'retry waits',
      `${formatDuration(initialMs as number)}, then each ${cell(factor)} times as long as the one before, up to ${formatDuration(maxMs as number)}`,
    ],
    ['also retried', listed(retryStatuses)],
    ['not retried', listed(failStatuses)],
    ['dead letters to', deadLetter ?? undefined],
  ]
}

function filterFacts(filter: JsonObject | undefined): [string, unknown][] {
  const rows = (['types', 'events'] as const).flatMap((kind) => {
    const { allow = [], deny = [] } = (filter?.[kind] ?? {}) as { allow?: string[]; deny?: string[] }
    return [
      [`allowed ${kind}`, allow],
      [`denied ${kind}`, deny],
    ] as [string, string[]][]
  })
  const set = rows.filter(([, names]) => names.length > 0)
  return set.length === 0 ? [['filter', 'none (all messages)']] : set
}

function conditionalFacts(filters: unknown): [string, unknown][] {
  return ((filters ?? []) as Record<string, unknown>[]).map(({ name, when, action, share, fields, enabled }) => {
    const what = typeof share === 'number' ? `${cell(action)} ${Math.round(share * 10_000) / 100}%` : cell(action)
    const of = fields == null ? '' : ` ${JSON.stringify(fields)}`
    return [
      `conditional filter${name == null ? '' : ` ${cell(name)}`}`,
      `${what}${of}${when == null ? '' : ` if ${cell(when)}`}${enabled === true ? '' : ' (disabled)'}`,
    ]
  })
}

function showHealth(call: Call, health: JsonObject): void {
  const { out } = call
  const {
    failure,
    mostFrequentFailure,
    breaker,
    openSince,
    inFlight,
    pending,
    oldestPendingAt,
    nextAttemptAt,
    nextExpiryAt,
    failingTables,
    ledger,
    success,
    latencyMs,
    urls,
  } = health
  showFacts(out, [
    ['failing because', (failure as JsonObject | null)?.['error']],
    ['most frequent failure', frequentText(mostFrequentFailure)],
    ...((failingTables as JsonObject[] | undefined) ?? []).map(({ table, error, since }): [string, string] => [
      'failing table',
      `${cell(table)} since ${time(since)}: ${cell(error)}`,
    ]),
    ['circuit breaker', state(call, breaker)],
    ['open since', openSince == null ? undefined : time(openSince)],
    ['in flight', inFlight],
    ['pending', pending],
    ['oldest pending', oldestPendingAt === null ? undefined : time(oldestPendingAt)],
    ['next attempt', nextAttemptAt === null ? undefined : time(nextAttemptAt)],
    ['next expiry', nextExpiryAt == null ? undefined : time(nextExpiryAt)],
    ['recent success rate', percent(success)],
    ['recent latency', latencyText(latencyMs)],
    ...Object.entries(ledger as JsonObject).filter(([name]) => name !== 'pending'),
  ])
  for (const url of urls as JsonObject[])
    out.line(
      url['success'] === null
        ? `${cell(url['url'])}: no attempts since the service started`
        : `${cell(url['url'])}: ${percent(url['success'])} of recent attempts succeeded, ${latencyText(url['latencyMs'])}, ${cell(url['inFlight'])} in flight`,
    )
}

function frequentText(failure: unknown): string | undefined {
  if (typeof failure !== 'object' || failure === null) return undefined
  const { error, attempts, responseStart } = failure as { error: string; attempts: number; responseStart: string | null }
  const response = responseStart === null || responseStart === '' ? '' : ` The response began with ${JSON.stringify(responseStart)}.`
  return `${error}${response} (${counted(attempts, 'recent attempt')})`
}

function percent(share: unknown): string {
  return typeof share === 'number' ? `${Math.round(share * 1_000) / 10}%` : 'no attempts yet'
}

function latencyText(latency: unknown): string {
  if (typeof latency !== 'object' || latency === null) return '–'
  return Object.entries(latency as Record<string, number>)
    .map(([name, ms]) => `${name} ${formatDuration(ms)}`)
    .join(', ')
}
