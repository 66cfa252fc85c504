// `switchyard ledger`, `stats` and `audit`: what is owed and what became of it, counts over time, and who changed what.

import type { JsonObject } from '@switchyard/protocol'
import { type Call, type Command, EXIT } from '../line/command.ts'
import { type Column, cell, LIMIT_FLAG, PERIOD_FLAGS, periodOf, showEntries, showNewest, time } from '../line/listing.ts'
import { namesOf, optionalId } from '../line/references.ts'
import { formatDuration } from '../line/times.ts'

const count =
  (field: string) =>
  (entry: JsonObject): unknown =>
    entry[field]

const LEDGER_COLUMNS: readonly Column[] = [
  ['destination', ({ destinationId, name }) => (name === undefined ? destinationId : `${cell(name)} (${cell(destinationId)})`)],
  ...['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled'].map((field): Column => [field, count(field)]),
]

const INCOMING: readonly Column[] = [
  ['accepted', count('accepted')],
  ['duplicates', count('duplicates')],
  ['suppressed', count('suppressed')],
  ['rejected', ({ rejected }) => rejectedText(rejected)],
]
const OUTGOING: readonly Column[] = [
  ['delivered', count('delivered')],
  ['failed', count('failed')],
  ['expired', count('expired')],
  ['retried', count('retried')],
  ['p50', ({ latencyMs }) => latency(latencyMs, 'p50')],
  ['p99', ({ latencyMs }) => latency(latencyMs, 'p99')],
]

const REJECTION_COLUMNS: readonly Column[] = [
  ['code', ({ code }) => code],
  ['count', count('count')],
  ['source', ({ sourceId }) => sourceId ?? 'unknown write key'],
  ['last', ({ lastAt }) => time(lastAt)],
  ['last sample', ({ lastSample }) => lastSample],
]

const AUDIT_COLUMNS: readonly Column[] = [
  ['at', ({ at }) => time(at)],
  ['who', ({ actor }) => who(actor)],
  ['action', ({ action }) => action],
  ['subject', ({ subject }) => subject],
  ['changed', ({ before, after }) => changed(before, after)],
]

export const REPORT_COMMANDS: readonly Command[] = [
  {
    name: 'ledger',
    summary: 'The ledger: the deliveries of each destination, by state',
    details: 'owed = delivered + pending + failed + expired + cancelled. Exit code 1 when the books do not balance.',
    flags: { recount: { placeholder: null, sentence: 'Counts the rows themselves, which takes long on a large store.' } },
    async run(call) {
      const ledger = await call.api.get('/api/ledger', call.has('recount') ? { recount: true } : {})
      const isBalanced = ledger['consistent'] !== false
      if (call.json) call.out.json(ledger)
      else {
        const names = await namesOf(call.api, 'destination')
        const rows = (ledger['data'] as JsonObject[]).map((row) => {
          const name = names.get(row['destinationId'])
          return name === undefined ? row : Object.assign(row, { name })
        })
        showEntries(call, rows, LEDGER_COLUMNS, 'There is no destination.')
        if (!isBalanced) call.out.remark('The books do not balance. `switchyard doctor` looks closer.')
      }
      return isBalanced ? EXIT.ok : EXIT.failed
    },
  },
  {
    name: 'rejections',
    summary: 'Rejected messages and requests: how often, for which reason, and the last of each',
    details: 'A message that `trace` does not find may have been refused.',
    flags: { source: { placeholder: 'SOURCE', sentence: 'Only of this source, by id or name.' } },
    async run(call) {
      const sourceId = await optionalId(call.api, 'source', call.flag('source'))
      const rows = (await call.api.get('/api/rejections'))['data'] as JsonObject[]
      const wanted = sourceId === undefined ? rows : rows.filter((row) => row['sourceId'] === sourceId)
      showEntries(call, wanted, REJECTION_COLUMNS, 'Nothing was refused.')
      return EXIT.ok
    },
  },
  {
    name: 'stats',
    summary: 'Counts over time, of a source, a destination, or all together',
    flags: {
      source: { placeholder: 'SOURCE', sentence: 'What came in by this source, by id or name.' },
      destination: { placeholder: 'DESTINATION', sentence: 'What went out to this one, by id or name.' },
      step: { placeholder: 'STEP', sentence: 'How long each line is.', usual: '1m', values: ['1m', '5m', '1h', '1d'] },
      ...PERIOD_FLAGS,
      all: { placeholder: null, sentence: 'Shows also the steps in which nothing happened.' },
    },
    examples: ['switchyard stats', "switchyard stats --destination 'my webhook' --step 1h --from 7d"],
    run: stats,
  },
  {
    name: 'audit',
    summary: 'Who changed what, newest first: before and after, without secrets',
    flags: {
      subject: { placeholder: 'ID', sentence: 'Only changes of this thing, by its id.' },
      action: { placeholder: 'ACTION', sentence: 'Only of this kind, such as destination.update.' },
      actor: { placeholder: 'ID', sentence: 'Only by this one, by the id of a token.' },
      ...PERIOD_FLAGS,
      ...LIMIT_FLAG,
    },
    examples: ['switchyard audit --from 1d', 'switchyard audit --action destination.update --json'],
    async run(call) {
      const { flag } = call
      const query = { subject: flag('subject'), action: flag('action'), actor: flag('actor'), ...periodOf(call) }
      await showNewest(call, '/api/audit', query, AUDIT_COLUMNS, 'Nothing was changed.')
      return EXIT.ok
    },
  },
]

