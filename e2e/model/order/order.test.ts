// Explores the model of ordered deliveries completely for a few nodes, messages and faults; and shows that it notices a wrong protocol.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG } from '../../system/long-tests.ts'
import { check } from '../checker.ts'
import { ORDER_MUTANT_BOUNDS, ORDER_MUTANTS, type OrderMutant } from './mutants.ts'
import { createOrderProtocol } from './protocol.ts'
import type { Bounds } from './state.ts'

const BOUNDS: Bounds[] = [
  { nodes: 2, messages: 2, faults: 1, refusals: 2 },
  { nodes: 2, messages: 3, faults: 1, refusals: 0 },
  { nodes: 3, messages: 2, faults: 1, refusals: 1 },
]
const LONG_BOUNDS: Bounds[] = [
  { nodes: 2, messages: 2, faults: 2, refusals: 2 },
  { nodes: 2, messages: 3, faults: 1, refusals: 1 },
]

for (const bounds of IS_LONG ? [...BOUNDS, ...LONG_BOUNDS] : BOUNDS) {
  const { nodes, messages, faults, refusals } = bounds
  test(`ordered deliveries keep their promises: nodes ${nodes}, messages ${messages}, faults ${faults}, refusals ${refusals}`, (t) => {
    const { states, steps, depth, violation } = check(createOrderProtocol(bounds))
    t.diagnostic(`${states} states, ${steps} steps, depth ${depth}`)
    assert.equal(violation, null, violation === null ? '' : `${violation.invariant}\n${violation.trace.join('\n')}`)
  })
}

for (const [mutant, promise] of Object.entries(ORDER_MUTANTS) as [OrderMutant, string][]) {
  test(`the model of ordered deliveries notices a wrong protocol: ${mutant}`, (t) => {
    const { violation } = check(createOrderProtocol(ORDER_MUTANT_BOUNDS, mutant))
    assert.equal(violation?.invariant, promise, violation?.trace.join('\n') ?? 'not caught')
    t.diagnostic(`breaks "${promise}", shortest trace: ${violation.trace.length}`)
  })
}
