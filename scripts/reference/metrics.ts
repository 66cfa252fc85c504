// The metrics of the service, from the table that serves them.

import { METRICS, type Metric, type MetricKey, NOT_SUMMED, PROCESS_METRICS } from '../../packages/server/src/observe/metric-table.ts'
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
    linux ? `${help} Linux only.` : help,
  ])
  return [
    heading('Metrics', 'packages/server/src/observe/metric-table.ts'),
    '`GET /metrics` responds in the Prometheus text format. The setting `SWITCHYARD_METRICS` controls who may read it. By default, requests from the',
    'same machine need no token while the service listens on loopback; all others need a control token of any role, as `Authorization: Bearer <token>`.',
    '',
    'Sources and destinations are labelled by their id. Join with the `_info` metrics to get their names:',
    '',
    '```promql',
    'switchyard_deliveries_pending * on (destination) group_left (name) switchyard_destination_info',
    '```',
    '',
    'With several nodes on one store, scrape all of them. Metrics from the store have the same value on each node: aggregate them with `max by` their',
    'labels before adding them up. Metrics of the process differ from node to node: add them up. The query above, for several nodes:',
    '',
    '```promql',
    'max by (destination, name) (switchyard_deliveries_pending * on (destination, instance) group_left (name) switchyard_destination_info)',
    '```',
    '',
    'The response stays under 1 MB, however many sources and destinations there are. Up to 300 destinations and 50 sources have series of their own,',
    'and 70 destinations have histograms. If there are more, those that need attention come first (circuit breaker not closed, or a delivery pending for',
    'over a minute), then those with the most recent traffic. All others are combined under the label value `other`. Its gauges are sums, except for the',
    'oldest pending age, which is the maximum. Its counters count what happened to destinations while they had no series of their own, since the node started.',
    '`switchyard_ledger` has the exact totals of all destinations.',
    '',
    'The series of deleted sources and destinations disappear. A dashboard and alert rules that use these metrics are in',
    '[docs/operations](../operations/alerts.md).',
    '',
    '## Several processes',
    '',
    'With `SWITCHYARD_PROCESSES` above 1, a scrape returns the metrics of all processes on the port:',
    '',
    '- Metrics from the store are the same for all processes and are returned once.',
    '- Counters and histograms of the process are summed. They do not fall when a process is replaced, but what it counted after the last scrape is lost.',
    `- Gauges of the process are summed, with these exceptions: the maximum is used for ${combinedBy('max')}, and the minimum for ${combinedBy('min')}.`,
    '- Metrics from Node.js have one series for each process, with the label `process`.',
    '',
    'If a process does not report within three seconds, its last values are used again, and `switchyard_processes{state="missing"}` counts it.',
    'Set an alert for when this is above 0 for several minutes.',
    '',
    '## From the store',
    '',
    'These metrics are read from the store for each scrape, at most once a second. They are exact and survive restarts. If the store does not respond within two',
    'seconds, they are missing and `switchyard_store_readable` is 0. With several nodes, every node reports the same values.',
    '',
    table(['Metric', 'Type', 'Labels', 'Meaning'], rows('store')),
    '',
    '## From the process',
    '',
    'These metrics are counted by each node since it started. The histograms of a destination appear after its first attempt.',
    '',
    table(['Metric', 'Type', 'Labels', 'Meaning'], rows('process')),
    '',
    'The upper bounds of the histogram buckets, in the unit of the metric:',
    '',
    table(['Metric', 'Buckets'], histograms),
    '',
    '## From Node.js',
    '',
    table(['Metric', 'Type', 'Meaning'], ofProcess),
    '',
  ].join('\n')
}

function combinedBy(rule: 'max' | 'min'): string {
  const keys = (Object.keys(NOT_SUMMED) as MetricKey[]).filter((key) => NOT_SUMMED[key] === rule)
  return keys.map((key) => code(METRICS[key].name)).join(', ')
}
