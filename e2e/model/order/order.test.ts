// Explores the model of ordered deliveries completely for a few nodes, messages and faults; and shows that it notices a wrong protocol.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG } from '../../system/long-tests.ts'
import { check } from '../checker.ts'
import {
  ORDER_MUTANT_BOUNDS,
  ORDER_MUTANTS,
  type OrderMutant,
  SHARED_MUTANT_BOUNDS,
  SHARED_MUTANTS,
  UNDIVIDED_MUTANT_BOUNDS,
  UNDIVIDED_MUTANTS,
} from './mutants.ts'
import { createOrderProtocol } from './protocol.ts'
import type { Bounds } from './state.ts'

const BOUNDS: Bounds[] = [
  { nodes: 2, parts: 1, requests: ['a', 'a'], faults: 1, refusals: 2 },
  { nodes: 2, parts: 1, requests: ['a', 'a', 'a'], faults: 1, refusals: 0 },
  { nodes: 3, parts: 1, requests: ['a', 'a'], faults: 1, refusals: 1 },
  // A message of another key keeps the shipment from going back.
  { nodes: 2, parts: 2, requests: ['ab', 'a'], faults: 0, refusals: 2 },
  { nodes: 2, parts: 2, requests: ['a', 'ab'], faults: 0, refusals: 2 },
  { nodes: 2, parts: 2, requests: ['a', 'a'], faults: 1, refusals: 1 },
]
const LONG_BOUNDS: Bounds[] = [
  { nodes: 2, parts: 1, requests: ['a', 'a'], faults: 2, refusals: 2 },
  { nodes: 2, parts: 1, requests: ['a', 'a', 'a'], faults: 1, refusals: 1 },
  { nodes: 2, parts: 2, requests: ['ab', 'ab'], faults: 0, refusals: 2 },
  { nodes: 2, parts: 2, requests: ['ab', 'a'], faults: 1, refusals: 1 },
  { nodes: 2, parts: 2, requests: ['a', 'ab'], faults: 1, refusals: 1 },
]

for (const bounds of IS_LONG ? [...BOUNDS, ...LONG_BOUNDS] : BOUNDS) {
  const listed = Object.entries(bounds).map(([name, value]) => `${name} ${String(value)}`)
  test(`ordered deliveries keep their promises: ${listed.join('; ')}`, (t) => {
    const { states, steps, depth, violation } = check(createOrderProtocol(bounds))
    t.diagnostic(`${states} states, ${steps} steps, depth ${depth}`)
    assert.equal(violation, null, violation === null ? '' : `${violation.invariant}\n${violation.trace.join('\n')}`)
  })
}

for (const [bounds, mutants] of [
  [ORDER_MUTANT_BOUNDS, ORDER_MUTANTS],
  [UNDIVIDED_MUTANT_BOUNDS, UNDIVIDED_MUTANTS],
  [SHARED_MUTANT_BOUNDS, SHARED_MUTANTS],
] as const) {
  for (const [mutant, promise] of Object.entries(mutants) as [OrderMutant, string][]) {
    test(`the model of ordered deliveries notices a wrong protocol: ${mutant}`, (t) => {
      const { violation } = check(createOrderProtocol(bounds, mutant))
      assert.equal(violation?.invariant, promise, violation?.trace.join('\n') ?? 'not caught')
      t.diagnostic(`breaks "${promise}", shortest trace: ${violation.trace.length}`)
    })
  }
}
