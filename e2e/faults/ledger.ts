// The published result: ledger.json has one line for each round, with its date and seed, and docs/operations/fault-ledger.md is written from it. A run
// adds its rounds; with --replace, it first removes the earlier rounds of its rows.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { table } from '../../scripts/reference/markdown.ts'
import { machineName } from './machine.ts'
import type { Fault, RoundResult } from './rounds/fault.ts'
import { FAULTS } from './rows/faults.ts'
import type { StoreKind } from './system/system.ts'

/** The combined results of all rounds of a row. */
export interface Combined extends Omit<RoundResult, 'recoveredMs' | 'problems'> {
  rounds: number
  failedRounds: number
  recoveredMs: { median: number; longest: number } | null
}

export interface Entry extends Combined {
  key: string
  store: StoreKind
  seed: number
}

/** One round, on one line of ledger.json. */
interface StoredRound extends Omit<RoundResult, 'problems'> {
  key: string
  store: StoreKind
  seed: number
  date: string
  machine: string
  /** The first thing that was wrong; null if the round passed. */
  problem: string | null
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
    ordered: rounds.every(({ ordered }) => ordered === null)
      ? null
      : { checked: sum(({ ordered }) => ordered?.checked ?? 0), outOfOrder: sum(({ ordered }) => ordered?.outOfOrder ?? 0) },
    tables: rounds.every(({ tables }) => tables === null)
      ? null
      : { checked: sum(({ tables }) => tables?.checked ?? 0), wrong: sum(({ tables }) => tables?.wrong ?? 0) },
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
  const { faults, failedRounds, acknowledged, lost, ordered, tables, repeated, mostRepeated, repeatBound, longestPauseMs, recoveredMs } =
    row
  const facts = [
    `${faults} faults`,
    `${acknowledged} acknowledged`,
    `${lost} lost`,
    ...(ordered === null ? [] : [`${ordered.outOfOrder} of ${ordered.checked} out of order`]),
    ...(tables === null ? [] : [`${tables.wrong} of ${tables.checked} rows of warehouses wrong`]),
    `${repeated} arrived twice (at most ${mostRepeated} after one fault, limit ${repeatBound})`,
    ...(longestPauseMs === null ? [] : [`longest pause ${seconds(longestPauseMs)}`]),
    ...(recoveredMs === null ? [] : [`recovered in ${seconds(recoveredMs.median)} (median), at most ${seconds(recoveredMs.longest)}`]),
  ]
  return `${failedRounds === 0 ? '✔' : '✗'} ${key} on ${store}, seed ${seed}: ${facts.join(', ')}`
}

/** Adds a round, and writes the page. */
export function addRound({ key }: Fault, store: StoreKind, seed: number, { problems, ...result }: RoundResult): void {
  const date = new Date().toISOString().slice(0, 10)
  const [problem = null] = problems.map((text) => text.split('\n')[0] as string)
  writeRounds([
    ...storedRounds(),
    { key, store, seed, date, machine: machineName(), ...result, recoveredMs: result.recoveredMs.map(Math.round), problem },
  ])
}

/** Removes the rounds of these rows, for a run that replaces them. */
export function removeRounds(rows: readonly { fault: Fault; store: StoreKind }[]): void {
  const isOld = (round: StoredRound): boolean => rows.some(({ fault, store }) => fault.key === round.key && store === round.store)
  writeRounds(storedRounds().filter((round) => !isOld(round)))
}

/** Writes the page from the stored rounds. Returns its path. */
export function writePage(): string {
  writeFileSync(PAGE, ledgerPage())
  return PAGE
}

function writeRounds(rounds: StoredRound[]): void {
  const order = ({ key }: StoredRound): number => FAULTS.findIndex((fault) => fault.key === key)
  rounds.sort((a, b) => order(a) - order(b) || b.store.localeCompare(a.store) || a.seed - b.seed)
  const lines = rounds.map((round) => JSON.stringify({ ...round, ordered: round.ordered ?? undefined, tables: round.tables ?? undefined }))
  writeFileSync(DATA, lines.length === 0 ? '[]\n' : `[\n${lines.join(',\n')}\n]\n`)
  writePage()
}

