// Entry of `npm run faults`: causes faults until the time is over, and prints a line for each round. With --write, it writes the results to
// docs/operations/fault-ledger.md.

import { parseArgs } from 'node:util'
import { addRound, combine, describe, type Entry, removeRounds, writePage } from './ledger.ts'
import { MUTANTS } from './mutants/mutants.ts'
import { describeVerdict, runMutant } from './mutants/run-mutants.ts'
import type { Fault, RoundResult } from './rounds/fault.ts'
import { type Row, runFaults } from './rounds/schedule.ts'
import { FAULTS } from './rows/faults.ts'
import type { StoreKind } from './system/system.ts'

const HELP = `Causes faults under load, and compares every acknowledgement with what receivers accepted and with the ledger.

usage: npm run faults -- [options]

  --minutes N    total time, shared by all faults (default: 10)
  --runs N       cause each fault this many times on each store, then stop
  --seed N       seed of the first round; the next round has the next number (default: random)
  --only KEY,…   cause only these faults
  --store NAME   sqlite or postgres (default: both)
  --jobs N       rounds to run at the same time (default: 1)
  --write        add the rounds of this run to docs/operations/fault-ledger.md
  --replace      first remove the earlier rounds of these faults from it
  --page         only write that page again, from the stored results
  --list         list the faults
  --mutants      run faulty versions of the service, each with one fault, and check that the audit finds them;
                 with --only NAME,… only these
  --help         print this text

For each failed round, the command that repeats it is printed. The exit code is 1 if a round failed, or a mutant was not
caught.
`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    runs: { type: 'string' },
    seed: { type: 'string' },
    only: { type: 'string', multiple: true },
    store: { type: 'string' },
    jobs: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
    replace: { type: 'boolean', default: false },
    page: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(HELP)
  process.exit()
}
if (values.page) {
  console.log(`wrote ${writePage()}`)
  process.exit()
}
if (values.list) {
  const width = Math.max(...FAULTS.map(({ key }) => key.length))
  for (const { key, title, stores } of FAULTS) console.log(`${key.padEnd(width)}  ${title} (${stores.join(', ')})`)
  process.exit()
}

const keys = (values.only ?? []).flatMap((names) => names.split(','))
if (values.mutants) {
  await runMutants()
  process.exit()
}

const minutes = positive('minutes', values.minutes)
const mostRuns = values.runs === undefined ? Number.POSITIVE_INFINITY : whole('runs', values.runs)
const firstSeed = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : whole('seed', values.seed)
const jobs = whole('jobs', values.jobs)
const unknown = keys.filter((key) => !FAULTS.some((fault) => fault.key === key))
if (unknown.length > 0) fail(`Unknown fault: ${unknown.join(', ')}. The faults are: ${FAULTS.map(({ key }) => key).join(', ')}.`)
if (values.store !== undefined && values.store !== 'sqlite' && values.store !== 'postgres') fail('--store must be sqlite or postgres.')

const chosen = FAULTS.filter(({ key }) => keys.length === 0 || keys.includes(key))
const rows = chosen.flatMap((fault) => {
  const why = fault.unavailable?.()
  if (why !== undefined) console.log(`${fault.key}: skipped: ${why}`)
  const stores = why === undefined ? fault.stores : []
  return stores.filter((store) => values.store === undefined || values.store === store).map((store) => ({ fault, store }))
})
if (rows.length === 0) fail('There is no fault to cause: check --only and --store.')
console.log(`seed ${firstSeed}, ${minutes} minutes, ${rows.length} rows`)

let failures = 0
if (values.replace) removeRounds(rows)
const done = await runFaults({ rows, minutes, seed: firstSeed, mostFaults: mostRuns, jobs, onRound: report, say: progress })

const entries: Entry[] = done
  .filter(({ rounds }) => rounds.length > 0)
  .map(({ fault, store, rounds }) => entryOf(fault, store, rounds, firstSeed))
console.log()
for (const entry of entries) console.log(describe(entry))
if (failures > 0) console.log(`\n${failures} rounds failed`)
process.exitCode = failures > 0 ? 1 : 0

function entryOf({ key }: Fault, store: StoreKind, rounds: readonly RoundResult[], seed: number): Entry {
  return { key, store, seed, ...combine(rounds) }
}

function report({ fault, store }: Row, { seed, result, ms }: { seed: number; result: RoundResult; ms: number }): void {
  progress('')
  // After each round, so that an interrupted run has written what it did.
  if (values.write) addRound(fault, store, seed, result)
  console.log(`${describe(entryOf(fault, store, [result], seed))} (${(ms / 1_000).toFixed(0)} s)`)
  if (result.problems.length === 0) return
  failures++
  for (const problem of result.problems) console.log(`  ✗ ${problem.replaceAll('\n', '\n    ')}`)
  console.log(`  to repeat: npm run faults -- --only ${fault.key} --store ${store} --seed ${seed} --runs ${fault.perRound}`)
}

/** Prints a line for each mutant. Sets the exit code to 1 if one is not caught. */
async function runMutants(): Promise<void> {
  const missing = keys.filter((name) => !MUTANTS.some((mutant) => mutant.name === name))
  if (missing.length > 0) fail(`Unknown mutant: ${missing.join(', ')}. The mutants are: ${MUTANTS.map(({ name }) => name).join(', ')}.`)
  const some = MUTANTS.filter(({ name }) => keys.length === 0 || keys.includes(name))
  let caught = 0
  for (const mutant of some) {
    const verdict = await runMutant(mutant)
    console.log(describeVerdict(verdict))
    if (verdict.isCaught) caught++
  }
  console.log(`\n${caught} of ${some.length} mutants were caught`)
  process.exitCode = caught === some.length ? 0 : 1
}

/** The state of the running round, on a line that is overwritten. */
function progress(text: string): void {
  if (!process.stdout.isTTY || jobs > 1) return
  process.stdout.write(`\r\u001b[2K${text.slice(0, (process.stdout.columns ?? 80) - 1)}`)
}

function positive(name: string, text: string): number {
  const value = Number(text)
  return value > 0 ? value : fail(`--${name} must be a number above 0.`)
}

function whole(name: string, text: string): number {
  const value = Number(text)
  return Number.isInteger(value) && value >= 1 ? value : fail(`--${name} must be a whole number of at least 1.`)
}

function fail(text: string): never {
  console.error(text)
  process.exit(2)
}
