import assert from 'node:assert/strict'
import test from 'node:test'
import { IngestPacing, type PacedRequest } from './ingest-pacing.ts'

const MB = 1024 * 1024

/** Time passes only while a request is handled, and in `run`. */
function paced() {
  let nowMs = 0
  const timers: { atMs: number; run: () => void }[] = []
  const pacing = new IngestPacing({
    nowMs: () => nowMs,
    later: (run, delayMs) => void timers.push({ atMs: nowMs + Math.max(0, delayMs), run }),
  })
  const handled: string[] = []
  const refused: string[] = []
  const answer = new Map<string, () => void>()
  const request = (name: string, { handleMs = 10, bytes = 1_000, sender = name } = {}): PacedRequest => ({
    bytes,
    sender: () => sender,
    handle: () => {
      nowMs += handleMs
      handled.push(`${name} at ${nowMs}`)
    },
    refuse: () => void refused.push(`${name} at ${nowMs}`),
    onAnswered: (ended) => void answer.set(name, ended),
  })
  /** Runs all timers until a time. */
  const run = (untilMs: number): void => {
    for (;;) {
      const next = timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0]
      if (next === undefined) break
      timers.splice(timers.indexOf(next), 1)
      nowMs = Math.max(nowMs, next.atMs)
      next.run()
    }
    nowMs = Math.max(nowMs, untilMs)
  }
  const admit = (...requests: PacedRequest[]): void => {
    for (const each of requests) pacing.admit(each)
  }
  return { pacing, admit, request, handled, refused, answer, run, timers }
}

test('requests are handled at once while no lane waits for stored work', () => {
  const { admit, request, handled, timers, pacing } = paced()
  admit(request('a'), request('b'))
  assert.deepEqual(handled, ['a at 10', 'b at 20'])
  pacing.report('dst', 'behind')
  pacing.report('dst', 'none')
  admit(request('c'))
  assert.deepEqual([handled.length, timers.length, pacing.state], [3, 0, { isActive: false, delayed: 0, refused: 0 }])
})

test('while a lane waits, requests are handled in order, a few milliseconds in each turn of the event loop and without pauses', () => {
  const { pacing, admit, request, handled, run } = paced()
  pacing.report('dst', 'waiting')
  admit(request('a', { handleMs: 5 }), request('b', { handleMs: 5 }), request('c', { handleMs: 5 }))
  assert.deepEqual(handled, [])
  run(15)
  assert.deepEqual(handled, ['a at 5', 'b at 10', 'c at 15'])
  assert.deepEqual([pacing.used.turns, pacing.used.busyMs, pacing.state.delayed], [2, 15, 0])
})

test('while a lane is behind, ingest pauses for 1.5 times as long as a turn took until its answers', () => {
  const { pacing, admit, request, handled, answer, run } = paced()
  pacing.report('dst', 'behind')
  admit(request('a'), request('b'), request('c'))
  run(0)
  assert.deepEqual(handled, ['a at 10'])
  run(30)
  // The commit took until 30, so the pause lasts until 75.
  answer.get('a')?.()
  run(74)
  assert.equal(handled.length, 1)
  run(75)
  assert.deepEqual(handled.slice(1), ['b at 85'])
  assert.deepEqual(pacing.state, { isActive: true, delayed: 3, refused: 0 })
})

test('a store that does not answer delays ingest for a limited time', () => {
  const { pacing, admit, request, handled, answer, run } = paced()
  pacing.report('dst', 'behind')
  admit(request('a'), request('b'), request('c', { handleMs: 1_000 }), request('d'))
  run(0)
  run(79)
  assert.equal(handled.length, 1)
  run(80)
  assert.deepEqual(handled.slice(1), ['b at 90'])
  // A late answer to an earlier turn does not end the pause of a later one.
  answer.get('a')?.()
  run(159)
  assert.equal(handled.length, 2)
  run(1_170)
  assert.deepEqual(handled.slice(2), ['c at 1160'])
  run(1_160 + 250)
  assert.equal(handled.length, 4, 'no pause is longer than 250 ms')
})

test('requests that wait keep their order when no lane is behind any more', () => {
  const { pacing, admit, request, handled, run } = paced()
  pacing.report('one', 'behind')
  pacing.report('two', 'behind')
  admit(request('a'), request('b'))
  pacing.report('one', 'none')
  assert.deepEqual([[...pacing.behind()], pacing.state.isActive], [['two'], true])
  pacing.report('two', 'none')
  admit(request('c'))
  run(30)
  assert.deepEqual(handled, ['a at 10', 'b at 20', 'c at 30'])
  admit(request('d'))
  assert.equal(handled.length, 4)
})

test('a request that has waited for five seconds is refused, and so are requests above the limit of bytes', () => {
  const { pacing, admit, request, handled, refused, run } = paced()
  pacing.report('dst', 'behind')
  admit(request('a', { handleMs: 5_001 }), request('b', { handleMs: 1, bytes: 31 * MB }), request('c', { bytes: 2 * MB }))
  assert.deepEqual(refused, ['c at 0'])
  run(10_000)
  assert.deepEqual([handled, refused.slice(1)], [['a at 5001'], ['b at 5251']])
  admit(request('d', { bytes: 32 * MB }))
  run(10_000)
  assert.deepEqual([handled.slice(1), pacing.state.refused], [['d at 10010'], 2])
})

test('one source, or all requests without a known source together, may use half of the queue, so that other requests are not refused', () => {
  const { pacing, admit, request, handled, refused, run } = paced()
  pacing.report('dst', 'behind')
  const batches = Array.from({ length: 40 }, (_, at) => request(`batch ${at}`, { sender: '', bytes: MB, handleMs: 0 }))
  const calls = Array.from({ length: 2_600 }, (_, at) => request(`call ${at}`, { sender: 'src_1', bytes: 100, handleMs: 0 }))
  admit(...batches, ...calls)
  assert.deepEqual([refused.length, refused[0], refused.at(-1)], [24 + 100, 'batch 16 at 0', 'call 2599 at 0'])
  admit(request('other', { bytes: MB }))
  assert.equal(refused.length, 124)
  run(1_000)
  assert.deepEqual([handled.length, handled.at(-1)], [16 + 2_500 + 1, 'other at 10'])
  // Requests that were handled no longer count.
  admit(...batches.slice(0, 16))
  assert.equal(refused.length, 124)
})
