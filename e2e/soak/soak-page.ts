// The table of a soak, in the terminal and in docs/operations/soak.md, and the decision whether something grows.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { table } from '../../scripts/reference/markdown.ts'
import { percentile } from '../cluster/latency.ts'
import { machineName } from '../faults/machine.ts'
import type { StoreKind } from '../faults/system/system.ts'
import type { Sample } from './sampling.ts'

export interface SoakRun {
  store: StoreKind
  seed: number
  rate: number
  hours: number
  acknowledged: number
  lost: number
  repeated: number
  /** By name, how often each was caused. */
  faults: Record<string, number>
  samples: readonly Sample[]
  problems: readonly string[]
}

interface StoredSoak {
  date: string
  machine: string
  runs: SoakRun[]
}

const DATA = join(import.meta.dirname, 'soak.json')
const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'operations', 'soak.md')

const COLUMNS: readonly [name: string, text: (sample: Sample) => string][] = [
  ['Minutes', ({ minutes }) => minutes.toFixed(0)],
  ['Acknowledged', ({ acknowledged }) => acknowledged.toLocaleString('en-US')],
  ['Pending', ({ pending }) => pending.toLocaleString('en-US')],
  ['Memory', ({ memoryMb }) => `${memoryMb.toFixed(0)} MB`],
  ['Host memory', ({ hostsMb }) => `${hostsMb.toFixed(0)} MB`],
  ['Descriptors', ({ descriptors }) => String(descriptors)],
  ['Threads', ({ threads }) => String(threads)],
  ['Store', ({ storeMb }) => `${storeMb.toFixed(1)} MB`],
  ['Store/message', (sample) => `${(bytesPerMessage(sample) / 1_024).toFixed(2)} KB`],
  ['Accept p50, p99', ({ acceptMs: [median, p99] }) => `${median.toFixed(0)}, ${p99.toFixed(0)} ms`],
  ['Deliver p50, p99', ({ deliverMs: [median, p99] }) => `${median.toFixed(0)}, ${p99.toFixed(0)} ms`],
  ['Faults', ({ faults }) => String(faults)],
]
const WIDTH = 18

export function headings(): string {
  return COLUMNS.map(([name]) => name.padStart(WIDTH)).join('')
}

export function line(sample: Sample): string {
  return COLUMNS.map(([, text]) => text(sample).padStart(WIDTH)).join('')
}

function bytesPerMessage({ storeMb, acknowledged }: Sample): number {
  return (storeMb * 2 ** 20) / Math.max(1, acknowledged)
}

/** How many times higher the median of the last quarter may be than that of the second quarter. The first quarter is the warm-up. */
const GROWTH: readonly [name: string, of: (sample: Sample) => number, most: number][] = [
  ['The memory in MB', ({ memoryMb }) => memoryMb, 1.25],
  ['The number of file descriptors', ({ descriptors }) => descriptors, 1.25],
  ['The number of threads', ({ threads }) => threads, 1.25],
  ['The number of bytes in the store per message', bytesPerMessage, 1.15],
]
const LEAST_SAMPLES = 8

export function growthOf(samples: readonly Sample[]): string[] {
  const quarter = Math.floor(samples.length / 4)
  if (samples.length < LEAST_SAMPLES) return []
  return GROWTH.flatMap(([name, of, most]) => {
    const early = percentile(samples.slice(quarter, 2 * quarter).map(of), 0.5)
    const late = percentile(samples.slice(-quarter).map(of), 0.5)
    return late > early * most ? [`${name} grew from ${early.toFixed(0)} to ${late.toFixed(0)}.`] : []
  })
}

/** Stores the result and writes the page. Returns the path of the page. */
export function writeResult(runs: readonly SoakRun[]): string {
  const stored: StoredSoak = { date: new Date().toISOString().slice(0, 10), machine: machineName(), runs: [...runs] }
  writeFileSync(DATA, `${JSON.stringify(stored, null, 2)}\n`)
  return writePage()
}

/** Writes the page from the stored result. */
export function writePage(): string {
  writeFileSync(PAGE, soakPage())
  return PAGE
}

export function soakPage(): string {
  const { date, machine, runs } = JSON.parse(readFileSync(DATA, 'utf8')) as StoredSoak
  return `${[
    '# Soak test',
    '<!-- Written by npm run soak -- --write (e2e/soak/soak-page.ts). Do not edit. -->',
    INTRODUCTION,
    `Measured on ${date}: ${machine}. Other programs ran at the same time, which makes the times longer.`,
    ...runs.map(section),
  ].join('\n\n')}\n`
}

function section({ store, seed, rate, hours, acknowledged, lost, repeated, faults, samples, problems }: SoakRun): string {
  const causes = Object.entries(faults).map(([name, times]) => `${name} (${times})`)
  const rows = samples.map((sample) => COLUMNS.map(([, text]) => text(sample)))
  return [
    `## ${store === 'sqlite' ? 'SQLite' : 'PostgreSQL, two nodes'}`,
    `${hours.toFixed(1)} hours, ${rate} messages per second, seed ${seed}: ${acknowledged.toLocaleString('en-US')} messages acknowledged, **${lost} lost**, ${repeated.toLocaleString('en-US')} deliveries arrived twice. Faults: ${causes.join(', ')}.`,
    table(
      COLUMNS.map(([name]) => name),
      rows,
    ),
    problems.length === 0
      ? 'Nothing grew beyond the limits, and the audit found no problem.'
      : ['The run found:', ...problems.map((problem) => `- ${problem.split('\n')[0]}`)].join('\n'),
  ].join('\n\n')
}

const INTRODUCTION = `This test keeps up a steady load for hours and causes a fault every few minutes. Each message goes to five destinations, as in the [fault ledger](fault-ledger.md). The table shows the resources that the first node uses. That node is never killed, because a restart would hide growth. You can run the test yourself:

\`\`\`sh
npm run soak -- --hours 2
\`\`\`

Each line covers the time since the previous line:

- **Memory**, **Descriptors**, **Threads**: of the node's process (medians). **Host memory** is that of its integration hosts.
- **Store**: the size of the store. **Store/message** is this size divided by the number of messages. No message is old enough to be removed, so the store grows with the messages.
- **Accept**: the duration of a call. **Deliver**: the time from the first call to the arrival at a webhook, including retries. Both columns show the median and the 99th percentile.
- **Pending**: deliveries that have not ended.

A run fails if a message is lost, or if memory, descriptors or threads are more than 25 % higher in the last quarter of the run than in the second quarter, or if the size per message is more than 15 % higher. Two hours are too short to show slower growth, and retention removes nothing in that time.`