function storedRounds(): StoredRound[] {
  const rounds = JSON.parse(readFileSync(DATA, 'utf8')) as (Omit<StoredRound, 'ordered' | 'tables'> & Partial<StoredRound>)[]
  // Rounds without ordered destinations or warehouses say nothing about these.
  return rounds.map((round) => Object.assign(round, { ordered: round.ordered ?? null, tables: round.tables ?? null }))
}

export function writtenPage(): string {
  return readFileSync(PAGE, 'utf8')
}

export function ledgerPage(): string {
  const stored = storedRounds()
  // The column of tables is left out if no round has a value, and so are faults that were never caused.
  const hasTables = stored.some(({ tables }) => tables !== null)
  const faults = FAULTS.filter(({ key }) => stored.some((round) => round.key === key))
  const rows = faults.flatMap((fault) =>
    fault.stores.map((store) => ({
      fault,
      store: STORE_NAMES[store],
      rounds: stored.filter((round) => round.key === fault.key && round.store === store),
    })),
  )
  const machines = [...new Set(stored.map(({ machine }) => machine))]
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
        'Out of order',
        ...(hasTables ? ['Wrong in tables'] : []),
        'Arrived twice',
        'Most after one fault',
        'Longest pause',
        'Recovered: median, longest',
      ],
      rows.map(({ fault, store, rounds }) => [
        fault.title,
        store,
        ...(rounds.length === 0 ? ['not run yet', ...Array(hasTables ? 8 : 7).fill('')] : cells(rounds, hasTables)),
      ]),
    ),
    ...(hasTables ? [`${COLUMNS}\n${TABLES_COLUMN}`] : [COLUMNS]),
    ...(machines.length === 0
      ? []
      : [`Measured on: ${machines.join('; ')}. Other programs ran at the same time, which makes the times longer.`]),
    '## How each fault is caused',
    table(
      ['Fault', '`--only`', 'How it is caused', 'Remarks and limits'],
      faults.map(({ title, key, how, note = '' }) => [title, `\`${key}\``, how, note]),
    ),
    MIX,
    ROUNDS,
    table(
      ['`--only`', 'Store', 'Dates', 'Seeds'],
      rows.map(({ fault, store, rounds }) => [
        `\`${fault.key}\``,
        store,
        [...new Set(rounds.map(({ date }) => date))].sort().join(', '),
        ranges(rounds.map(({ seed }) => seed)),
      ]),
    ),
    MODEL,
  ].join('\n\n')}\n`
}

const STORE_NAMES: Readonly<Record<StoreKind, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

function cells(rounds: readonly StoredRound[], hasTables: boolean): string[] {
  const all = combine(rounds.map(({ problem, ...round }) => ({ ...round, problems: problem === null ? [] : [problem] })))
  const { faults, failedRounds, acknowledged, lost, ordered, tables, repeated, mostRepeated, repeatBound, longestPauseMs, recoveredMs } =
    all
  return [
    number(faults),
    number(acknowledged),
    failedRounds === 0 ? `**${lost}**` : `**${lost}**; failed rounds: ${failedRounds}`,
    ordered === null ? '' : `**${number(ordered.outOfOrder)}** of ${number(ordered.checked)}`,
    ...(hasTables ? [tables === null ? '' : `**${number(tables.wrong)}** of ${number(tables.checked)}`] : []),
    number(repeated),
    `${number(mostRepeated)} (limit ${number(repeatBound)})`,
    longestPauseMs === null ? '' : seconds(longestPauseMs),
    recoveredMs === null ? '' : `${seconds(recoveredMs.median)}, ${seconds(recoveredMs.longest)}`,
  ]
}

/** Sorted numbers as text, with consecutive ones as a range. */
function ranges(numbers: readonly number[]): string {
  const found: [first: number, last: number][] = []
  for (const value of numbers) {
    const current = found.at(-1)
    if (current?.[1] === value - 1) current[1] = value
    else found.push([value, value])
  }
  return found.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(', ')
}

function number(value: number): string {
  return value.toLocaleString('en-US')
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

const INTRODUCTION = `This page shows what happened when parts of the system failed. \`npm run faults\` starts real nodes, sends messages continuously, and causes a fault many times, at random moments. Then it compares every acknowledgement that a sender got with what receivers accepted, with the stored deliveries and with the ledger. You can run it yourself:

\`\`\`sh
npm run faults -- --minutes 10                       # all faults, ten minutes in total
npm run faults -- --only node-killed --seed 4711     # one fault, with a given seed
npm run faults -- --list                             # the list of faults
\`\`\``

