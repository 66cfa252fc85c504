import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { AT_MS, accepted, attempted } from './fixtures/events.ts'
import { LiveFeed, type LiveFilter, type LiveOptions } from './live.ts'

interface Heard {
  event: string
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads what it expects
  data: any
}

function feed(t: TestContext, options: Partial<LiveOptions> = {}): LiveFeed {
  const live = new LiveFeed({ wallMs: () => AT_MS, ...options })
  t.after(() => live.close())
  return live
}

/** Collects all events up to an attempt at the destination `end`, which is sent last. */
async function heardBy(live: LiveFeed, filter: LiveFilter, say: () => void): Promise<Heard[]> {
  const events = live.listen(filter, 'a token') ?? assert.fail('too many listeners')
  say()
  const heard: Heard[] = []
  const iterator = events[Symbol.asyncIterator]()
  // Events that are already buffered are returned before it starts to wait.
  for (;;) {
    const next = await Promise.race([iterator.next(), new Promise<null>((resolve) => setImmediate(() => resolve(null)))])
    if (next === null || next.done) break
    heard.push({ event: next.value.event, data: JSON.parse(next.value.json) })
  }
  await iterator.return?.()
  return heard
}

const track = (messageId: string, more: object = {}) => ({ type: 'track', event: 'bought', userId: 'u', messageId, ...more })

test('a listener receives accepted and rejected messages and attempts', async (t) => {
  const live = feed(t)
  const heard = await heardBy(live, {}, () => {
    live.accepted(accepted('s', [track('m-1', { properties: { price: 3 } }), track('m-2')], [1]))
    live.rejected({ sourceId: 's', code: 'event_required', messages: 2, sample: '{"type":"track"}' })
    live.attempted(attempted('d', 'temporary', { attempt: 2, traceId: 'abc' }))
  })
  const at = '2026-11-14T09:00:00.000Z'
  assert.deepEqual(
    heard.map(({ event }) => event),
    ['accepted', 'accepted', 'rejected', 'attempt'],
  )
  const [first, second, rejected, attempt] = heard.map(({ data }) => data)
  const { message, bytes, ...summary } = first
  assert.deepEqual(summary, {
    at,
    sourceId: 's',
    messageId: 'm-1',
    type: 'track',
    event: 'bought',
    userId: 'u',
    anonymousId: null,
    duplicate: false,
  })
  assert.deepEqual(message.properties, { price: 3 })
  assert.equal(bytes, JSON.stringify(message).length)
  assert.equal(second.duplicate, true)
  assert.deepEqual(rejected, { at, sourceId: 's', code: 'event_required', messages: 2, sample: '{"type":"track"}' })
  assert.deepEqual(attempt, {
    at,
    destinationId: 'd',
    deliveryId: '1-0',
    messageId: 'm',
    sourceId: 's',
    type: 'track',
    event: 'bought',
    userId: 'u',
    anonymousId: null,
    messages: 1,
    attempt: 2,
    replay: false,
    url: 'https://example.com/hook',
    success: false,
    verdict: 'temporary',
    status: 500,
    reason: 'http_500',
    error: 'http_500',
    totalMs: 20,
    traceId: 'abc',
  })
})

test('a filter passes only events that match it', async (t) => {
  const live = feed(t)
  const page = { type: 'page', userId: 'u', messageId: 'p' }
  const two = attempted('d', 'success').messages[0] ?? assert.fail()
  const say = (): void => {
    live.accepted(accepted('s', [track('m'), page]))
    live.accepted(accepted('other', [track('o')]))
    live.rejected({ sourceId: 's', code: 'event_required', messages: 1, sample: '' })
    live.rejected({ sourceId: null, code: 'invalid_write_key', messages: 1, sample: '' })
    live.attempted(attempted('d', 'success'))
    live.attempted(
      attempted('d2', 'success', {
        messages: [
          { ...two, messageId: 'o', sourceId: 'other' },
          { ...two, messageId: 'p', type: 'page' },
        ],
      }),
    )
  }
  const names = async (filter: LiveFilter): Promise<string[]> =>
    (await heardBy(live, filter, say)).map(({ event, data }) => `${event} ${data.destinationId ?? data.code ?? data.messageId}`)
  assert.deepEqual(await names({ sourceId: 's' }), ['accepted m', 'accepted p', 'rejected event_required', 'attempt d', 'attempt d2'])
  assert.deepEqual(await names({ sourceId: 'other' }), ['accepted o', 'attempt d2'])
  assert.deepEqual(await names({ destinationId: 'd' }), ['attempt d'])
  assert.deepEqual(await names({ type: 'page' }), ['accepted p', 'attempt d2'])
  assert.deepEqual(await names({ messageId: 'o' }), ['accepted o', 'attempt d2'])
  assert.deepEqual(await names({ sourceId: 'other', type: 'page' }), [])
})

