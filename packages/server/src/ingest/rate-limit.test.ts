import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeSummary, Nodes } from '../store/store.ts'
import { createRateLimit, createSharedRateLimit, type RateLimit } from './rate-limit.ts'

/** A request with so many good messages, as ingest asks for it. */
function take(limit: RateLimit, sourceId: string, messages: number, nowMs: number): number {
  const waitSeconds = limit.waitSeconds(sourceId, nowMs)
  if (waitSeconds === 0) limit.charge(sourceId, messages)
  return waitSeconds
}

test('a source may send its limit, a batch is let in whole, and what it took too much is waited for', () => {
  const limit = createRateLimit(10)
  assert.equal(take(limit, 'a', 6, 0), 0)
  assert.equal(take(limit, 'a', 30, 0), 0)
  assert.equal(take(limit, 'a', 1, 0), 3)
  assert.equal(take(limit, 'b', 1, 0), 0, 'another source is not concerned')
  assert.equal(take(limit, 'a', 1, 2_000), 1)
  assert.equal(take(limit, 'a', 1, 2_700), 0)
})

test('an idle source does not save up more than a second', () => {
  const limit = createRateLimit(10)
  assert.equal(take(limit, 'a', 10, 0), 0)
  assert.equal(take(limit, 'a', 10, 1_000_000), 0)
  assert.equal(take(limit, 'a', 1, 1_000_000), 1)
})

/** Nodes that hear of each other whenever the test lets them beat. */
class Meeting {
  readonly members: { doc: Record<string, unknown>; listeners: (() => void)[] }[] = []

  join(): Nodes {
    const own = { doc: {} as Record<string, unknown>, listeners: [] as (() => void)[] }
    const { members } = this
    members.push(own)
    const summary = (member: typeof own): NodeSummary => {
      const num = members.indexOf(member)
      return { num, name: String(num), version: '1', startedAtMs: 0, seenAtMs: 0, isSelf: member === own, doc: member.doc }
    }
    return {
      get nodes() {
        return members.map(summary)
      },
      others: () => members.filter((member) => member !== own).map(summary),
      get count() {
        return members.length
      },
      rank: members.indexOf(own),
      announce: (key, value) => {
        own.doc = { ...own.doc, [key]: value }
      },
      onChange: (listener) => own.listeners.push(listener),
    }
  }

  beat(): void {
    for (const { listeners } of this.members) for (const listener of listeners) listener()
  }
}

/** Sends a message every so often to each of the nodes that are named, for so many seconds, and counts what they let in in each. */
function flood(limit: number, nodes: number, seconds: number, perSecond: readonly number[]): number[] {
  const meeting = new Meeting()
  let nowMs = 0
  const limits = Array.from({ length: nodes }, () => createSharedRateLimit(limit, meeting.join(), () => nowMs))
  const letIn: number[] = []
  for (let second = 0; second < seconds; second++) {
    let count = 0
    for (let ms = 0; ms < 1_000; ms++) {
      nowMs = second * 1_000 + ms
      for (const [at, each] of limits.entries()) {
        const messages = Math.floor(((ms + 1) * (perSecond[at] ?? 0)) / 1_000) - Math.floor((ms * (perSecond[at] ?? 0)) / 1_000)
        for (let nth = 0; nth < messages; nth++) if (take(each, 'a', 1, nowMs) === 0) count++
      }
    }
    letIn.push(count)
    meeting.beat()
  }
  return letIn
}

test('however many nodes are flooded, together they soon let in no more than the limit', () => {
  for (const nodes of [2, 3, 8]) {
    const letIn = flood(1_000, nodes, 10, Array(nodes).fill(5_000) as number[])
    assert.ok((letIn[0] as number) <= 2 * nodes * 1_000, `${nodes} nodes, first second: ${letIn[0]}`)
    for (const each of letIn.slice(3)) assert.ok(each <= 1_050 && each >= 900, `${nodes} nodes: ${letIn.join(' ')}`)
  }
})

test('a source that sends to one node alone has the whole limit there', () => {
  const letIn = flood(1_000, 3, 10, [900, 0, 0])
  assert.deepEqual(letIn, Array(10).fill(900))
})

test('what one node uses little of, another may use', () => {
  const letIn = flood(1_000, 2, 12, [5_000, 200])
  for (const each of letIn.slice(3)) assert.ok(each >= 950 && each <= 1_250, letIn.join(' '))
})

test('what another node tells is not trusted with nonsense', () => {
  const meeting = new Meeting()
  const nodes = meeting.join()
  const limit = createSharedRateLimit(10, nodes, () => 0)
  const other = meeting.join()
  for (const rates of [null, 'x', { a: -5 }, { a: '9' }, { a: Number.NaN }, { __proto__: { a: 10 } }, 7]) {
    other.announce('rates', rates)
    meeting.beat()
    assert.equal(take(limit, `a`, 1, 0), 0, JSON.stringify(rates))
  }
})
