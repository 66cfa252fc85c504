// Checks the model of ordered deliveries, and every mutant of it, and prints what was found. `npm run model` runs it.

import { CAN_END, check } from '../checker.ts'
import {
  ORDER_MUTANT_BOUNDS,
  ORDER_MUTANTS,
  type OrderMutant,
  SHARED_MUTANT_BOUNDS,
  SHARED_MUTANTS,
  UNDIVIDED_MUTANT_BOUNDS,
  UNDIVIDED_MUTANTS,
} from './mutants.ts'
import { PROMISES } from './promises.ts'
import { createOrderProtocol } from './protocol.ts'
import type { Bounds } from './state.ts'

/** Returns how much is not as it should be. */
function checkAll(title: string, bounds: Bounds, mutants: Readonly<Record<string, string>>): number {
  const { states, steps, depth, violation } = check(createOrderProtocol(bounds))
  const listed = Object.entries(bounds).map(([name, value]) => `${name}: ${String(value)}`)
  console.log(`${title}, ${listed.join('; ')}\n\n${states} states, ${steps} steps, depth ${depth}\n`)
  for (const name of [...PROMISES, CAN_END]) console.log(`${violation?.invariant === name ? '✖' : '✔'} ${name}`)
  let wrong = violation === null ? 0 : 1
  console.log('\nMutants of the protocol, each with what catches it and after how many steps:\n')
  for (const [mutant, by] of Object.entries(mutants)) {
    const { violation: caught } = check(createOrderProtocol(bounds, mutant as OrderMutant))
    if (caught?.invariant !== by) wrong++
    console.log(
      `${caught?.invariant === by ? '✔' : '✖'} ${mutant}: ${caught === null ? 'not caught' : `${caught.invariant} (${caught.trace.length})`}`,
    )
  }
  console.log('')
  return wrong
}

const wrong =
  checkAll('Ordered deliveries', ORDER_MUTANT_BOUNDS, ORDER_MUTANTS) +
  checkAll('Shipments that are not divided', UNDIVIDED_MUTANT_BOUNDS, UNDIVIDED_MUTANTS) +
  checkAll('Shipments with messages of two keys', SHARED_MUTANT_BOUNDS, SHARED_MUTANTS)
process.exitCode = wrong === 0 ? 0 : 1