test('a filter by event, user or outcome also matches the messages of an attempt', async (t) => {
  const live = feed(t)
  const message = attempted('d', 'success').messages[0] ?? assert.fail()
  const sent = (json: object | null) => ({ ...message, json: json === null ? null : JSON.stringify(json) })
  const say = (): void => {
    live.accepted(accepted('s', [track('m'), { type: 'page', anonymousId: 'a "quoted" one', messageId: 'p' }]))
    live.rejected({ sourceId: 's', code: 'event_required', messages: 1, sample: '' })
    live.attempted(attempted('ok', 'success'))
    live.attempted(attempted('bad', 'temporary', { messages: [sent({ event: 'sold', userId: 'v' })] }))
    live.attempted(attempted('two', 'success', { messages: [sent(null), sent({ anonymousId: 'a "quoted" one' })] }))
    // The text contains these words, but not as values of these fields.
    live.attempted(attempted('other', 'success', { messages: [sent({ event: 'x', properties: { event: 'bought', userId: 'u' } })] }))
  }
  const names = async (filter: LiveFilter): Promise<string[]> =>
    (await heardBy(live, filter, say)).map(({ event, data }) => `${event} ${data.destinationId ?? data.code ?? data.messageId}`)
  assert.deepEqual(await names({ event: 'bought' }), ['accepted m', 'attempt ok'])
  assert.deepEqual(await names({ userId: 'u' }), ['accepted m', 'attempt ok'])
  assert.deepEqual(await names({ userId: 'a "quoted" one' }), ['accepted p', 'attempt two'])
  assert.deepEqual(await names({ event: 'bought', userId: 'v' }), [])
  assert.deepEqual(await names({ what: 'accepted' }), ['accepted m', 'accepted p'])
  assert.deepEqual(await names({ what: 'rejected' }), ['rejected event_required'])
  assert.deepEqual(await names({ what: 'failure' }), ['rejected event_required', 'attempt bad'])
  assert.deepEqual(await names({ what: 'attempt', event: 'sold' }), ['attempt bad'])
})

test('dropped events are reported by kind', async (t) => {
  const live = feed(t, { eventsPerSecond: 1 })
  const [{ data } = assert.fail()] = await heardBy(live, {}, () => {
    live.accepted(accepted('s', [track('m'), track('n'), track('o')]))
    live.rejected({ sourceId: 's', code: 'event_required', messages: 1, sample: '' })
    live.attempted(attempted('d', 'success'))
    live.attempted(attempted('d', 'permanent'))
  })
  assert.deepEqual(data, { count: 5, accepted: 2, rejected: 1, attempts: 2, failures: 1 })
})

test('events dropped from a full buffer are also reported by kind', async (t) => {
  const live = feed(t, { bufferEvents: 1 })
  const [{ data } = assert.fail()] = await heardBy(live, {}, () => {
    for (const verdict of ['permanent', 'success', 'success'] as const) live.attempted(attempted('d', verdict))
  })
  assert.deepEqual(data, { count: 2, attempts: 2, failures: 1 })
})

test('events contain no secrets: none of a URL or a destination, and no write key of a rejected request', async (t) => {
  const live = feed(t)
  const heard = await heardBy(live, {}, () => {
    live.attempted(attempted('d', 'permanent'))
    for (const sample of ['{"writeKey":"hidden-key","type":"x"}', '{"type":"x", "writeKey" : "hidden\\"-key', '{"WriteKey":"hidden']) {
      live.rejected({ sourceId: null, code: 'invalid_write_key', messages: 1, sample })
    }
  })
  assert.equal(heard.length, 4)
  assert.doesNotMatch(JSON.stringify(heard), /password|token=|secret|whsec|hidden/)
})

test('a large message is sent without its content, and long fields are truncated', async (t) => {
  const live = feed(t)
  const [{ data } = assert.fail()] = await heardBy(live, {}, () => {
    live.accepted(accepted('s', [track('m', { event: 'e'.repeat(5_000), properties: { large: 'x'.repeat(20_000) } })]))
  })
  assert.equal(data.message, null)
  assert.ok(data.bytes > 25_000)
  assert.equal(data.event.length, 200)
})