const COLUMNS = `The columns:

- **Acknowledged**: messages whose call was answered with 200. In the rows about clients: messages whose call of the client library has returned (with a spool), or whose callback reported success (without).
- **Lost**: acknowledged messages that did not reach a destination, or whose outcome is not recorded.
- **Out of order**: messages at two [ordered destinations](../guide/order.md) for which a promise was broken, and how many were checked. Every two messages of a key are compared, if one was acknowledged before the other was sent or if they were in the same call. Empty: the rounds were run before there were ordered destinations. Rounds of both kinds are added up in the other columns.
- **Arrived twice**: deliveries of which a receiver accepted more than one copy, because of a fault or because an attempt had timed out on the busy machine.
- **Most after one fault**: the most copies of this kind that one fault caused at one destination, and the limit. The limit is what can be in flight to a destination (20 requests, some of them with up to 15 messages), and for each affected node 100 messages whose response had arrived but was not recorded yet. If the network to PostgreSQL fails, so that outcomes are not recorded and no error is reported either, it is 1,000 messages instead of 100: a node sends for one second more. If the store reports an error, such as a full disk, a node stops sending at once. It is 0 if the fault must not cause any.
- **Longest pause**: the longest time in which no call was answered with 200.
- **Recovered**: the time from the end of a fault until everything that was acknowledged before had arrived at every destination. It is measured for every fourth fault; the others are followed by the next fault sooner.`

const TABLES_COLUMN =
  '- **Wrong in tables**: rows that are missing from the tables of [warehouses](../guide/lake.md) or are there twice, and how many rows there must be. At the end of a round, the tables are read: the files that the manifests of the lakes list, and PostgreSQL with a query. Every message must be in each of its tables exactly once. Empty: the rounds had no warehouses.'

const MIX = `## The load

In most rows, every message goes to seven destinations: a webhook that gets single messages, one that gets batches, one with a transformation that drops a tenth of the messages, one whose receiver refuses a tenth permanently (their dead letters go to another destination), two that are ordered by account (one gets single messages, of which its receiver refuses a tenth permanently, the other gets batches), and an integration (Slack). Messages are of 41 accounts, one of which has a twentieth of them. Receivers answer after 5 to 60 ms, and answer 2 % of the requests with 503 (8 % at the ordered destinations), so that some messages are always in flight and some always wait for a retry. One call in 60 has a context of 24 KB, which is part of each of its 30 messages when they are sent, and one more message that is too large with this context and must be rejected; so the receivers get about 0.7 MB for 30 KB. SQLite has one node. On PostgreSQL, two nodes share the load unless the row says otherwise. In these rows, three users with a source and destinations of their own are deleted in every round, at the time of the first faults; afterwards, nothing of them may be left in the API or in the tables, down to the attempts. Everything runs on one machine. A power failure, which also loses data that was written but not synced to disk, is not covered.`

const ROUNDS = `## Rounds

A round has its own nodes and store, up to about 25 faults, and a seed, with which it can be repeated.`

const MODEL = `## The protocol of the nodes, as a model

The protocol by which nodes share deliveries is also [checked as a model](../decisions/0067-model-of-the-nodes.md): every order of its steps, for a few nodes, messages and faults, with wrong variants that must all be caught. \`npm run model\` prints what was checked. A [soak test](soak.md) holds a load for hours.`
