import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeSummary, Nodes } from '../../store/store.ts'
import { createRateLimit, createSharedRateLimit, type RateLimit } from './rate-limit.ts'

/** Checks and charges a request with this number of valid messages, as ingest does. */
function tryCharge(limit: RateLimit, sourceId: string, messages: number, nowMs: number): number {
  const waitSeconds = limit.waitSeconds(sourceId, nowMs)
  if (waitSeconds === 0) limit.charge(sourceId, messages)
  return waitSeconds
}

test('a source may send up to its limit; a batch is accepted as a whole, and the source waits for the excess', () => {
  const limit = createRateLimit(10)
  assert.equal(tryCharge(limit, 'a', 6, 0), 0)
  assert.equal(tryCharge(limit, 'a', 30, 0), 0)
  assert.equal(tryCharge(limit, 'a', 1, 0), 3)
  assert.equal(tryCharge(limit, 'b', 1, 0), 0, 'another source is not affected')
  assert.equal(tryCharge(limit, 'a', 1, 2_000), 1)
  assert.equal(tryCharge(limit, 'a', 1, 2_700), 0)
})

test('an idle source accumulates no more than one second of messages', () => {
  const limit = createRateLimit(10)
  assert.equal(tryCharge(limit, 'a', 10, 0), 0)
  assert.equal(tryCharge(limit, 'a', 10, 1_000_000), 0)
  assert.equal(tryCharge(limit, 'a', 1, 1_000_000), 1)
})

/** Nodes that learn of each other on every heartbeat, which the test triggers. */
class Cluster {
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

  heartbeat(): void {
    for (const { listeners } of this.members) for (const listener of listeners) listener()
  }
}

/** Sends messages to each node at the given rates for the given number of seconds. Returns the number of accepted messages per second. */
function flood(limit: number, nodes: number, seconds: number, perSecond: readonly number[]): number[] {
  const cluster = new Cluster()
  let nowMs = 0
  const limits = Array.from({ length: nodes }, () => createSharedRateLimit(limit, cluster.join(), () => nowMs))
  const accepted: number[] = []
  for (let second = 0; second < seconds; second++) {
    let count = 0
    for (let ms = 0; ms < 1_000; ms++) {
      nowMs = second * 1_000 + ms
      for (const [at, each] of limits.entries()) {
        const messages = Math.floor(((ms + 1) * (perSecond[at] ?? 0)) / 1_000) - Math.floor((ms * (perSecond[at] ?? 0)) / 1_000)
        for (let nth = 0; nth < messages; nth++) if (tryCharge(each, 'a', 1, nowMs) === 0) count++
      }
    }
    accepted.push(count)
    cluster.heartbeat()
  }
  return accepted
}

test('however many nodes are flooded, together they soon accept no more than the limit', () => {
  for (const nodes of [2, 3, 8]) {
    const accepted = flood(1_000, nodes, 10, Array(nodes).fill(5_000) as number[])
    assert.ok((accepted[0] as number) <= 2 * nodes * 1_000, `${nodes} nodes, first second: ${accepted[0]}`)
    for (const each of accepted.slice(3)) assert.ok(each <= 1_050 && each >= 900, `${nodes} nodes: ${accepted.join(' ')}`)
  }
})

test('a source that sends to only one node has the whole limit there', () => {
  const accepted = flood(1_000, 3, 10, [900, 0, 0])
  assert.deepEqual(accepted, Array(10).fill(900))
})

test('a node may use the share that another node does not use', () => {
  const accepted = flood(1_000, 2, 12, [5_000, 200])
  for (const each of accepted.slice(3)) assert.ok(each >= 950 && each <= 1_250, accepted.join(' '))
})

test('invalid rates from another node are ignored', () => {
  const cluster = new Cluster()
  const nodes = cluster.join()
  const limit = createSharedRateLimit(10, nodes, () => 0)
  const other = cluster.join()
  for (const rates of [null, 'x', { a: -5 }, { a: '9' }, { a: Number.NaN }, { __proto__: { a: 10 } }, 7]) {
    other.announce('rates', rates)
    cluster.heartbeat()
    assert.equal(tryCharge(limit, `a`, 1, 0), 0, JSON.stringify(rates))
  }
})
