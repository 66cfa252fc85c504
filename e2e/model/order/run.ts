// Checks the model of ordered deliveries, and every mutant of it, and prints what was found. `npm run model` runs it.

import { CAN_END, check } from '../checker.ts'
import { ORDER_MUTANT_BOUNDS, ORDER_MUTANTS, type OrderMutant } from './mutants.ts'
import { PROMISES } from './promises.ts'
import { createOrderProtocol } from './protocol.ts'

const bounds = Object.entries(ORDER_MUTANT_BOUNDS).map(([name, value]) => `${name}: ${value}`)
const { states, steps, depth, violation } = check(createOrderProtocol(ORDER_MUTANT_BOUNDS))
console.log(`Ordered deliveries, ${bounds.join(', ')}\n\n${states} states, ${steps} steps, depth ${depth}\n`)
for (const name of [...PROMISES, CAN_END]) console.log(`${violation?.invariant === name ? '✖' : '✔'} ${name}`)
let missed = violation === null ? 0 : 1
console.log('\nMutants of the protocol, each with what catches it and after how many steps:\n')
for (const [mutant, by] of Object.entries(ORDER_MUTANTS) as [OrderMutant, string][]) {
  const { violation: caught } = check(createOrderProtocol(ORDER_MUTANT_BOUNDS, mutant))
  if (caught?.invariant !== by) missed++
  console.log(
    `${caught?.invariant === by ? '✔' : '✖'} ${mutant}: ${caught === null ? 'not caught' : `${caught.invariant} (${caught.trace.length})`}`,
  )
}
console.log('')
process.exitCode = missed === 0 ? 0 : 1
