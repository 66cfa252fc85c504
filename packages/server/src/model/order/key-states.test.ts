import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KeyEvent, type KeyState, mayStartFrom, nextKeyState } from './key-states.ts'

const STATES: KeyState[] = ['free', 'waiting', 'held', 'draining']
const EVENTS: KeyEvent[] = ['retry', 'ended', 'advanced', 'hold', 'arrived', 'emptied', 'skipped', 'resumed']

test('only an operator releases a held key', () => {
  for (const event of EVENTS) assert.equal(nextKeyState('held', event) === 'held', event !== 'skipped' && event !== 'resumed', event)
})

test('a message that is to be attempted again makes its key wait, unless the key is held', () => {
  for (const state of STATES) assert.equal(nextKeyState(state, 'retry'), state === 'held' ? 'held' : 'waiting')
})

test('a key becomes free only if nothing of it waits', () => {
  for (const state of STATES) {
    for (const event of EVENTS) {
      if (state !== 'free' && event !== 'emptied') assert.notEqual(nextKeyState(state, event), 'free', `${state} ${event}`)
    }
  }
})

test('in every state at most one kind of row may start', () => {
  assert.deepEqual(STATES.map(mayStartFrom), ['fresh', 'head', null, 'waiting'])
})