test('a message that cannot be serialised does not affect the others', async (t) => {
  const live = feed(t)
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const heard = await heardBy(live, {}, () => live.accepted(accepted('s', [track('bad', { properties: circular }), track('good')])))
  assert.deepEqual(
    heard.map(({ data }) => [data.messageId, data.message === null]),
    [
      ['bad', true],
      ['good', false],
    ],
  )
})

test('for a listener that does not read, the oldest events are dropped and their number is reported', async (t) => {
  const live = feed(t, { bufferEvents: 3 })
  const heard = await heardBy(live, {}, () => {
    for (let at = 0; at < 10; at++) live.accepted(accepted('s', [track(`m-${at}`)]))
  })
  assert.deepEqual(
    heard.map(({ event, data }) => (event === 'dropped' ? data.count : data.messageId)),
    [7, 'm-7', 'm-8', 'm-9'],
  )
})

test('the buffer of a listener has at most a megabyte, however few events that is', async (t) => {
  const live = feed(t)
  const heard = await heardBy(live, {}, () => {
    for (let at = 0; at < 400; at++) live.accepted(accepted('s', [track(`m-${at}`, { properties: { large: 'x'.repeat(7_500) } })]))
  })
  const [{ event, data } = assert.fail()] = heard
  assert.equal(event, 'dropped')
  assert.equal(data.count + heard.length - 1, 400)
  assert.ok(heard.length < 150 && heard.length > 100, String(heard.length))
})

test('events above the rate limit cost no more than counting them', async (t) => {
  const live = feed(t, { eventsPerSecond: 5 })
  let written = 0
  const item = track('m')
  Object.defineProperty(item, 'properties', {
    enumerable: true,
    get: () => {
      written++
      return {}
    },
  })
  const heard = await heardBy(live, {}, () =>
    live.accepted(
      accepted(
        's',
        Array.from({ length: 1_000 }, () => item),
      ),
    ),
  )
  assert.deepEqual(
    heard.map(({ event, data }) => (event === 'dropped' ? data.count : event)),
    [995, ...Array.from({ length: 5 }, () => 'accepted')],
  )
  assert.equal(written, 5)
})

test('dropped events are reported even if no other event follows', async (t) => {
  const live = feed(t, { eventsPerSecond: 1 })
  const events = (live.listen({}, 'a token') ?? assert.fail())[Symbol.asyncIterator]()
  live.accepted(accepted('s', [track('m')]))
  assert.equal((await events.next()).value?.event, 'accepted')
  const next = events.next()
  live.accepted(accepted('s', [track('n'), track('o')]))
  const keepAlive = setTimeout(() => {}, 30_000)
  assert.deepEqual(await next, { done: false, value: { event: 'dropped', json: '{"count":2,"accepted":2}' } })
  clearTimeout(keepAlive)
})

test('without a listener, events are not read', (t) => {
  const live = feed(t)
  const untouchable = new Proxy(
    {},
    {
      get: () => assert.fail('it was read'),
    },
  )
  live.attempted({ ...attempted('d', 'success'), messages: untouchable as never })
  live.accepted({ ...accepted('s', []), content: untouchable as never })
  assert.equal(live.listeners, 0)
})

test('the number of listeners is limited, and a listener that leaves makes room', async (t) => {
  const live = feed(t, { maxListeners: 2 })
  const first = (live.listen({}, 'a token') ?? assert.fail())[Symbol.asyncIterator]()
  assert.ok(live.listen({}, 'a token') !== null)
  assert.equal(live.listen({}, 'a token'), null)
  const waiting = first.next()
  await first.return?.()
  assert.equal((await waiting).done, true)
  assert.equal(live.listeners, 1)
  assert.ok(live.listen({}, 'a token') !== null)
})

test('closing ends all streams, including those opened later', async (t) => {
  const live = feed(t)
  const waiting = (live.listen({}, 'a token') ?? assert.fail())[Symbol.asyncIterator]().next()
  live.close()
  assert.equal((await waiting).done, true)
  assert.equal((await (live.listen({}, 'a token') ?? assert.fail())[Symbol.asyncIterator]().next()).done, true)
  assert.equal(live.listeners, 0)
})

test('one token cannot use all streams', (t) => {
  const live = feed(t, { maxListeners: 5, maxPerToken: 3 })
  const open = ['viewer', 'viewer', 'viewer', 'viewer', 'admin', 'admin', 'admin'].map((tokenId) => live.listen({}, tokenId) !== null)
  assert.deepEqual(open, [true, true, true, false, true, true, false])
})
