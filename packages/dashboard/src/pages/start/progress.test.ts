import assert from 'node:assert/strict'
import { test } from 'node:test'
import { doneSteps, listenCommand, nextStep, recentRejections } from './progress.ts'

const row = (code: string, lastAt: string, count = 1) => ({ sourceId: null, code, count, lastAt, lastSample: 'x' })
const liveEvent = (code: string, at: string) => ({ kind: 'rejected' as const, sourceId: null, code, messages: 1, at, sample: 'y' })

test('the next step follows from the data of the installation', () => {
  const next = (accepted: number, destinations: number, delivered: number, alertReceivers = 0) =>
    nextStep(doneSteps({ accepted, destinations, delivered, alertReceivers }))
  assert.equal(next(0, 0, 0), 'send')
  assert.equal(next(5, 0, 0), 'webhook')
  assert.equal(next(0, 1, 0), 'send')
  assert.equal(next(5, 1, 0), 'arrive')
  assert.equal(next(5, 1, 4), 'alerts')
})

test('recent rejections leave out old ones, newest first', () => {
  const since = Date.parse('2026-01-01T10:00:00.000Z')
  const rows = [row('a', '2026-01-01T09:00:00.000Z'), row('b', '2026-01-01T10:01:00.000Z'), row('c', '2026-01-01T10:02:00.000Z')]
  assert.deepEqual(
    recentRejections(rows, [], since).map(({ code }) => code),
    ['c', 'b'],
  )
})

test('a live rejection is counted once, whether it is stored yet or not', () => {
  const since = Date.parse('2026-01-01T10:00:00.000Z')
  const events = [liveEvent('a', '2026-01-01T10:01:00.000Z'), liveEvent('a', '2026-01-01T10:02:00.000Z')]
  assert.deepEqual(recentRejections([], events, since), [
    { sourceId: null, code: 'a', count: 2, lastAt: '2026-01-01T10:02:00.000Z', lastSample: 'y' },
  ])
  assert.equal(recentRejections([row('a', '2026-01-01T10:02:00.000Z', 2)], events, since)[0]?.count, 2)
  assert.equal(recentRejections([row('a', '2026-01-01T10:01:59.998Z', 2)], events, since)[0]?.count, 2)
  // The first of them is stored, together with 40 earlier ones.
  assert.equal(recentRejections([row('a', '2026-01-01T10:01:00.000Z', 41)], events, since)[0]?.count, 42)
})

test('the command names the source, unless it is the default', () => {
  assert.equal(listenCommand('./switchyard', { id: 's1', name: 'default' }), './switchyard listen --connect')
  assert.match(listenCommand('./switchyard', { id: 's1', name: 'web shop' }), / --source s1$/)
})
