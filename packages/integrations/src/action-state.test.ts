// What an action gets as `stateContext`, and what becomes of the entries that it sets.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StateDraft } from './action-state.ts'
import type { ActionState, StateEntry } from './integration.ts'

interface Context {
  getRequestContext(key: string, callback?: (value?: string) => unknown): unknown
  setResponseContext(key: string, value: unknown, ttl?: object): void
}

function setUp() {
  const entries = new Map<string, StateEntry>()
  const state: ActionState = {
    get: (key) => entries.get(key)?.value,
    set(key, value, ttlMs) {
      const entry = { key, value, setAtMs: 0, expiresAtMs: ttlMs }
      entries.set(key, entry)
      return { entry, undo: () => void entries.delete(key) }
    },
  }
  const draft = new StateDraft(state)
  return { entries, draft, context: draft.context as Context }
}

test('an action reads what is there, directly or with a callback', () => {
  const { entries, context } = setUp()
  entries.set('a', { key: 'a', value: 'x', setAtMs: 0, expiresAtMs: 1 })
  assert.deepEqual([context.getRequestContext('a'), context.getRequestContext('b')], ['x', undefined])
  assert.equal(
    context.getRequestContext('a', (value) => `${value} read`),
    'x read',
  )
})

test('how long an entry is kept: as the action says, a second at least and thirty days at most, a day if it says nothing', () => {
  const { entries, context } = setUp()
  const cases: [object | undefined, number][] = [
    [{ second: 5 }, 5_000],
    [{ minute: 2, second: 1 }, 121_000],
    [{ hour: 24 }, 86_400_000],
    [{}, 86_400_000],
    [undefined, 86_400_000],
    [{ second: 0 }, 1_000],
    [{ hour: 1_000_000 }, 30 * 86_400_000],
    [{ second: 'soon' }, 86_400_000],
  ]
  for (const [ttl, expected] of cases) {
    context.setResponseContext('a', 1, ttl)
    assert.deepEqual([entries.get('a')?.value, entries.get('a')?.expiresAtMs], ['1', expected], JSON.stringify(ttl))
  }
})

test('keys and values that are too long, and more than twenty entries, are left out', () => {
  const { entries, context } = setUp()
  context.setResponseContext('k'.repeat(501), 'x', {})
  context.setResponseContext('a', 'x'.repeat(2_001), {})
  assert.equal(entries.size, 0)
  for (let at = 0; at < 25; at++) context.setResponseContext(`k${at}`, 'x', {})
  assert.equal(entries.size, 20)
})

test('what was set is kept with its message, or taken back; afterwards nothing is set any more', () => {
  const one = setUp()
  one.context.setResponseContext('a', 'x', { second: 1 })
  assert.deepEqual(one.draft.keep(3), [{ key: 'a', value: 'x', setAtMs: 0, expiresAtMs: 1_000, position: 3 }])
  one.draft.discard()
  assert.equal(one.entries.size, 1)
  const other = setUp()
  other.context.setResponseContext('a', 'x', {})
  other.draft.discard()
  other.context.setResponseContext('b', 'x', {})
  assert.deepEqual([other.entries.size, other.draft.keep(0)], [0, []])
})