async function stats(call: Call): Promise<typeof EXIT.ok> {
  const { api, flag } = call
  const sourceId = await optionalId(api, 'source', flag('source'))
  const destinationId = await optionalId(api, 'destination', flag('destination'))
  const answer = await api.get('/api/stats', { sourceId, destinationId, step: flag('step'), ...periodOf(call) })
  const points = answer['data'] as JsonObject[]
  if (call.json) {
    call.out.json(answer)
    return EXIT.ok
  }
  const columns: Column[] = [['from', ({ at }) => time(at)]]
  if (destinationId === undefined) columns.push(...INCOMING)
  if (sourceId === undefined) columns.push(...OUTGOING)
  const shown = call.has('all') ? points : points.filter(hasHappened)
  showEntries(call, shown, columns, `Nothing happened from ${time(answer['from'])} to ${time(answer['to'])}.`)
  return EXIT.ok
}

function hasHappened(point: JsonObject): boolean {
  return Object.values(point).some((value) => (typeof value === 'number' ? value > 0 : sum(value) > 0))
}

function sum(rejected: unknown): number {
  if (typeof rejected !== 'object' || rejected === null) return 0
  return Object.values(rejected).reduce((total: number, value) => total + (typeof value === 'number' ? value : 0), 0)
}

function rejectedText(rejected: unknown): string {
  const codes = Object.entries((rejected ?? {}) as Record<string, number>)
  return codes.length === 0 ? '0' : codes.map(([code, number]) => `${number} ${code}`).join(', ')
}

function latency(value: unknown, name: string): string {
  const ms = (value as Record<string, number> | null)?.[name]
  return ms === undefined ? '–' : formatDuration(ms)
}

function who(actor: unknown): string {
  return typeof actor === 'object' && actor !== null ? cell((actor as JsonObject)['name']) : cell(actor)
}

/** The names of the fields that differ; what was created or deleted is told by the action. */
function changed(before: unknown, after: unknown): string {
  if (typeof before !== 'object' || typeof after !== 'object' || before === null || after === null) return ''
  const [old, now] = [before as JsonObject, after as JsonObject]
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((field) => JSON.stringify(old[field]) !== JSON.stringify(now[field]))
    .join(', ')
}
