import assert from 'node:assert/strict'
import test from 'node:test'
import { integrationOf } from '../../destinations/fixtures/integration.ts'
import type { Link, LinkEvents } from '../link/link.ts'
import { type Outcome, type Ran, unanswered } from '../link/outcome.ts'
import type { Work } from '../link/work.ts'
import { ReplaceableSender } from './replaceable-sender.ts'
import { reportCheck } from './report-check.ts'

const ok = { verdict: 'success', reason: null, retryAfterMs: null, succeeded: [] } as const
const request = (...positions: number[]): Ran['requests'][number] => ({
  positions,
  subscription: 'A',
  method: 'POST',
  url: 'https://tool.test/',
  startedAtMs: 0,
  outcome: unanswered('timeout', ''),
  sent: null,
})

/** A sender with one unit of two messages in flight, and what its end has been. */
function inFlight() {
  const answers: (string | null)[] = []
  const started: number[] = []
  let events: LinkEvents | undefined
  const ignore = (): void => undefined
  const health = { isHeard: true, isSpent: false, ping: () => void (health.isHeard = false), kill: (error: Error) => events?.lost(error) }
  const sender = new ReplaceableSender({
    name: 'host',
    onLost: () => 'sender_lost',
    check: reportCheck,
    silentChecks: 3,
    open: (_name, given): Link => {
      events = given
      const commands = { define: ignore, forget: ignore, recall: ignore, resume: ignore, limit: ignore, load: ignore, drop: ignore }
      return { commands: { ...commands, start: ({ unit }) => void started.push(unit) }, drain: () => Promise.resolve(), health }
    },
  })
  const about = { sourceId: '', receivedAtMs: 0, ip: null, browser: false, trace: null }
  const content = { origin: 1, body: { about, bytes: Buffer.from('[]'), absent: [], parsed: null }, indexes: [0, 1], loaded: null }
  const work: Work = {
    destination: integrationOf(),
    isBatch: true,
    attempt: 1,
    replay: false,
    startedAtMs: 0,
    keepAnswer: false,
    limit: 1,
    urls: [0],
    messages: [
      { content, index: 0 },
      { content, index: 1 },
    ],
    answered: (_url: number, { reason }: Outcome) => void answers.push(reason),
    unsent: ignore,
    bug: ignore,
  }
  sender.start(work)
  const report = (ran: Ran): void => events?.outcome(started[0] as number, 0, { ...unanswered('timeout', ''), verdict: 'success', ran }, 0)
  const unsent = (position: number): void => events?.unsent(started[0] as number, [{ position, why: 'deleted' }], false)
  return { sender, health, answers, report, unsent, lose: () => events?.lost(new Error('gone')) }
}

test('results that do not fit the messages are refused, so that the messages are tried again', () => {
  const forged: Ran[] = [
    { messages: [], requests: [] },
    { messages: [ok], requests: [request(0)] },
    { messages: [ok, ok, ok], requests: [request(0, 1, 2)] },
    { messages: [ok, ok], requests: [request(0, 2)] },
    { messages: [ok, ok], requests: [request(-1)] },
  ]
  for (const ran of forged) {
    const { answers, report, lose } = inFlight()
    assert.throws(() => report(ran), /not valid/)
    assert.deepEqual(answers, [])
    // The link ends a host for it.
    lose()
    assert.deepEqual(answers, ['sender_lost'])
  }
  const { answers, report } = inFlight()
  report({ messages: [ok, ok], requests: [request(0, 1)] })
  assert.equal(answers.length, 1)
})

test('a message that was not sent has no result', () => {
  const { answers, report, unsent } = inFlight()
  unsent(1)
  assert.throws(() => unsent(1), /not valid/)
  assert.throws(() => report({ messages: [ok, ok], requests: [] }), /not valid/)
  report({ messages: [ok], requests: [request(0)] })
  assert.equal(answers.length, 1)
})

test('a sender that is starting may be silent for longer than one that has answered', () => {
  const starting = inFlight()
  // The first check pings it.
  for (let nth = 0; nth < 6; nth++) starting.sender.check()
  assert.deepEqual(starting.answers, [])
  starting.sender.check()
  assert.deepEqual(starting.answers, ['sender_lost'])
  const started = inFlight()
  started.sender.check()
  started.health.isHeard = true
  for (let nth = 0; nth < 3; nth++) started.sender.check()
  assert.deepEqual(started.answers, [])
  started.sender.check()
  assert.deepEqual(started.answers, ['sender_lost'])
})
