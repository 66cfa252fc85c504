// The record of actions that were seen to work: it names actions of the catalogue only, and what is no longer seen is noticed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readIntegration } from '@switchyard/integrations/catalog'
import { checkSeen, readSeen } from './seen-actions.ts'

test('every action in the record exists', async () => {
  const seen = Object.entries(readSeen())
  assert.ok(seen.length > 0)
  for (const [slug, byAgainst] of seen) {
    const actions = new Set((await readIntegration(slug))?.actions.map((action) => action.slug))
    const unknown = Object.values(byAgainst)
      .flat()
      .filter((action) => !actions.has(action))
    assert.deepEqual(unknown, [], slug)
  }
})

test('an action that is recorded and no longer seen is an error; a new one is not', () => {
  checkSeen('published', new Map([['actions-slack', ['postToChannel', 'anotherAction']]]))
  assert.throws(() => checkSeen('published', new Map([['actions-slack', []]])), /no longer seen to work/)
})
