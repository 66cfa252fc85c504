// The published result: ledger.json has one entry for each fault and store, and docs/operations/fault-ledger.md is written from it. A run
// replaces only the entries of the rows that it ran, so each entry has its own date and seed.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { table } from '../../scripts/reference/markdown.ts'
import type { RoundResult, StoreKind } from './fault.ts'
import { FAULTS } from './faults.ts'
import { machineName } from './machine.ts'

/** The rounds of one run, together. */
export interface Combined {
  rounds: number
  failedRounds: number
  faults: number
  acknowledged: number
  lost: number
  repeated: number
  mostRepeated: number
  repeatBound: number
  longestPauseMs: number | null
  recoveredMs: { median: number; longest: number } | null
}

export interface Entry extends Combined {
  key: string
  store: StoreKind
  seed: number
}

interface StoredEntry extends Entry {
  date: string
  machine: string
}

const DATA = join(import.meta.dirname, 'ledger.json')
const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'operations', 'fault-ledger.md')

export function combine(rounds: readonly RoundResult[]): Combined {
  const sum = (of: (round: RoundResult) => number): number => rounds.reduce((total, round) => total + of(round), 0)
  const most = (of: (round: RoundResult) => number): number => Math.max(0, ...rounds.map(of))
  const recovered = rounds.flatMap(({ recoveredMs }) => recoveredMs).sort((a, b) => a - b)
  return {
    rounds: rounds.length,
    failedRounds: rounds.filter(({ problems }) => problems.length > 0).length,
    faults: sum(({ faults }) => faults),
    acknowledged: sum(({ acknowledged }) => acknowledged),
    lost: sum(({ lost }) => lost),
    repeated: sum(({ repeated }) => repeated),
    mostRepeated: most(({ mostRepeated }) => mostRepeated),
    repeatBound: most(({ repeatBound }) => repeatBound),
    longestPauseMs: rounds.every(({ longestPauseMs }) => longestPauseMs === null)
      ? null
      : most(({ longestPauseMs }) => longestPauseMs ?? 0),
    recoveredMs:
      recovered.length === 0
        ? null
        : { median: recovered[Math.floor(recovered.length / 2)] as number, longest: recovered.at(-1) as number },
  }
}

/** One line for the terminal. */
export function describe({ key, store, seed, ...row }: Entry): string {
  const { faults, failedRounds, acknowledged, lost, repeated, mostRepeated, repeatBound, longestPauseMs, recoveredMs } = row
  const facts = [
    `${faults} faults`,
    `${acknowledged} acknowledged`,
    `${lost} lost`,
    `${repeated} arrived twice (at most ${mostRepeated} of ${repeatBound} after one fault)`,
    ...(longestPauseMs === null ? [] : [`longest pause ${seconds(longestPauseMs)}`]),
    ...(recoveredMs === null ? [] : [`recovered in ${seconds(recoveredMs.median)}, at most ${seconds(recoveredMs.longest)}`]),
  ]
  return `${failedRounds === 0 ? '✔' : '✗'} ${key} on ${store}, seed ${seed}: ${facts.join(', ')}`
}

/** Replaces these entries, and writes the page. Returns its path. */
export function writeLedger(entries: readonly Entry[]): string {
  const date = new Date().toISOString().slice(0, 10)
  const machine = machineName()
  const isNew = (stored: Entry): boolean => entries.some(({ key, store }) => key === stored.key && store === stored.store)
  const all = [...storedEntries().filter((stored) => !isNew(stored)), ...entries.map((entry) => ({ ...entry, date, machine }))]
  const order = (entry: Entry): number => FAULTS.findIndex(({ key }) => key === entry.key)
  all.sort((a, b) => order(a) - order(b) || b.store.localeCompare(a.store))
  writeFileSync(DATA, `${JSON.stringify(all, null, 2)}\n`)
  writeFileSync(PAGE, ledgerPage())
  return PAGE
}

function storedEntries(): StoredEntry[] {
  return JSON.parse(readFileSync(DATA, 'utf8')) as StoredEntry[]
}

