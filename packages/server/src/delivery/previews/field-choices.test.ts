import assert from 'node:assert/strict'
import test from 'node:test'
import { integrationOf } from '../../destinations/fixtures/integration.ts'
import { lookupIn } from '../link/field-lookup.ts'
import { type Outcome, unanswered, withoutAnswer } from '../link/outcome.ts'
import type { Work } from '../link/work.ts'
import type { SenderGroup } from '../supervision/sender-pool.ts'
import { type FieldChoices, fieldChoices } from './field-choices.ts'
import { TooManyPreviews } from './preview-turns.ts'

const LOOKUP = { action: 'send', field: 'list', mapping: {} }
const options = { startedAtMs: 0, onBug: assert.fail }

interface Asking {
  started: Work[]
  forgotten: string[]
  ask: (isStored: boolean, limitMs?: number) => Promise<FieldChoices>
}

function asking(): Asking {
  const started: Work[] = []
  const forgotten: string[] = []
  const senders = { start: (work: Work) => void started.push(work), forget: (id: string) => void forgotten.push(id) }
  const of = (): SenderGroup => senders as unknown as SenderGroup
  return {
    started,
    forgotten,
    ask: (isStored, limitMs = 60_000) => fieldChoices({ of }, integrationOf(), { ...LOOKUP, isStored }, options, limitMs),
  }
}

function success(responseStart: string | null): Outcome {
  return { ...withoutAnswer({ verdict: 'success', reason: null, error: null }, 1), responseStart }
}

test('a stored destination is asked under its own id, other settings under one that is forgotten; both where previews run', async () => {
  const { started, forgotten, ask } = asking()
  const asked = [ask(true), ask(false)]
  for (const work of started) {
    assert.equal(work.isPreview, true)
    const text = Buffer.from(work.messages[0]?.content.body.bytes ?? []).toString()
    assert.partialDeepStrictEqual(lookupIn(text), LOOKUP)
    work.answered(0, success(JSON.stringify({ choices: [{ value: 'a', label: 'A' }], nextPage: '2' })), 0)
  }
  for (const answer of await Promise.all(asked))
    assert.deepEqual(answer, { choices: [{ value: 'a', label: 'A' }], nextPage: '2', error: null })
  assert.deepEqual([started[0]?.destination.id, forgotten], ['dst_1', [started[1]?.destination.id]])
  assert.match(forgotten[0] ?? '', /^lookup-\d+$/)
})

test('a host that never answers ends at the limit, and at most four are asked at the same time', async () => {
  const { ask } = asking()
  // Long enough for the fifth to be asked for before the first has ended.
  const running = [1, 2, 3, 4].map(() => ask(false, 2_000))
  await assert.rejects(ask(false), TooManyPreviews)
  for (const { error } of await Promise.all(running)) assert.equal(error?.code, 'timeout')
})

test('what a host answers is not trusted, and its errors keep their codes', async () => {
  const answers: [Outcome, FieldChoices['error'], number][] = [
    [success('not JSON'), { code: 'integration_failed', message: 'The integration returned an invalid answer.' }, 0],
    [success(null), { code: 'integration_failed', message: 'The integration returned an invalid answer.' }, 0],
    [success(JSON.stringify({ choices: [{ value: {} }, { value: 'a', label: 1 }, 'b'], nextPage: {} })), null, 1],
    [success(JSON.stringify({ choices: Array.from({ length: 2_000 }, (_, value) => ({ value })) })), null, 1_000],
    [
      { ...unanswered('integration_failed', 'Unauthorized'), reason: 'http_401', status: 401 },
      { code: 'http_401', message: 'The tool answered 401: Unauthorized' },
      0,
    ],
    [unanswered('integration_crashed', 'It crashed.'), { code: 'integration_crashed', message: 'It crashed.' }, 0],
  ]
  for (const [outcome, error, count] of answers) {
    const { started, ask } = asking()
    const asked = ask(true)
    started[0]?.answered(0, outcome, 0)
    const answer = await asked
    assert.deepEqual([answer.error, answer.choices.length, answer.nextPage], [error, count, null])
  }
})

test('no message that an application can send is a lookup', () => {
  assert.equal(lookupIn('{"type":"track","event":"field_lookup"}'), null)
  assert.equal(lookupIn('{"event":"x","type":"field_lookup"}'), null)
})
