import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MetricSums } from './metric-sums.ts'
import { METRICS, type Metric, type MetricKey, NOT_SUMMED } from './metric-table.ts'

/** The text of a process: lines by family. */
function exposed(families: Record<string, string[]>): string {
  return Object.entries(families)
    .map(([name, lines]) => `# HELP ${name} A sentence, with 3 words.\n# TYPE ${name} any\n${lines.map((line) => `${line}\n`).join('')}\n`)
    .join('')
}

function linesOf(text: string | null): string[] {
  return String(text)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
}

function process(values: {
  owed?: number
  retried?: number
  inFlight?: number
  writable?: number
  cpu?: number
  destination?: string
}): string {
  const { owed = 7, retried = 0, inFlight = 0, writable = 1, cpu = 0.5, destination = 'a' } = values
  return exposed({
    switchyard_deliveries_owed_total: [`switchyard_deliveries_owed_total{destination="${destination}"} ${owed}`],
    switchyard_destination_info: [`switchyard_destination_info{destination="${destination}",name="a \\" b } 1"} 1`],
    switchyard_deliveries_retried_total: [`switchyard_deliveries_retried_total{destination="${destination}"} ${retried}`],
    switchyard_requests_in_flight: [`switchyard_requests_in_flight{destination="${destination}"} ${inFlight}`],
    switchyard_store_writable: [`switchyard_store_writable ${writable}`],
    switchyard_processes: ['switchyard_processes{state="answered"} 1', 'switchyard_processes{state="missing"} 0'],
    process_cpu_seconds_total: [`process_cpu_seconds_total ${cpu}`],
    nodejs_gc_duration_seconds: ['nodejs_gc_duration_seconds_count{kind="minor"} 2'],
  })
}

test('counts of processes are added up, values from the store are not, and metrics of a single process have its label', () => {
  const sums = new MetricSums()
  sums.update(2, process({ retried: 3, inFlight: 1, writable: 0, cpu: 1.5 }))
  sums.update(1, process({ retried: 4, inFlight: 2 }))
  const text = String(sums.text(new Set([1, 2]), 2))
  assert.deepEqual(linesOf(text), [
    'switchyard_deliveries_owed_total{destination="a"} 7',
    'switchyard_destination_info{destination="a",name="a \\" b } 1"} 1',
    'switchyard_deliveries_retried_total{destination="a"} 7',
    'switchyard_requests_in_flight{destination="a"} 3',
    'switchyard_store_writable 0',
    'switchyard_processes{state="answered"} 2',
    'switchyard_processes{state="missing"} 0',
    'process_cpu_seconds_total{process="1"} 0.5',
    'process_cpu_seconds_total{process="2"} 1.5',
    'nodejs_gc_duration_seconds_count{process="1",kind="minor"} 2',
    'nodejs_gc_duration_seconds_count{process="2",kind="minor"} 2',
  ])
  assert.equal(text.match(/# HELP /g)?.length, 8)
  assert.equal(text.match(/# TYPE /g)?.length, 8)
})

test('buckets, sum and count of a histogram are added up, also if only one process has them', () => {
  const sums = new MetricSums()
  const lag = (...counts: number[]): string =>
    exposed({
      switchyard_event_loop_lag_seconds: counts.map((count, at) => `switchyard_event_loop_lag_seconds_bucket{le="${at}"} ${count}`),
    })
  sums.update(1, lag(1, 2))
  sums.update(2, lag(10, 20, 30))
  assert.deepEqual(linesOf(sums.text(new Set([1, 2]), 2)), [
    'switchyard_event_loop_lag_seconds_bucket{le="0"} 11',
    'switchyard_event_loop_lag_seconds_bucket{le="1"} 22',
    'switchyard_event_loop_lag_seconds_bucket{le="2"} 30',
  ])
})

test('a counter does not fall when a process does not answer, ends, or is replaced', () => {
  const sums = new MetricSums()
  const retried = (answered: number[]): string[] =>
    linesOf(sums.text(new Set(answered), 2)).filter((line) => /retried|in_flight|processes/.test(line))
  sums.update(1, process({ retried: 100, inFlight: 1 }))
  sums.update(2, process({ retried: 50, inFlight: 2 }))
  assert.equal(retried([1, 2])[0], 'switchyard_deliveries_retried_total{destination="a"} 150')
  sums.update(1, process({ retried: 101 }))
  assert.deepEqual(retried([1]), [
    'switchyard_deliveries_retried_total{destination="a"} 151',
    'switchyard_requests_in_flight{destination="a"} 2',
    'switchyard_processes{state="answered"} 1',
    'switchyard_processes{state="missing"} 1',
  ])
  sums.end(2)
  assert.deepEqual(retried([1]).slice(0, 2), [
    'switchyard_deliveries_retried_total{destination="a"} 151',
    'switchyard_requests_in_flight{destination="a"} 0',
  ])
  sums.update(2, process({ retried: 1 }))
  sums.end(2)
  sums.update(2, process({ retried: 2 }))
  assert.equal(retried([1, 2])[0], 'switchyard_deliveries_retried_total{destination="a"} 154')
})

test('the counters of a deleted destination disappear with the processes that counted them', () => {
  const sums = new MetricSums()
  sums.update(1, process({ retried: 5, destination: 'deleted' }))
  sums.end(1)
  sums.update(1, process({ retried: 1, destination: 'a' }))
  assert.doesNotMatch(String(sums.text(new Set([1]), 1)), /deleted/)
  sums.update(1, process({ retried: 1, destination: 'deleted' }))
  assert.match(String(sums.text(new Set([1]), 1)), /retried_total\{destination="deleted"\} 1\n/)
})

test('without any report there is no text', () => {
  assert.equal(new MetricSums().text(new Set(), 2), null)
})

test('every gauge of the process has a rule for whether it is added up', () => {
  const summed: MetricKey[] = ['inFlight', 'processes', 'liveListeners']
  const gauges = (Object.entries(METRICS) as [MetricKey, Metric][]).filter(
    ([, { type, origin }]) => type === 'gauge' && origin === 'process',
  )
  assert.deepEqual(gauges.map(([key]) => key).sort(), [...summed, ...Object.keys(NOT_SUMMED)].sort())
})
