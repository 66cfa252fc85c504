// The checker itself: what it must accept, and mistakes of a service that it must find.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Call, unexplained } from './explain.ts'
import { applied, EMPTY, type Operation, type Resource, type State, shown } from './model.ts'

const source = (keys: string[]) => ({ keys, enabled: true })
const START: State = {
  ...EMPTY,
  sources: { s: source(['a', 'b']) },
  destinations: { d: { sources: ['s'], enabled: true, size: 1, maxInFlight: 20, contents: [null] } },
}
const removing = (key: string): Operation => ({ kind: 'sources', name: 's', does: 'remove key', key })
const adding = (key: string): Operation => ({ kind: 'sources', name: 's', does: 'add key', key })
const changing = (fields: Resource & { code?: number | null }): Operation => ({ kind: 'destinations', name: 'd', does: 'update', fields })

function call(operation: Operation, [startMs, endMs]: [number, number], answer = 'done'): Call {
  const outcome: Call['outcome'] = answer === 'done' || answer === 'lost' ? { is: answer } : { is: 'refused', code: answer }
  return { operation, node: 'node', startMs, endMs: answer === 'lost' ? Number.POSITIVE_INFINITY : endMs, outcome }
}

/** The state after these operations, one after the other. */
function after(...operations: Operation[]): State {
  return operations.reduce((state, operation) => {
    const next = applied(state, operation)
    return typeof next === 'string' ? assert.fail(next) : next
  }, START)
}

test('concurrent calls are explained by some order, and those after each other only by theirs', () => {
  const [one, other] = [changing({ size: 2 }), changing({ size: 3 })]
  const concurrent = [call(one, [0, 10]), call(other, [5, 8])]
  for (const found of [after(one, other), after(other, one)]) assert.equal(unexplained(START, concurrent, found), undefined)
  const inTurn = [call(one, [0, 4]), call(other, [5, 8])]
  assert.equal(unexplained(START, inTurn, after(one, other)), undefined)
  assert.match(unexplained(START, inTurn, after(other, one)) ?? '', /^No order/)
})

test('a change whose answer was lost is made completely, later or not at all', () => {
  const lost = changing({ size: 2, maxInFlight: 5, code: 7 })
  const calls = [call(lost, [0, 0], 'lost'), call(adding('c'), [1, 2])]
  for (const found of [after(adding('c')), after(lost, adding('c')), after(adding('c'), lost)])
    assert.equal(unexplained(START, calls, found), undefined)
  assert.ok(unexplained(START, calls, after(adding('c'), changing({ size: 2 }))))
})

test('mistakes are found: a lost key, a key that came back, two last keys removed, a missing audit entry, an ignored If-Match', () => {
  const added = [call(adding('c'), [0, 1]), call(adding('d'), [0, 1])]
  assert.ok(unexplained(START, added, after(adding('c'))), 'a lost key')
  const removed = [call(removing('a'), [0, 1]), call(adding('c'), [0, 1])]
  assert.ok(unexplained(START, removed, after(adding('c'))), 'a key that came back')
  const last = [call(removing('a'), [0, 5]), call(removing('b'), [0, 5])]
  assert.ok(unexplained(START, last, { ...START, sources: { s: source([]) }, entries: { s: 2 } }), 'two last keys removed')
  const second = [call(removing('a'), [0, 5]), call(removing('b'), [0, 5], 'last_write_key')]
  assert.equal(unexplained(START, second, after(removing('a'))), undefined)
  assert.ok(unexplained(START, added, { ...after(adding('c'), adding('d')), entries: { s: 1 } }), 'a missing entry')
  const read = shown(START.destinations['d'] ?? assert.fail())
  const matched = { ...changing({ size: 9 }), ifShown: read }
  const ignored = [call(changing({ size: 2 }), [0, 1]), call(matched, [2, 3])]
  assert.ok(unexplained(START, ignored, after(changing({ size: 2 }), changing({ size: 9 }))), 'an ignored If-Match')
  const refused = [call(changing({ size: 2 }), [0, 1]), call(matched, [2, 3], 'changed_since_read')]
  assert.equal(unexplained(START, refused, after(changing({ size: 2 }))), undefined)
})

test('a deleted source leaves no references, and has at most one plan', () => {
  const plan = (name: string): Operation => ({ kind: 'plans', name, does: 'create', made: { sources: ['s'], mode: 'observe', version: 1 } })
  assert.equal(applied(after(plan('p')), plan('q')), 'source_has_plan')
  const { destinations, plans } = after(plan('p'), { kind: 'sources', name: 's', does: 'delete' })
  assert.deepEqual([destinations['d']?.sources, plans['p']?.sources], [[], []])
})
