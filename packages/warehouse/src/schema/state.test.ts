import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Cell, SourceSchema, StateRows } from '../warehouse.ts'
import { evolve } from './evolve.ts'
import { applyCalls } from './state.ts'

const EMPTY: SourceSchema = { name: 'shop', revision: 0, tables: [] }

interface Call {
  at: number
  traits: Record<string, unknown>
}

function stateOf(calls: readonly Call[], schema = EMPTY): { state: StateRows; schema: SourceSchema } {
  const texts = calls.map(({ at, traits }) => ({
    text: JSON.stringify({ messageId: 'm', type: 'identify', userId: 'u', receivedAt: new Date(at).toISOString(), traits }),
  }))
  const evolved = evolve(schema, texts, { engine: 'postgres', loadedAtMs: 5 })
  return { state: evolved.batch.states[0] as StateRows, schema: evolved.schema }
}

function merged(...loads: Call[][]): Record<string, Cell> {
  const rows = new Map<string, Cell[]>()
  let schema = EMPTY
  let columns: StateRows['columns'] = []
  for (const calls of loads) {
    const made = stateOf(calls, schema)
    schema = made.schema
    columns = made.state.columns
    applyCalls(rows, columns, made.state.calls, 5)
  }
  const row = rows.get('u') ?? []
  return Object.fromEntries(columns.map(({ name }, at) => [name, row[at] ?? null]))
}

test('the latest value of each trait counts, whichever is loaded first', () => {
  const row = merged([{ at: 20, traits: { plan: 'pro' } }], [{ at: 10, traits: { plan: 'free', email: 'a@b' } }])
  assert.equal(row['plan'], 'pro')
  assert.equal(row['email'], 'a@b')
  assert.equal(row['received_at'], 20)
  assert.deepEqual(JSON.parse(String(row['_trait_times'])), { email: 10 })
})

test('a trait that was set to null stays null, and one that does not fit is in _unfit', () => {
  const row = merged(
    [{ at: 10, traits: { plan: 'pro', seats: 3 } }],
    [{ at: 20, traits: { plan: null, seats: 'many' } }],
    [{ at: 15, traits: { plan: 'free', seats: 4 } }],
  )
  assert.equal(row['plan'], null)
  assert.equal(row['seats'], null)
  assert.deepEqual(JSON.parse(String(row['_unfit'])), { 'traits.seats': 'many' })
  const later = merged([{ at: 10, traits: { seats: 3 } }], [{ at: 20, traits: { seats: 'many' } }], [{ at: 30, traits: { seats: 5 } }])
  assert.equal(later['seats'], 5)
  assert.equal(later['_unfit'], null)
})

test('the order of loads and repeats do not matter', () => {
  const traits = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom(1, 2, null), { minKeys: 1 })
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.record({ at: fc.integer({ min: 1, max: 50 }), traits }), { selector: ({ at }) => at, minLength: 1 }),
      fc.infiniteStream(fc.nat()),
      (calls, random) => {
        const ordered = [...calls].sort((one, other) => one.at - other.at)
        const shuffled = calls.map((call) => ({ call, by: random.next().value as number })).sort((one, other) => one.by - other.by)
        // The columns must exist before a null counts, so the first load brings them with the oldest time.
        const first = { at: 0, traits: { a: 0, b: 0, c: 0 } }
        const expected = merged([first, ...ordered])
        assert.deepEqual(
          merged(
            [first],
            ...shuffled.map(({ call }) => [call]),
            shuffled.map(({ call }) => call),
          ),
          expected,
        )
        const latest = Object.assign({}, first.traits, ...ordered.map((call) => call.traits)) as Record<string, unknown>
        assert.deepEqual({ a: expected['a'], b: expected['b'], c: expected['c'] }, latest)
      },
    ),
  )
})
