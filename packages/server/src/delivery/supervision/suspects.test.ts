import assert from 'node:assert/strict'
import test from 'node:test'
import { integrationOf } from '../../destinations/fixtures/integration.ts'
import { failure, type Outcome, unanswered } from '../link/outcome.ts'
import type { Work } from '../link/work.ts'
import { ISOLATED_MS, Suspects } from './suspects.ts'
import { Turns } from './turns.ts'

function workOf(id: string, messages = 1, attempt = 1): Work {
  const content = { origin: 1, body: {} as never, indexes: [], loaded: null }
  const ignore = (): void => undefined
  return {
    destination: integrationOf({ id }),
    isBatch: false,
    attempt,
    replay: false,
    startedAtMs: 0,
    keepAnswer: false,
    limit: 10,
    urls: [0],
    messages: Array.from({ length: messages }, (_, index) => ({ content, index })),
    answered: ignore,
    unsent: ignore,
    bug: ignore,
  }
}

const ENDED: Outcome = unanswered('integration_failed', '')

test('a destination that was alone in a lost host is the culprit, and runs isolated for a while', () => {
  let now = 0
  const suspects = new Suspects(() => now)
  assert.deepEqual(suspects.lost([workOf('a'), workOf('a')]), { isolated: ['a'], isKnown: true })
  suspects.survived(workOf('a', 100, 2), ENDED)
  assert.deepEqual([suspects.has('a'), suspects.has('b')], [true, false])
  now = ISOLATED_MS - 1
  assert.equal(suspects.has('a'), true)
  now = ISOLATED_MS
  assert.equal(suspects.has('a'), false)
})

test('if several were in a lost host, each runs isolated until it has repeated what it had in flight', () => {
  const suspects = new Suspects(() => 0)
  assert.deepEqual(suspects.lost([workOf('a', 2), workOf('b'), workOf('a')]), { isolated: ['a', 'b'], isKnown: false })
  // New messages, and those that were not run, say nothing.
  suspects.survived(workOf('b'), ENDED)
  suspects.survived(workOf('b', 1, 2), failure('aborted'))
  assert.equal(suspects.has('b'), true)
  suspects.survived(workOf('b', 1, 2), ENDED)
  suspects.survived(workOf('a', 2, 2), ENDED)
  assert.deepEqual([suspects.has('a'), suspects.has('b')], [true, false])
  suspects.survived(workOf('a', 1, 2), null)
  assert.equal(suspects.has('a'), false)
})

test('a culprit does not become a mere suspect, and a lost host without work has none', () => {
  const suspects = new Suspects(() => 0)
  suspects.lost([workOf('a')])
  suspects.lost([workOf('a'), workOf('b')])
  suspects.survived(workOf('a', 5, 2), ENDED)
  assert.equal(suspects.has('a'), true)
  assert.deepEqual(suspects.lost([]), { isolated: [], isKnown: false })
  suspects.forget('a')
  assert.equal(suspects.has('a'), false)
})

test('the work of one destination runs at a time, and nobody waits for ever', async () => {
  const run: string[] = []
  const aborted: string[] = []
  const turns = new Turns(({ destination }) => run.push(destination.id))
  const start = (id: string): void => turns.start({ ...workOf(id), answered: (_url, { reason }) => void aborted.push(`${id} ${reason}`) })
  for (const id of ['a', 'a', 'b', 'a', 'c', 'b']) start(id)
  assert.deepEqual(run, ['a', 'a'])
  turns.ended()
  assert.deepEqual(run, ['a', 'a'])
  turns.ended()
  assert.deepEqual(run, ['a', 'a', 'b', 'b'])
  turns.recall('c')
  turns.ended()
  turns.ended()
  assert.deepEqual(run, ['a', 'a', 'b', 'b', 'a'])
  turns.ended()
  start('c')
  start('d')
  turns.recall()
  await Promise.resolve()
  assert.deepEqual([run.slice(5), aborted], [['c'], ['c aborted', 'd aborted']])
})
