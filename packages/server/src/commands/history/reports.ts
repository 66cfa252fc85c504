// `switchyard ledger`, `rejections`, `stats` and `audit`: delivery counts, rejected requests, counts over time, and the audit log.

import type { JsonObject } from '@switchyard/protocol'
import { type Call, type Command, EXIT } from '../line/command.ts'
import { type Column, cell, PERIOD_FLAGS, periodOf, showEntries, time } from '../line/listing.ts'
import { namesOf, optionalId } from '../line/references.ts'
import { newestCommand } from '../line/resource-commands.ts'
import { formatDuration } from '../line/times.ts'

const count =
  (field: string) =>
  (entry: JsonObject): unknown =>
    entry[field]

const LEDGER_COLUMNS: readonly Column[] = [
  ['destination', ({ destinationId, name }) => (name === undefined ? destinationId : `${cell(name)} (${cell(destinationId)})`)],
  ...['owed', 'delivered', 'pending', 'failed', 'expired', 'cancelled', 'quarantined'].map((field): Column => [field, count(field)]),
]

const INCOMING: readonly Column[] = [
  ['accepted', count('accepted')],
  ['duplicates', count('duplicates')],
  ['suppressed', count('suppressed')],
  ['rejected', ({ rejected }) => rejectedText(rejected)],
  ['warnings', ({ warnings }) => rejectedText(warnings)],
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
  ['last time', ({ lastAt }) => time(lastAt)],
  ['last example', ({ lastSample }) => lastSample],
]

const AUDIT_COLUMNS: readonly Column[] = [
  ['time', ({ at }) => time(at)],
  ['actor', ({ actor }) => actorName(actor)],
  ['action', ({ action }) => action],
  ['subject', ({ subject }) => subject],
  ['changed fields', ({ before, after }) => changedFields(before, after)],
]

export const REPORT_COMMANDS: readonly Command[] = [
  {
    name: 'ledger',
    summary: 'Show the number of deliveries of each destination, by state',
    details:
      'For each destination, owed = delivered + pending + failed + expired + cancelled. Messages in quarantine of the sources of a destination are not owed until they are released. The exit code is 1 if the counts do not balance.',
    flags: {
      recount: {
        placeholder: null,
        description: 'Recount the deliveries from the stored rows, and compare. This can take a long time on a large store.',
      },
    },
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
        showEntries(call, rows, LEDGER_COLUMNS, 'There are no destinations. Create one with `switchyard destinations create NAME URL`.')
        if (!isBalanced) call.out.remark('The counts do not balance. Run `switchyard doctor` for details.')
      }
      return isBalanced ? EXIT.ok : EXIT.failed
    },
  },
  {
    name: 'rejections',
    summary: 'Show rejected messages and requests: how many for each reason, and the latest example',
    details: 'If `switchyard trace` does not find a message, it may have been rejected.',
    flags: { source: { placeholder: 'SOURCE', description: 'Only rejections from this source, by id or name.' } },
    async run(call) {
      const sourceId = await optionalId(call.api, 'source', call.flag('source'))
      const rows = (await call.api.get('/api/rejections'))['data'] as JsonObject[]
      const wanted = sourceId === undefined ? rows : rows.filter((row) => row['sourceId'] === sourceId)
      showEntries(call, wanted, REJECTION_COLUMNS, 'Nothing was rejected.')
    },
  },
  {
    name: 'stats',
    summary: 'Show the number of messages and deliveries over time, in total or for one source or destination',
    flags: {
      source: { placeholder: 'SOURCE', description: 'Count the messages of this source, by id or name.' },
      destination: { placeholder: 'DESTINATION', description: 'Count the deliveries to this destination, by id or name.' },
      step: { placeholder: 'STEP', description: 'The length of each interval.', defaultText: '1m', values: ['1m', '5m', '1h', '1d'] },
      ...PERIOD_FLAGS,
      all: { placeholder: null, description: 'Also show intervals without activity.' },
    },
    examples: ['switchyard stats', "switchyard stats --destination 'my webhook' --step 1h --from 7d"],
    run: stats,
  },
  newestCommand({
    name: 'audit',
    summary: 'List changes (who changed what, without secrets), newest first',
    flags: {
      subject: { placeholder: 'ID', description: 'Only changes to the resource with this id.' },
      action: { placeholder: 'ACTION', description: 'Only changes with this action, such as destination.update.' },
      actor: { placeholder: 'ID', description: 'Only changes made with the token that has this id.' },
      ...PERIOD_FLAGS,
    },
    examples: ['switchyard audit --from 1d', 'switchyard audit --action destination.update --json'],
    path: '/api/audit',
    query: (call) => ({ subject: call.flag('subject'), action: call.flag('action'), actor: call.flag('actor'), ...periodOf(call) }),
    columns: AUDIT_COLUMNS,
    none: 'No changes match.',
  }),
]

async function stats(call: Call): Promise<void> {
  const { api, flag } = call
  const sourceId = await optionalId(api, 'source', flag('source'))
  const destinationId = await optionalId(api, 'destination', flag('destination'))
  const answer = await api.get('/api/stats', { sourceId, destinationId, step: flag('step'), ...periodOf(call) })
  const points = answer['data'] as JsonObject[]
  if (call.json) return call.out.json(answer)
  const columns: Column[] = [['from', ({ at }) => time(at)]]
  if (destinationId === undefined) columns.push(...INCOMING)
  if (sourceId === undefined) columns.push(...OUTGOING)
  const shown = call.has('all') ? points : points.filter(hasActivity)
  showEntries(call, shown, columns, `No activity from ${time(answer['from'])} to ${time(answer['to'])}.`)
}

function hasActivity(point: JsonObject): boolean {
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

function actorName(actor: unknown): string {
  return typeof actor === 'object' && actor !== null ? cell((actor as JsonObject)['name']) : cell(actor)
}

/** The names of the changed fields. Empty for a resource that was created or deleted, which the action shows. */
function changedFields(before: unknown, after: unknown): string {
  if (typeof before !== 'object' || typeof after !== 'object' || before === null || after === null) return ''
  const [old, now] = [before as JsonObject, after as JsonObject]
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((field) => JSON.stringify(old[field]) !== JSON.stringify(now[field]))
    .join(', ')
}
