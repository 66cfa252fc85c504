// The metrics of the service, from the table that serves them.

import { METRICS, type Metric, PROCESS_METRICS } from '../../packages/server/src/observe/metric-table.ts'
import { code, heading, table } from './markdown.ts'

export function metricsPage(): string {
  const metrics: readonly Metric[] = Object.values(METRICS)
  const rows = (origin: Metric['origin']): string[][] =>
    metrics
      .filter((metric) => metric.origin === origin)
      .map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(', '), help])
  const histograms = metrics
    .filter(({ bounds }) => bounds !== undefined)
    .map(({ name, bounds }) => [code(name), (bounds as readonly number[]).join(', ')])
  const ofProcess = Object.entries(PROCESS_METRICS).map(([name, { type, help, linux }]) => [
    code(name),
    type,
    linux ? `${help} On Linux.` : help,
  ])
  return [
    heading('Metrics', 'packages/server/src/observe/metric-table.ts'),
    '`GET /metrics` answers in the text format of Prometheus. Who may read it is the setting `SWITCHYARD_METRICS`: by default everybody while the',
    'service listens on loopback, and otherwise whoever has a control token of any role, as `Authorization: Bearer <token>`.',
    '',
    'Sources and destinations are labels by their id; the `_info` metrics have their names, to be joined:',
    '',
    '```promql',
    'switchyard_deliveries_pending * on (destination) group_left (name) switchyard_destination_info',
    '```',
    '',
    'With several nodes on one store, scrape all of them. What is from the store is the same from each: take `max by` its labels first,',
    'and add up after that. What is of the process is that node’s own: add it up. The query above, for many nodes:',
    '',
    '```promql',
    'max by (destination, name) (switchyard_deliveries_pending * on (destination, instance) group_left (name) switchyard_destination_info)',
    '```',
    '',
    'The answer stays under 1 MB, however many sources and destinations there are. Up to 300 destinations and 50 sources have series of their own,',
    'and 70 destinations have histograms. If there are more, those that need attention come first (circuit breaker not closed, or a delivery pending for',
    'over a minute), then those with the latest traffic. All others are added up under the label value `other`. There, gauges are sums (the oldest',
    'pending age is the highest), and counters count what happened while a destination had no series of its own, since the node started.',
    '`switchyard_ledger` has the exact totals of all destinations.',
    '',
    'What was deleted disappears. A dashboard and alert rules that use these are in [docs/operations](../operations/alerts.md).',
    '',
    '## From the store',
    '',
    'Read when they are asked for, at most once a second: exact, and the same after a restart. A store that does not answer within two seconds',
    'leaves them out, and `switchyard_store_readable` is 0. With several nodes, each of them tells the same.',
    '',
    table(['Metric', 'Type', 'Labels', 'Meaning'], rows('store')),
    '',
    '## Of this process',
    '',
    "Counted since the start, by each node for itself. A destination's histograms appear with its first attempt.",
    '',
    table(['Metric', 'Type', 'Labels', 'Meaning'], rows('process')),
    '',
    'Upper bounds of the histograms:',
    '',
    table(['Metric', 'Buckets'], histograms),
    '',
    '## Of Node.js',
    '',
    table(['Metric', 'Type', 'Meaning'], ofProcess),
    '',
  ].join('\n')
}
