// Runs a round of the fault ledger with a mutant. The round must find a problem, and the problem must be the expected one.

import { EMPTY_RESULT, type Fault, type RoundResult } from '../rounds/fault.ts'
import { FAULTS } from '../rows/faults.ts'
import { seededRandom } from '../system/random.ts'
import type { Mutant } from './mutants.ts'

/** What a round said about a mutant. */
export interface MutantVerdict {
  mutant: Mutant
  isCaught: boolean
  /** The expected problem or, if the mutant was not caught, the first one. Undefined if the round passed. */
  problem: string | undefined
  result: RoundResult
  ms: number
}

const FAULTS_IN_ROUND = 3
const SEED = 1
/** Many mutants never deliver something, so waiting longer would only take time. */
const PATIENCE_MS = 30_000
/** No further fault is caused after this time. */
const MOST_MS = 90_000

export async function runMutant(mutant: Mutant): Promise<MutantVerdict> {
  const { name, store, expected, faults = FAULTS_IN_ROUND, seed = SEED } = mutant
  const sinceMs = performance.now()
  const result = await faultOf(mutant)
    .round({
      store,
      seed,
      random: seededRandom(seed),
      faults,
      deadlineMs: sinceMs + MOST_MS,
      patienceMs: PATIENCE_MS,
      execArgv: ['--import', new URL(`apply-mutant.ts?name=${name}`, import.meta.url).href],
      say: () => {},
    })
    .catch((error: Error): RoundResult => ({ ...EMPTY_RESULT, problems: [error.message] }))
  const found = result.problems.find((problem) => expected.test(problem))
  const problem = (found ?? result.problems[0])?.split('\n')[0]
  return { mutant, isCaught: found !== undefined, problem, result, ms: performance.now() - sinceMs }
}

export function faultOf({ name, fault: key }: Mutant): Fault {
  const fault = FAULTS.find((one) => one.key === key)
  if (fault === undefined) throw new Error(`Mutant ${name}: there is no fault ${key}.`)
  return fault
}

/** One line for the terminal. */
export function describeVerdict({ mutant, isCaught, problem, result, ms }: MutantVerdict): string {
  const { name, fault, store } = mutant
  const what = isCaught ? 'caught' : problem === undefined ? 'NOT CAUGHT' : 'NOT CAUGHT, but another problem was found'
  const round = `${fault} on ${store}, ${result.faults} faults, ${result.lost} lost, ${(ms / 1_000).toFixed(0)} s`
  return `${isCaught ? '✔' : '✗'} ${name}: ${what} (${round})${problem === undefined ? '' : `: ${problem.slice(0, 300)}`}`
}
