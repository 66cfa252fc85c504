// The table of a soak, in the terminal and in docs/operations/soak.md, and the decision whether something grows.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { table } from '../../scripts/reference/markdown.ts'
import type { StoreKind } from '../faults/fault.ts'
import { machineName } from '../faults/machine.ts'
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
  ['Hosts', ({ hostsMb }) => `${hostsMb.toFixed(0)} MB`],
  ['Descriptors', ({ descriptors }) => String(descriptors)],
  ['Threads', ({ threads }) => String(threads)],
  ['Store', ({ storeMb }) => `${storeMb.toFixed(1)} MB`],
  ['Per message', (sample) => `${(bytesPerMessage(sample) / 1_024).toFixed(2)} KB`],
  ['Accepting', ({ acceptMs: [median, p99] }) => `${median.toFixed(0)}, ${p99.toFixed(0)} ms`],
  ['Delivering', ({ deliverMs: [median, p99] }) => `${median.toFixed(0)}, ${p99.toFixed(0)} ms`],
  ['Faults', ({ faults }) => String(faults)],
]
const WIDTH = 15

export function headings(): string {
  return COLUMNS.map(([name]) => name.padStart(WIDTH)).join('')
}

export function line(sample: Sample): string {
  return COLUMNS.map(([, text]) => text(sample).padStart(WIDTH)).join('')
}

function bytesPerMessage({ storeMb, acknowledged }: Sample): number {
  return (storeMb * 2 ** 20) / Math.max(1, acknowledged)
}

/** The most that a median of the last quarter may be above that of the second quarter. The first quarter warms up. */
const GROWTH: readonly [name: string, of: (sample: Sample) => number, most: number][] = [
  ['Memory', ({ memoryMb }) => memoryMb, 1.25],
  ['The number of file descriptors', ({ descriptors }) => descriptors, 1.25],
  ['The number of threads', ({ threads }) => threads, 1.25],
  ['The size of the store for each message', bytesPerMessage, 1.15],
]
const LEAST_SAMPLES = 8

export function growthOf(samples: readonly Sample[]): string[] {
  const quarter = Math.floor(samples.length / 4)
  if (samples.length < LEAST_SAMPLES) return []
  return GROWTH.flatMap(([name, of, most]) => {
    const early = median(samples.slice(quarter, 2 * quarter).map(of))
    const late = median(samples.slice(-quarter).map(of))
    return late > early * most ? [`${name} grew from ${early.toFixed(0)} to ${late.toFixed(0)}.`] : []
  })
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

/** Returns its path. */
export function writePage(runs: readonly SoakRun[]): string {
  const stored: StoredSoak = { date: new Date().toISOString().slice(0, 10), machine: machineName(), runs: [...runs] }
  writeFileSync(DATA, `${JSON.stringify(stored, null, 2)}\n`)
  writeFileSync(PAGE, soakPage())
  return PAGE
}

export function soakPage(): string {
  const { date, machine, runs } = JSON.parse(readFileSync(DATA, 'utf8')) as StoredSoak
  return `${[
    '# Soak test',
    '<!-- Written by npm run soak -- --write (e2e/soak/soak-page.ts). Do not edit. -->',
    INTRODUCTION,
    `${date}; ${machine}. Other work ran on the machine at the same time.`,
    ...runs.map(section),
  ].join('\n\n')}\n`
}

function section({ store, seed, rate, hours, acknowledged, lost, repeated, faults, samples, problems }: SoakRun): string {
  const causes = Object.entries(faults).map(([name, times]) => `${name} ${times}`)
  const rows = samples.map((sample) => COLUMNS.map(([, text]) => text(sample)))
  return [
    `## ${store === 'sqlite' ? 'SQLite' : 'PostgreSQL, two nodes'}`,
    `${hours.toFixed(1)} hours, ${rate} messages per second, seed ${seed}: ${acknowledged.toLocaleString('en-US')} messages acknowledged, **${lost} lost**, ${repeated.toLocaleString('en-US')} deliveries arrived twice. Faults: ${causes.join(', ')}.`,
    table(
      COLUMNS.map(([name]) => name),
      rows,
    ),
    problems.length === 0
      ? 'Nothing grew, and the audit found nothing wrong.'
      : ['The run found:', ...problems.map((problem) => `- ${problem.split('\n')[0]}`)].join('\n'),
  ].join('\n\n')
}

const INTRODUCTION = `A steady load for hours, with a fault every few minutes. Each message goes to five destinations, as in the [fault ledger](fault-ledger.md). The table shows what the first node uses; it is never killed, so growth would show. Run it yourself:

\`\`\`sh
npm run soak -- --hours 2
\`\`\`

**Memory**, **descriptors** and **threads** are medians for the process of the node since the line before; **hosts** is the memory of its integration hosts. **Per message** is the size of the store divided by the number of messages; nothing is old enough to be removed, so the store itself grows. **Accepting** is the time of a call, **delivering** the time from the first call to the arrival at a webhook, with retries: median and 99th percentile. A run fails if a message is lost, or if memory, descriptors, threads or the size per message are more than a quarter (size: 15 %) higher in the last quarter than in the second.`