export function writtenPage(): string {
  return readFileSync(PAGE, 'utf8')
}

export function ledgerPage(): string {
  const entries = storedEntries()
  const rows = FAULTS.flatMap(({ key, title, stores }) =>
    stores.map((store) => {
      const entry = entries.find((one) => one.key === key && one.store === store)
      return [title, STORE_NAMES[store], ...(entry === undefined ? NOT_RUN : cells(entry))]
    }),
  )
  const machines = [...new Set(entries.map(({ machine }) => machine))]
  return `${[
    '# Fault ledger',
    '<!-- Written by npm run faults -- --write (e2e/faults/ledger.ts). Do not edit. -->',
    INTRODUCTION,
    table(
      [
        'Fault',
        'Store',
        'Times caused',
        'Acknowledged',
        'Lost',
        'Arrived twice',
        'Most after one fault',
        'Longest pause',
        'Recovered: median, longest',
        'Date, seed',
      ],
      rows,
    ),
    COLUMNS,
    `Machine${machines.length === 1 ? '' : 's'}: ${machines.join('; ')}. Other work ran on it at the same time, so times are upper limits.`,
    '## How each fault is caused',
    table(
      ['Fault', '`--only`', 'How', 'Remarks'],
      FAULTS.map(({ title, key, how, note = '' }) => [title, `\`${key}\``, how, note]),
    ),
    MIX,
  ].join('\n\n')}\n`
}

const STORE_NAMES: Readonly<Record<StoreKind, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' }
const NOT_RUN = ['0', '', '', '', '', '', '', 'not run yet']

function cells(entry: StoredEntry): string[] {
  const { faults, failedRounds, acknowledged, lost, repeated, mostRepeated, repeatBound, longestPauseMs, recoveredMs, date, seed } = entry
  return [
    number(faults),
    number(acknowledged),
    failedRounds === 0 ? `**${lost}**` : `**${lost}**; ${failedRounds} rounds failed`,
    number(repeated),
    `${number(mostRepeated)} of ${number(repeatBound)}`,
    longestPauseMs === null ? '' : seconds(longestPauseMs),
    recoveredMs === null ? '' : `${seconds(recoveredMs.median)}, ${seconds(recoveredMs.longest)}`,
    `${date}, ${seed}`,
  ]
}

function number(value: number): string {
  return value.toLocaleString('en-US')
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

const INTRODUCTION = `What Switchyard survives, measured. \`npm run faults\` starts real nodes, sends messages all the time, causes a fault at random moments, and then compares every acknowledgement that a sender got with what receivers got and with the books. You can run it yourself:

\`\`\`sh
npm run faults -- --minutes 10                       # every fault, for ten minutes in all
npm run faults -- --only node-killed --seed 4711     # one fault, with a seed
npm run faults -- --list                             # all faults
\`\`\``

const COLUMNS = `**Acknowledged** counts messages whose call was answered with 200; each of them goes to five destinations. **Lost** counts acknowledged messages that did not reach a destination, or whose outcome is missing in the books. **Arrived twice** counts deliveries of which a receiver accepted more than one copy; the next column has the most that one fault caused at one destination, and the limit: what was in flight to the destination (20 requests, here with up to 15 messages each), and 100 for each node that the fault hits, whose outcome was not recorded yet. **Longest pause** is the longest time in which no call was answered with 200. **Recovered** is the time from the end of the fault until every message acknowledged until then had arrived everywhere. The **seed** is that of the first round; the next round has the next number.`

const MIX = `## What runs meanwhile

Every message goes to five destinations: a webhook that gets messages one by one, one that gets batches, one with a transformation that drops a tenth of the messages, one that refuses a tenth for good and sends dead letters for them to a sixth destination, and an integration (Slack). Receivers answer after 5 to 60 ms, and fail 2 % of the requests with 503, so that something is always in flight and something always waits for a retry. On PostgreSQL, two nodes share the load unless a row says otherwise.`
