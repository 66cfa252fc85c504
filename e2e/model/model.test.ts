// Explores the model of the protocol completely for a few nodes, messages and faults; and shows that its invariants notice a wrong protocol.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG } from '../system/long-tests.ts'
import { check, type Model } from './checker.ts'
import { MUTANT_BOUNDS, MUTANTS, type Mutant } from './mutants.ts'
import { createProtocol } from './protocol.ts'
import type { Bounds, State } from './state.ts'
import { keyOf } from './symmetry.ts'

const BOUNDS: Bounds[] = [
  { nodes: 2, messages: 2, faults: 1, refusals: 1 },
  { nodes: 2, messages: 1, faults: 2, refusals: 1 },
  { nodes: 3, messages: 1, faults: 2, refusals: 0 },
  { nodes: 3, messages: 2, faults: 1, refusals: 0 },
]
const LONG_BOUNDS: Bounds[] = [
  { nodes: 2, messages: 2, faults: 2, refusals: 1 },
  { nodes: 2, messages: 1, faults: 3, refusals: 1 },
  { nodes: 3, messages: 2, faults: 2, refusals: 0 },
  { nodes: 3, messages: 1, faults: 3, refusals: 0 },
]

for (const bounds of IS_LONG ? [...BOUNDS, ...LONG_BOUNDS] : BOUNDS) {
  const { nodes, messages, faults, refusals } = bounds
  test(`the protocol keeps its invariants: nodes ${nodes}, messages ${messages}, faults ${faults}, refusals ${refusals}`, (t) => {
    const { states, steps, depth, violation } = check(createProtocol(bounds))
    t.diagnostic(`${states} states, ${steps} steps, depth ${depth}`)
    assert.equal(violation, null)
  })
}

for (const [mutant, invariant] of Object.entries(MUTANTS) as [Mutant, string][]) {
  test(`the model notices a wrong protocol: ${mutant}`, (t) => {
    const { violation } = check(createProtocol(MUTANT_BOUNDS, mutant))
    assert.equal(violation?.invariant, invariant, violation?.trace.join('\n') ?? 'not caught')
    t.diagnostic(`violates "${invariant}", shortest trace: ${violation.trace.length}`)
  })
}

test('states that are treated as one lead to the same result', (t) => {
  const protocol = createProtocol({ nodes: 2, messages: 1, faults: 1, refusals: 1 })
  const keys: Record<string, Model<State>['key']> = {
    'with all reductions': protocol.key,
    'without those that rely on the fence': (state) => keyOf(state, false),
    'without any': JSON.stringify,
  }
  for (const [name, key] of Object.entries(keys)) {
    const { states, violation } = check({ ...protocol, key })
    t.diagnostic(`${name}: ${states} states`)
    assert.equal(violation, null)
  }
})

test('the checker reports a shortest trace, and a state from which the end cannot be reached', () => {
  const counter = (limit: number): Model<{ value: number }> => ({
    initial: { value: 0 },
    copy: ({ value }) => ({ value }),
    *steps({ value }) {
      for (const by of [1, 2, 5])
        if (value + by <= 8) yield { name: `add ${by}`, isOptional: by === 5, apply: (draft) => void (draft.value += by) }
    },
    key: ({ value }) => String(value),
    invariants: { small: ({ value }) => value < limit },
    isEnd: ({ value }) => value === 7,
  })
  const found = check(counter(7)).violation
  assert.deepEqual([found?.invariant, found?.trace, found?.state], ['small', ['add 2', 'add 5'], { value: 7 }])
  const stuck = check(counter(9)).violation
  assert.deepEqual([stuck?.invariant, stuck?.state], ['everything acknowledged can be settled', { value: 8 }])
})
