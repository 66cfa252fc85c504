// Entry of `npm run bench:client`: reads the options, runs every workload for every client in alternating order, prints the report.
// It writes into the repository only the file that --markdown names.

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { ClientName } from './clients.ts'
import { measure } from './measure.ts'
import { installClients, measureLoadTimes } from './packages.ts'
import { machineText, NOT_MEASURED, packagesText, targetsText, workloadText } from './report.ts'
import { type Results, type Round, targets } from './targets.ts'
import { DEADLINES, loopLimitMs, WORKLOAD_NAMES, type Workload, workloads } from './workloads.ts'

const HELP = `Compares @switchyard/node with the clients of Segment, PostHog and RudderStack.

usage: npm run bench:client -- [options]

  --rounds N       rounds of each workload (5)
  --quick          2 rounds and fewer calls: checks that it runs; the numbers are not reliable
  --only NAME      one part: ${[...WORKLOAD_NAMES, 'load'].join(', ')} (repeatable)
  --all            run the million calls with the other clients too: takes minutes more and gigabytes of memory
  --check          exit 1 when a target is missed
  --markdown FILE  write the report there as well
  --help           this text
`

/** No further round starts after this long, so that the benchmark takes less than ten minutes on a slow machine. */
const BUDGET_MS = 6.5 * 60_000
const BUDGET_WITH_MILLION_MS = 8.5 * 60_000

const options = readOptions()
if (options.help) {
  process.stdout.write(HELP)
  process.exit()
}
const rounds = Number(options.rounds ?? (options.quick ? 2 : 5))
const parts: string[] = [...WORKLOAD_NAMES, 'load']
const unknown = (options.only ?? []).filter((name) => !parts.includes(name))
if (!Number.isInteger(rounds) || rounds < 1 || unknown.length > 0) {
  console.error(
    unknown.length > 0
      ? `unknown part: ${unknown.join(', ')}; the parts are ${parts.join(', ')}`
      : '--rounds must be a whole number of at least 1',
  )
  process.exit(2)
}
const isWanted = (name: string): boolean => !options.only || options.only.includes(name)

const startedAt = performance.now()
const machine = machineText()
const installed = installClients()
if (isWanted('load')) console.error('load times …')
const loadTimes = isWanted('load') ? measureLoadTimes(installed, options.quick ? 5 : 15) : undefined
const plan = workloads({ rounds, isQuick: options.quick, isAll: options.all }).filter(({ name }) => isWanted(name))
const results: Results = {}
// The million comes last and in separate rounds, because no other client runs it by default.
await runRounds(
  plan.filter(({ name }) => name !== 'million'),
  BUDGET_MS,
)
await runRounds(
  plan.filter(({ name }) => name === 'million'),
  BUDGET_WITH_MILLION_MS,
)

const judged = targets(results, installed, loadTimes)
const report = [
  '# Client benchmark',
  machine,
  `Median (min–max) of the rounds; ratios are computed within a round, above 1 is faster than Segment. "The loop yields" means a turn of
the event loop (setImmediate) after every 50 calls.${options.quick ? ' A quick run: fewer calls than the targets assume.' : ''}`,
  '## Targets',
  targetsText(judged),
  '## Packages',
  packagesText(installed, loadTimes),
  ...plan.flatMap((workload) => [`## ${workload.title}`, workloadText(workload, results[workload.name] ?? [])]),
  '## Not measured',
  NOT_MEASURED,
].join('\n\n')
console.log(report)
if (options.markdown) writeFileSync(options.markdown, `${report}\n`)
process.exit(options.check && judged.some(({ isMet }) => isMet === false) ? 1 : 0)

function readOptions() {
  try {
    return parseArgs({
      options: {
        rounds: { type: 'string' },
        quick: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true },
        all: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
        markdown: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`)
    process.exit(2)
  }
}

async function runRounds(plan: Workload[], budgetMs: number): Promise<void> {
  for (let index = 0; index < Math.max(0, ...plan.map((workload) => workload.rounds)); index += 1) {
    if (index > 0 && performance.now() - startedAt > budgetMs) {
      console.error('Time limit reached: no further rounds.')
      return
    }
    for (const workload of plan) {
      if (index < workload.rounds) await runRound(workload, index)
    }
  }
}

async function runRound(workload: Workload, index: number): Promise<void> {
  const { name, clients, calls, flushAt, yieldEvery, nodeOptions } = workload
  const earlier = results[name] ?? []
  const round: Round = {}
  results[name] = [...earlier, round]
  // Starts with a different client each round, so that no client always runs right after the same other one.
  const turn = index % clients.length
  for (const client of [...clients.slice(turn), ...clients.slice(0, turn)]) {
    if (isHopeless(client, calls, earlier)) continue
    const job = { client, from: installed[client].from, calls, yieldEvery, loopLimitMs: loopLimitMs(client) }
    const run = await measure(flushAt === undefined ? job : { ...job, flushAt }, DEADLINES, nodeOptions)
    round[client] = run
    const seconds = ((run.deliveredMs ?? 0) / 1_000).toFixed(1)
    console.error(
      `round ${index + 1}/${workload.rounds}  ${name}  ${client}  ${run.received.distinct} received in ${seconds} s  ${run.ending}`,
    )
  }
}

/** A peer that could not make all calls in time is not run again, because it would only use up the time for the others. */
function isHopeless(client: ClientName, calls: number, earlier: Round[]): boolean {
  if (client === 'switchyard' || client === 'segment') return false
  return earlier.some((round) => (round[client]?.callsMade ?? calls) < calls)
}
