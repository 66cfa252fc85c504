// Checks the model of the protocol, and every mutant of it, and prints what was found. `npm run model -- --help` lists the options.

import { parseArgs } from 'node:util'
import { CAN_END, check, type Violation } from './checker.ts'
import { INVARIANTS } from './invariants.ts'
import { MUTANT_BOUNDS, MUTANTS, type Mutant } from './mutants.ts'
import { createProtocol } from './protocol.ts'
import type { Bounds, State } from './state.ts'

const HELP = `Checks the protocol by which nodes share deliveries, in every state that can be reached within the bounds.

  npm run model -- [options]

  --nodes N        nodes (2)
  --messages N     messages (2)
  --faults N       faults that may happen: a node is killed, freezes or is cut off, or an answer is lost (1)
  --refusals N     messages that the receiver may refuse (1)
  --mutant NAME    check this mutant only, and print the steps that lead to the violation
  --help           print this text

Two nodes, two messages and two faults take about 10 s and 0.5 GB; every further fault takes about ten times as much.

Mutants:
${Object.keys(MUTANTS)
  .map((name) => `  ${name}`)
  .join('\n')}
`

function main(): number {
  const { values } = parseArgs({
    options: {
      nodes: { type: 'string', default: '2' },
      messages: { type: 'string', default: '2' },
      faults: { type: 'string', default: '1' },
      refusals: { type: 'string', default: '1' },
      mutant: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(HELP)
    return 0
  }
  const bounds: Bounds = {
    nodes: count('nodes', values.nodes, 1, 4),
    messages: count('messages', values.messages, 1, 4),
    faults: count('faults', values.faults, 0, 9),
    refusals: count('refusals', values.refusals, 0, 9),
  }
  if (values.mutant !== undefined) return checkMutant(values.mutant)
  console.log(
    `nodes: ${bounds.nodes}, messages: ${bounds.messages}, faults: at most ${bounds.faults}, refusals: at most ${bounds.refusals}\n`,
  )
  const started = performance.now()
  const { states, steps, depth, violation } = check(createProtocol(bounds))
  console.log(`${states} states, ${steps} steps, depth ${depth}, ${((performance.now() - started) / 1_000).toFixed(1)} s\n`)
  for (const name of [...Object.keys(INVARIANTS), CAN_END]) console.log(`${violation?.invariant === name ? '✖' : '✔'} ${name}`)
  if (violation !== null) printTrace(violation)
  console.log('\nMutants of the protocol, each with what catches it and after how many steps:\n')
  let missed = violation === null ? 0 : 1
  for (const [mutant, by] of Object.entries(MUTANTS) as [Mutant, string][]) {
    const { violation: caught } = check(createProtocol(MUTANT_BOUNDS, mutant))
    if (caught?.invariant !== by) missed++
    console.log(
      `${caught?.invariant === by ? '✔' : '✖'} ${mutant}: ${caught === null ? 'not caught' : `${caught.invariant} (${caught.trace.length})`}`,
    )
  }
  return missed === 0 ? 0 : 1
}

function checkMutant(name: string): number {
  if (!(name in MUTANTS)) throw new Error(`unknown mutant "${name}"; --help lists them`)
  const { violation } = check(createProtocol(MUTANT_BOUNDS, name as Mutant))
  if (violation === null) {
    console.log('not caught')
    return 1
  }
  console.log(`violates: ${violation.invariant}`)
  printTrace(violation)
  return 0
}

function printTrace({ trace, state }: Violation<State>): void {
  for (const [at, step] of trace.entries()) console.log(`${String(at + 1).padStart(4)}. ${step}`)
  console.log(`\nMessages in this state:\n${state.messages.map((message) => JSON.stringify(message)).join('\n')}`)
}

function count(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new Error(`--${name} must be a whole number from ${least} to ${most}, not "${text}"`)
}

try {
  process.exitCode = main()
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 2
}
