// `switchyard events`: the event catalogue. Lists the events of all sources, or shows one with its properties and the destinations that receive it.

import { type JsonObject, MESSAGE_TYPES } from '@switchyard/protocol'
import { type Call, type Command, CommandProblem, EXIT, type ExitCode, UsageProblem } from '../line/command.ts'
import { type Column, cell, LIMIT_FLAG, showEntries, showFacts, showNewest, time } from '../line/listing.ts'
import { at, optionalId } from '../line/references.ts'

const BARS = '▁▂▃▄▅▆▇█'

const COLUMNS: readonly Column[] = [
  ['event', nameOf],
  ['type', ({ type }) => type ?? 'other'],
  ['source', ({ sourceName }) => sourceName],
  ['24 hours', ({ hours }) => sparkline(hours as number[])],
  ['last day', ({ lastDay }) => lastDay],
  ['last week', ({ lastWeek }) => lastWeek],
  ['total', ({ total }) => total],
  ['last seen', ({ lastSeen }) => time(lastSeen)],
]
const PROPERTY_COLUMNS: readonly Column[] = [
  ['property', ({ path }) => path],
  ['present', ({ presence }) => percent(presence)],
  ['types', ({ types }) => typesText(types as { type: string; share: number }[])],
  ['last seen', ({ lastSeen }) => time(lastSeen)],
  ['samples', ({ samples }) => (samples as string[]).join('  ')],
]

export const events: Command = {
  name: 'events',
  summary: 'Show the events that sources send, or one of them with its properties and receivers',
  details:
    'Without NAME, lists the event catalogue, the most frequent events of the last 7 days first. With NAME, shows one event: its counts, its properties with types and sample values, the destinations that receive it, and its rule in the tracking plan. ' +
    'The exit code is 4 if there is no such event.',
  arguments: [
    {
      name: 'NAME',
      description:
        'The exact name of a track event, a message type such as identify, or the id of an event from `switchyard events --json`.',
      optional: true,
    },
  ],
  flags: {
    source: { placeholder: 'SOURCE', description: 'Only events of this source, by id or name.' },
    type: { placeholder: 'TYPE', description: 'Only events of this type.', values: MESSAGE_TYPES },
    search: { placeholder: 'TEXT', description: 'Only events whose name contains this text.' },
    order: { placeholder: 'ORDER', description: 'The order of the list.', defaultText: 'count', values: ['count', 'lastSeen'] },
    ...LIMIT_FLAG,
  },
  examples: ['switchyard events --order lastSeen', "switchyard events 'Order Completed' --source website"],
  async run(call) {
    const { flag, api } = call
    const sourceId = await optionalId(api, 'source', flag('source'))
    const [name] = call.arguments
    if (name !== undefined) return showEvent(call, name, sourceId)
    const query = { sourceId, type: flag('type'), q: flag('search'), order: flag('order') }
    await showNewest(call, '/api/events', query, COLUMNS, 'No events match. Events appear here when messages are accepted.')
    return EXIT.ok
  },
}

async function showEvent(call: Call, name: string, sourceId: string | undefined): Promise<ExitCode> {
  const { out } = call
  const event = await call.api.get(at`/api/events/${await findId(call, name, sourceId)}`)
  if (call.json) {
    out.json(event)
    return EXIT.ok
  }
  const { plan } = event as { plan: { name: string; rule: { mode: string; owner: string | null } | null } | null }
  showFacts(out, [
    ['event', nameOf(event)],
    ['type', event['type'] ?? 'other'],
    ['source', event['sourceName']],
    ['first seen', time(event['firstSeen'])],
    ['last seen', time(event['lastSeen'])],
    [
      'messages',
      `${cell(event['total'])} in total, ${cell(event['lastWeek'])} in the last 7 days, ${cell(event['lastDay'])} in the last 24 hours`,
    ],
    ['24 hours', sparkline((event['hours'] as { count: number }[]).slice(-24).map(({ count }) => count))],
    ['90 days', sparkline((event['days'] as { count: number }[]).map(({ count }) => count))],
    ['tracking plan', plan === null ? 'none' : `${plan.name}: ${plan.rule === null ? 'no rule for this event' : ruleText(plan.rule)}`],
  ])
  out.line('')
  showEntries(call, event['properties'] as JsonObject[], PROPERTY_COLUMNS, 'No properties were seen.')
  if (event['otherProperties'] !== 0)
    out.remark('Some properties are not listed, because there are more than 200 or their names are too long.')
  out.line('')
  const columns: readonly Column[] = [
    ['destination', ({ destinationName }) => destinationName],
    ['receives', ({ sent }) => `${cell(sent)} of the last ${cell(event['recentMessages'])}`],
    [
      'skipped because',
      ({ skips }) => (skips as { message: string; count: number }[]).map(({ message, count }) => `${count}: ${message}`).join('  '),
    ],
  ]
  const none = event['recentMessages'] === 0 ? 'No message of this event is stored any more.' : 'No destination is attached to the source.'
  showEntries(call, event['destinations'] as JsonObject[], columns, none)
  return EXIT.ok
}

async function findId({ api, flag }: Call, name: string, sourceId: string | undefined): Promise<string> {
  const found: JsonObject[] = []
  for await (const event of api.all('/api/events', { sourceId, type: flag('type'), q: name, limit: 1_000 })) {
    if (event['event'] === name || (event['event'] === null && event['type'] === name)) found.push(event)
  }
  // An id: a source id, a dot and a hash.
  if (found.length === 0 && /^\w+\.[\w-]+$/.test(name)) return name
  if (found.length === 1) return String((found[0] as JsonObject)['id'])
  if (found.length === 0)
    throw new CommandProblem(`The event catalogue has no event with the name ${name}. Run \`switchyard events\` for a list.`, EXIT.notFound)
  const sources = found.map(({ sourceName, type }) => `${cell(sourceName)} (${cell(type)})`).join(', ')
  throw new UsageProblem(`Several events have the name ${name}: ${sources}. Choose one with --source and --type.`)
}

function nameOf({ type, event }: JsonObject): string {
  return type === null ? 'other events' : String(event ?? type)
}

function ruleText({ mode, owner }: { mode: string; owner: string | null }): string {
  return `has a rule with the mode ${mode}${owner === null ? '' : `, owned by ${owner}`}`
}

function sparkline(counts: readonly number[]): string {
  const most = Math.max(...counts, 1)
  return counts.map((count) => (count === 0 ? '·' : BARS[Math.min(7, Math.floor((count / most) * 7.99))])).join('')
}

function percent(share: unknown): string {
  const value = Number(share) * 100
  return value > 0 && value < 1 ? '<1 %' : `${Math.floor(value)} %`
}

function typesText(types: readonly { type: string; share: number }[]): string {
  return types.length === 1 ? (types[0]?.type ?? '') : types.map(({ type, share }) => `${type} ${percent(share)}`).join(', ')
}
