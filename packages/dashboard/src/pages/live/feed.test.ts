import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LiveAccepted, LiveAttempt, LiveEvent } from '../../api/live.ts'
import { Feed, MAX_ENTRIES, type Timer, timeOf } from './feed.ts'

class Clock implements Timer {
  now = 10_000
  #timers: { atMs: number; run: () => void }[] = []

  nowMs = (): number => this.now

  after = (ms: number, run: () => void): (() => void) => {
    const timer = { atMs: this.now + ms, run }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer)
    }
  }

  pass(ms: number): void {
    const untilMs = this.now + ms
    for (;;) {
      const next = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0]
      if (next === undefined) break
      this.#timers = this.#timers.filter((each) => each !== next)
      this.now = Math.max(this.now, next.atMs)
      next.run()
    }
    this.now = untilMs
  }

  get waiting(): number {
    return this.#timers.length
  }
}

const accepted = (messageId: string): LiveAccepted => ({
  kind: 'accepted',
  at: '2026-01-01T00:00:00.000Z',
  sourceId: 's',
  messageId,
  type: 'track',
  event: 'e',
  userId: 'u',
  anonymousId: null,
  duplicate: false,
  bytes: 1,
  message: {},
})
const attempt = (success: boolean): LiveAttempt => ({ kind: 'attempt', success }) as LiveAttempt

function setUp() {
  const clock = new Clock()
  const feed = new Feed(clock)
  let renders = 0
  const leave = feed.subscribe(() => renders++)
  const ids = (): unknown[] => feed.view().rows.map(({ item }) => (item.kind === 'accepted' ? item.messageId : item.kind))
  return { clock, feed, leave, ids, renders: () => renders }
}

test('the view changes at most five times a second and has the last 500 events, newest first', () => {
  const { clock, feed, ids, renders } = setUp()
  let sent = 0
  for (let step = 0; step < 1_000; step++) {
    feed.add([accepted(`m-${sent++}`), accepted(`m-${sent++}`)])
    clock.pass(1)
  }
  assert.ok(renders() >= 5 && renders() <= 6, String(renders()))
  clock.pass(200)
  assert.equal(feed.view().rows.length, MAX_ENTRIES)
  assert.deepEqual(ids().slice(0, 2), ['m-1999', 'm-1998'])
  assert.equal(new Set(feed.view().rows.map(({ seq }) => seq)).size, MAX_ENTRIES)
})

test('rows are in the order of the times that they show: of an attempt, when its outcome was known', () => {
  const { clock, feed } = setUp()
  const at = (ms: number): string => new Date(Date.UTC(2026, 10, 15) + ms).toISOString()
  const attempt = (ms: number, totalMs: number) => ({ kind: 'attempt', at: at(ms), totalMs, success: true }) as LiveEvent
  const row = (ms: number) => ({ ...accepted(String(ms)), at: at(ms) }) as LiveEvent
  feed.add([row(1_000), row(3_000), attempt(500, 2_400), row(2_000), attempt(2_900, 50)])
  clock.pass(300)
  assert.deepEqual(
    feed.view().rows.map(({ item }) => timeOf(item) - Date.UTC(2026, 10, 15)),
    [3_000, 2_950, 2_900, 2_000, 1_000],
  )
})

test('the first event is shown immediately, and the view is the same object until something changes', () => {
  const { clock, feed, ids } = setUp()
  feed.add([accepted('m')])
  clock.pass(0)
  assert.deepEqual(ids(), ['m'])
  assert.equal(feed.view(), feed.view())
})

test('while paused, rows stay and new events are counted; resumed, the newest rows are shown', () => {
  const { clock, feed, ids } = setUp()
  feed.add([accepted('a')])
  clock.pass(300)
  feed.pause()
  feed.add([accepted('b'), { kind: 'dropped', count: 40 }])
  clock.pass(300)
  assert.deepEqual([ids(), feed.view().isPaused, feed.view().newCount], [['a'], true, 41])
  feed.resume()
  assert.deepEqual([ids(), feed.view().isPaused, feed.view().newCount], [['b', 'a'], false, 0])
})

test('clearing removes all rows, also while paused', () => {
  const { clock, feed, ids } = setUp()
  feed.add([accepted('a')])
  feed.pause()
  feed.clear()
  assert.deepEqual(ids(), [])
  feed.add([accepted('b')])
  clock.pass(300)
  assert.deepEqual([ids(), feed.view().newCount], [[], 1])
  feed.resume()
  assert.deepEqual(ids(), ['b'])
})

test('rates include events that are not shown, and fall to zero when no more arrive', () => {
  const { clock, feed } = setUp()
  const second: LiveEvent[] = [
    accepted('a'),
    attempt(true),
    attempt(false),
    { kind: 'dropped', count: 97, accepted: 49, rejected: 1, attempts: 47, failures: 10 },
  ]
  for (let at = 0; at < 8; at++) {
    feed.add(second)
    clock.pass(1_000)
  }
  feed.add([])
  clock.pass(200)
  assert.deepEqual(feed.view().rates, { accepted: 50, attempts: 49, failures: 12, shown: 3, notShown: 97, isLowerBound: false })
  clock.pass(7_000)
  assert.deepEqual(feed.view().rates, { accepted: 0, attempts: 0, failures: 0, shown: 0, notShown: 0, isLowerBound: false })
  assert.equal(clock.waiting, 0, 'no timer is left')
})

test('events of an unknown kind that are not shown make the rates lower bounds', () => {
  const { clock, feed } = setUp()
  feed.add([{ kind: 'dropped', count: 10, accepted: 4 }])
  clock.pass(0)
  assert.deepEqual([feed.view().rates.isLowerBound, feed.view().rates.notShown], [true, 10])
})

test('a gap is a row, and a listener that unsubscribed gets no more updates', () => {
  const { clock, feed, leave, ids } = setUp()
  feed.gap(0, 5_000)
  clock.pass(200)
  assert.deepEqual(ids(), ['gap'])
  leave()
  feed.add([accepted('a')])
  assert.equal(clock.waiting, 0)
})
