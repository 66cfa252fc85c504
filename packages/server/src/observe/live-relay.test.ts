// The live feeds of two nodes with a channel between them that the test controls: which events of one node are seen on the other.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AttemptEvent } from '../delivery/events/events.ts'
import type { Channel, NodeSummary, Nodes, SegmentContent } from '../store/store.ts'
import { type LiveEvent, LiveFeed } from './live.ts'
import { LiveRelay } from './live-relay.ts'

class Pair {
  readonly sent: string[] = []
  readonly relays: LiveRelay[] = []
  readonly timers: (() => void)[] = []
  readonly #heartbeats: (() => void)[] = []
  readonly #docs: Record<string, unknown>[] = []
  readonly #receivers: ((text: string) => void)[] = []

  node(): LiveFeed {
    const live = new LiveFeed({ wallMs: () => 0 })
    const at = this.#docs.push({}) - 1
    const nodes: Nodes = {
      nodes: [],
      others: () =>
        this.#docs.flatMap((doc, num): NodeSummary[] =>
          num === at ? [] : [{ num, name: String(num), version: '1', startedAtMs: 0, seenAtMs: 0, isSelf: false, doc }],
        ),
      count: 2,
      rank: at,
      announce: (key, value) => {
        ;(this.#docs[at] as Record<string, unknown>)[key] = value
      },
      onChange: (listener) => this.#heartbeats.push(listener),
    }
    const channel: Channel = {
      maxBytes: 7_900,
      publish: (text) => {
        assert.ok(Buffer.byteLength(text) <= 7_900)
        this.sent.push(text)
        for (const [other, hear] of this.#receivers.entries()) if (other !== at) hear(text)
      },
      onMessage: (listener) => this.#receivers.push(listener),
    }
    const relay = new LiveRelay({ live, nodes, channel, setTimer: (run) => (this.timers.push(run), () => {}) })
    this.relays.push(relay)
    return live
  }

  /** Announces a value as the node with this number. */
  announce(num: number, key: string, value: unknown): void {
    ;(this.#docs[num] as Record<string, unknown>)[key] = value
  }

  /** Delivers a channel message to the node with this number. */
  receive(num: number, text: string): void {
    this.#receivers[num]?.(text)
  }

  /** Runs every heartbeat twice, so that all announcements have been read. */
  heartbeat(): void {
    for (const each of [...this.#heartbeats, ...this.#heartbeats]) each()
  }

  /** Only one node's heartbeat. */
  heartbeatOf(num: number): void {
    this.#heartbeats[num]?.()
  }

  turn(): void {
    for (const run of this.timers.splice(0)) run()
  }
}

function accepted(messageId: string, more: Record<string, unknown> = {}, sourceId = 'src_1') {
  const content: SegmentContent = {
    sourceId,
    receivedAtMs: 0,
    ip: null,
    browser: false,
    sentAt: null,
    context: null,
    integrations: null,
    trace: null,
    items: [{ type: 'track', event: 'Tested', userId: 'u', messageId, ...more }] as SegmentContent['items'],
  }
  return { sourceId, messages: 1, duplicates: 0, bytes: 1, content, repeated: [] }
}

async function next(events: AsyncIterator<LiveEvent>): Promise<{ event: string } & Record<string, unknown>> {
  const { value } = (await events.next()) as { value: LiveEvent }
  return { ...(JSON.parse(value.json) as object), event: value.event }
}

const iterate = (live: LiveFeed, filter = {}): AsyncIterator<LiveEvent> =>
  (live.listen(filter, 'a token') ?? assert.fail())[Symbol.asyncIterator]()

test('a listener on one node sees the events of another, and nothing is sent before or after it listens', async () => {
  const pair = new Pair()
  const [here, there] = [pair.node(), pair.node()]
  there.accepted(accepted('m-0'))
  assert.equal(pair.timers.length, 0)
  const events = iterate(here)
  pair.heartbeat()
  there.accepted(accepted('m-1'))
  there.rejected({ sourceId: null, code: 'unknown_write_key', messages: 1, sample: '{"writeKey":"SECRET"}' })
  assert.equal(pair.sent.length, 0, 'sent at intervals')
  pair.turn()
  assert.equal(pair.sent.length, 1, 'together')
  assert.deepEqual([(await next(events))['messageId'], (await next(events))['code']], ['m-1', 'unknown_write_key'])
  assert.doesNotMatch(pair.sent.join(), /SECRET/)
  await events.return?.()
  pair.heartbeat()
  there.accepted(accepted('m-2'))
  assert.deepEqual([pair.timers.length, pair.sent.length], [0, 1])
})

test('only events that match a filter are sent, and each listener gets the events that match its own', async () => {
  const pair = new Pair()
  const [here, there] = [pair.node(), pair.node()]
  const ofSource = iterate(here, { sourceId: 'src_2' })
  const ofDestination = iterate(here, { destinationId: 'dst_1' })
  pair.heartbeat()
  there.accepted(accepted('m-1'))
  there.accepted(accepted('m-2', {}, 'src_2'))
  const attempt = {
    destination: { id: 'dst_1' },
    deliveryId: '1-0',
    messageId: 'm-1',
    sourceId: 'src_1',
    count: 1,
    messages: [{ messageId: 'm-1', sourceId: 'src_1', type: 'track', receivedAtMs: 0 }],
    attempt: 1,
    replay: false,
    traceId: null,
    url: 'https://user:SECRET@example.com/?key=SECRET',
    startedAtMs: 0,
    outcome: { verdict: 'success', reason: null, status: 200, error: null, timings: { totalMs: 1 } },
  } as unknown as AttemptEvent
  there.attempted(attempt)
  pair.turn()
  assert.equal((await next(ofSource))['messageId'], 'm-2')
  assert.equal((await next(ofDestination))['deliveryId'], '1-0')
  assert.doesNotMatch(pair.sent.join(), /SECRET|m-1.*Tested/)
})

test('events above the limit are counted, and a large message is sent without its content', async () => {
  const pair = new Pair()
  const [here, there] = [pair.node(), pair.node()]
  const events = iterate(here)
  pair.heartbeat()
  there.accepted(accepted('large', { properties: { text: 'x'.repeat(6_000) } }))
  for (let nth = 0; nth < 300; nth++) there.accepted(accepted(`m-${nth}`))
  pair.turn()
  assert.ok(pair.sent.length <= 3)
  const seen: { event: string }[] = []
  let missed = 0
  while (seen.length + missed < 301) {
    const event = await next(events)
    if (event.event === 'dropped') missed += Number(event['count'])
    else seen.push(event)
  }
  assert.ok(missed > 0 && seen.length > 5)
  const large = seen[0] as Record<string, unknown> | undefined
  assert.deepEqual([large?.['messageId'], large?.['message']], ['large', null])
  assert.equal(seen.length + missed, 301)
})

test('a message from another node is passed on only if it is a valid event, and never breaks the stream', async () => {
  const pair = new Pair()
  const here = pair.node()
  pair.node()
  const events = iterate(here)
  pair.heartbeat()
  const [key] = [...here.wanted.keys()]
  const good = ['accepted', [key], '{"messageId":"good"}']
  for (const text of [
    'nonsense',
    'null',
    '[]',
    '{}',
    '{"events":7}',
    JSON.stringify({ events: [null, 7, ['accepted'], ['accepted', 'x', '{}'], ['dropped', [key], '{"count":1}']] }),
    JSON.stringify({
      events: [
        ['accepted', [key], 'not json'],
        ['accepted', [key], '{}\n\nevent: forged\ndata: {}'],
      ],
    }),
    JSON.stringify({ events: [], missed: { [key as string]: -5, x: 'y' } }),
    JSON.stringify({ events: [good] }),
  ])
    pair.receive(0, text)
  assert.deepEqual(await next(events), { event: 'accepted', messageId: 'good' })
})

test('an invalid filter matches nothing', () => {
  const pair = new Pair()
  const live = pair.node()
  pair.node()
  const offered = (filters: unknown): boolean => {
    pair.announce(1, 'live', filters)
    pair.heartbeatOf(0)
    live.accepted(accepted('m-1'))
    return pair.timers.splice(0).length > 0
  }
  assert.equal(offered({ a: {} }), true)
  for (const filters of ['x', { a: 5 }, { b: { sourceId: 7 } }, { c: { messageId: 'x'.repeat(1_000) } }])
    assert.equal(offered(filters), false)
})
