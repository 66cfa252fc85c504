// How requests of one message become batches: the rules alone, and over real connections.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { JsonObject } from '@switchyard/protocol'
import { outboundMessage } from '../outbound/outbound-message.ts'
import { segmentEvent } from '../outbound/segment-event.ts'
import { readStoredBody, writeStoredBody } from '../store/port/stored-messages.ts'
import { type AcceptBatch, type AcceptResult, type SegmentContent, type Source, StoreUnavailable } from '../store/store.ts'
import { BASIC, configuration, deferred, ROUTING, source, type TrackingApi, trackingApi } from './fixtures/tracking-api.ts'
import { Gathering, gatheredContent, isGatherable, type Single } from './gathering.ts'

const ABOUT = { sourceId: 's', receivedAtMs: 1_000, ip: '192.0.2.1', browser: false, trace: null }

function single(item: JsonObject, about: Partial<SegmentContent> = {}, bytes = 100): Single {
  return { bytes, content: { ...ABOUT, sentAt: null, context: null, integrations: null, items: [item], ...about } }
}

const named = (messageId: string, about: Partial<SegmentContent> = {}): Single =>
  single({ type: 'track', event: 'e', userId: 'u', messageId }, about)
const idsOf = (requests: readonly Single[]): string[] => requests.map(({ content }) => String(content.items[0]?.['messageId']))

/** A gathering whose batches are stored when the test says so. */
function rig() {
  const stored: string[][] = []
  const ends: (() => void)[] = []
  const gathering = new Gathering<Single>((requests) => {
    stored.push(idsOf(requests))
    const { promise, resolve } = deferred()
    ends.push(resolve)
    return promise
  })
  const add = (...names: string[]): void => {
    for (const name of names) gathering.add(named(name))
  }
  return { gathering, stored, ends, add }
}

test('a lone request waits for the end of the turn only, and requests of one turn are one batch', async () => {
  const { stored, ends, add } = rig()
  add('1')
  assert.deepEqual(stored, [])
  await turn()
  assert.deepEqual(stored, [['1']])
  ends[0]?.()
  await turn()
  add('2', '3', '4')
  await turn()
  assert.deepEqual(stored, [['1'], ['2', '3', '4']])
})

test('requests that arrive while a batch is stored are the next batch, without a further turn', async () => {
  const { stored, ends, add } = rig()
  add('1')
  await turn()
  add('2')
  await turn()
  add('3')
  await turn()
  assert.deepEqual(stored, [['1']])
  ends[0]?.()
  await Promise.resolve()
  await Promise.resolve()
  assert.deepEqual(stored, [['1'], ['2', '3']])
})

test('many requests do not wait for the batch before them, and a batch has a limit', async () => {
  const { stored, ends, add } = rig()
  add('first')
  await turn()
  const many = Array.from({ length: 200 }, (_, at) => String(at))
  add(...many)
  assert.deepEqual(
    stored.map((batch) => batch.length),
    [1, 16, 64, 64],
  )
  for (const end of ends) end()
  await turn()
  assert.deepEqual(stored.flat(), ['first', ...many], 'in order, none lost')
})

test('nothing is kept of requests that were stored or refused at once', async () => {
  const gathering = new Gathering<Single>(() => Promise.resolve())
  for (let at = 0; at < 16; at++) gathering.add(named(String(at)))
  gathering.add(named('other', { ip: '192.0.2.9' }))
  assert.equal(gathering.size, 2)
  await turn()
  await turn()
  assert.equal(gathering.size, 0)
})

test('requests that differ in source, address or kind of client are in different batches', async () => {
  const { gathering, stored } = rig()
  for (const [name, about] of [
    ['1', {}],
    ['2', { sourceId: 't' }],
    ['3', { ip: '192.0.2.2' }],
    ['4', { ip: null }],
    ['5', { browser: true }],
    ['6', {}],
  ] as const)
    gathering.add(named(name, about))
  await turn()
  assert.deepEqual(stored, [['1', '6'], ['2'], ['3'], ['4'], ['5']])
})

test('a request that arrives much later than the first, or does not fit, is in another batch', async () => {
  const { gathering, stored, add } = rig()
  add('stored')
  await turn()
  for (const receivedAtMs of [1_000, 1_003, 1_004]) gathering.add(named(String(receivedAtMs), { receivedAtMs }))
  assert.deepEqual(stored, [['stored'], ['1000', '1003']])
  gathering.add(named('before', { receivedAtMs: 1_000 }))
  assert.deepEqual(stored.at(-1), ['1004'], 'the clock was set back')
  for (let at = 0; at < 7; at++) gathering.add(single({ messageId: `large ${at}` }, {}, 8 * 1024))
  assert.deepEqual(stored.at(-1), ['before', 'large 0', 'large 1', 'large 2', 'large 3', 'large 4'])
})

test('only requests of one small message are gathered, and only if the request has nothing else that is stored', () => {
  assert.ok(isGatherable(named('1')))
  assert.ok(isGatherable(named('1', { sentAt: 'x' })))
  const shared: Partial<SegmentContent>[] = [
    { items: [{}, {}] },
    { items: [] },
    { context: {} },
    { integrations: {} },
    { trace: { traceparent: 'x', tracestate: null } },
    { violations: { 0: [] } },
  ]
  for (const about of shared) assert.ok(!isGatherable(named('1', about)), JSON.stringify(about))
  assert.ok(!isGatherable(single({}, {}, 8 * 1024 + 1)))
  assert.ok(!isGatherable(single({ sentAt: 'not a time' }, { sentAt: '2026-01-01T00:00:00.000Z' })), 'that of the request may apply')
})

test('a gathered message is sent as if it had been stored alone', () => {
  const times = [undefined, null, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.500Z', 1_767_225_600_000, 'not a time']
  const singles = times
    .flatMap((timestamp) => times.flatMap((originalTimestamp) => times.map((own) => ({ timestamp, originalTimestamp, own }))))
    .flatMap(({ own, ...given }) =>
      [null, '2026-01-01T00:00:01.000Z', '2026-01-01T00:00:02Z', 'not a time'].map((sentAt, nth) =>
        single(
          {
            type: 'track',
            event: 'e',
            messageId: `${nth}`,
            ...given,
            ...(own === undefined ? {} : { sentAt: own }),
            context: { direct: true },
          },
          { sentAt },
        ),
      ),
    )
    .filter(isGatherable)
  assert.ok(singles.length > 300, `${singles.length} cases`)
  for (let at = 0; at < singles.length; at += 5) {
    const some = singles.slice(at, at + 5)
    const content = gatheredContent(some)
    const read = readStoredBody(writeStoredBody({ ...content, batch: content.items }), ABOUT)
    for (const [index, { content: alone }] of some.entries()) {
      assert.deepEqual(outboundMessage(read, index), outboundMessage(alone, 0))
      const { sentAt: _, ...rest } = segmentEvent(alone, 0)
      assert.deepEqual({ ...segmentEvent(read, index), sentAt: undefined }, { ...rest, sentAt: undefined })
    }
  }
})

// ── Over real connections ──

const callOf = (messageId: string): object => ({ event: 'e', userId: messageId, messageId })

/** An API whose store answers each batch when the test says so. */
async function slowApi(t: TestContext, ...settings: Parameters<typeof trackingApi> extends [TestContext, ...infer Rest] ? Rest : never) {
  const api = await trackingApi(t, ...settings)
  const taken: { batch: AcceptBatch; end: (answer: AcceptResult | Error) => void }[] = []
  api.store.accept = (batch) =>
    new Promise((resolve, reject) => {
      taken.push({ batch, end: (answer) => (answer instanceof Error ? reject(answer) : resolve(answer)) })
    })
  const until = async (isSo: () => boolean): Promise<void> => {
    const deadline = AbortSignal.timeout(30_000)
    while (!isSo()) await turn(undefined, { signal: deadline })
  }
  return { api, taken, until }
}

/** Sends calls over one connection, so that they arrive in this order and in the same turn. Resolves with the responses. */
async function pipelined(api: TrackingApi, ids: readonly string[], path = '/v1/track'): Promise<string> {
  const socket = connect(api.port, '127.0.0.1')
  await once(socket, 'connect')
  const requests = ids.map((id, at) => {
    const body = JSON.stringify(callOf(id))
    const last = at === ids.length - 1 ? 'Connection: close\r\n' : ''
    return `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${BASIC.Authorization}\r\n${last}Content-Length: ${body.length}\r\n\r\n${body}`
  })
  socket.write(requests.join(''))
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

const statusesIn = (text: string): string[] => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => String(status))

test('each request is answered after its message is stored, with what concerns it alone', async (t) => {
  const { api, taken, until } = await slowApi(t)
  let answered = 0
  const post = async (path: string, body: object) => {
    const answer = await api.post(path, body)
    answered++
    return answer
  }
  const all = [
    post('/v1/track', callOf('1')),
    post('/v1/track', callOf('2')),
    post('/v1/track', { ...callOf('warned'), timestamp: 'never' }),
    post('/v1/batch', { batch: [callOf('x'), { ...callOf('3'), type: 'track' }], sentAt: '2026-11-14T09:00:00.000Z' }),
  ]
  for (let stored = 0; stored < all.length; ) {
    await until(() => taken.length > 0)
    const { batch, end } = taken.shift() as (typeof taken)[number]
    assert.equal(answered, stored)
    stored += batch.messageIds.length
    end({ segment: 1, duplicates: [] })
    await until(() => answered === stored)
  }
  const [one, two, warned, three] = await Promise.all(all)
  assert.deepEqual([one?.text, two?.text], ['{"success":true}\n', '{"success":true}\n'])
  assert.match(JSON.stringify(warned?.body['warnings']), /timestamp_invalid/)
  assert.equal(three?.body['accepted'], 1)
  assert.match(JSON.stringify(three?.body['rejected']), /^\[\{"index":0,/)
  assert.deepEqual(api.accepted.flatMap(({ messageIds }) => messageIds).sort(), ['1', '2', '3', 'warned'])
})

test('pipelined calls are stored together, each once, and the stored body reads back', async (t) => {
  const api = await trackingApi(t)
  const ids = Array.from({ length: 40 }, (_, at) => `m${at}`)
  assert.deepEqual(new Set(statusesIn(await pipelined(api, ids))), new Set(['200']))
  assert.ok(api.accepted.length < ids.length, `${api.accepted.length} batches`)
  assert.deepEqual(
    api.accepted.flatMap(({ messageIds }) => messageIds),
    ids,
  )
  for (const { body, content, messageIds } of api.accepted) {
    const { items } = readStoredBody(body, ABOUT)
    assert.deepEqual(items, content.items)
    assert.deepEqual(
      items.map((item) => item?.['messageId']),
      messageIds,
    )
  }
})

test('a user who is suppressed, or a source that is disabled, while a request waits', async (t) => {
  const { api, taken, until } = await slowApi(t)
  const change = async (id: string, next: typeof api.store.configuration): Promise<number> => {
    const nth = taken.length
    const first = api.post('/v1/track', callOf(`before ${id}`))
    await until(() => taken.length === nth + 1)
    const waiting = api.post('/v1/track', callOf(id))
    // Its bytes are read in one of the next turns, and it then waits for the batch before it.
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal(taken.length, nth + 1)
    api.store.configuration = next
    taken[nth]?.end({ segment: 1, duplicates: [] })
    await first
    return (await waiting).status
  }
  assert.equal(await change('u', configuration([source('1')], { 1: ['u'] })), 200)
  assert.deepEqual(api.suppressed, [['1', 1]])
  assert.equal(await change('v', configuration([source('1', { enabled: false })])), 403)
  assert.equal(taken.length, 2, 'neither was stored')
})

test('a message that the store cannot take fails alone', async (t) => {
  const api = await trackingApi(t)
  api.store.accept = ({ messageIds }) =>
    messageIds.includes('m3') ? Promise.reject(new Error('cannot be stored')) : Promise.resolve({ segment: 1, duplicates: [] })
  const ids = Array.from({ length: 6 }, (_, at) => `m${at}`)
  assert.deepEqual(statusesIn(await pipelined(api, ids)), ['200', '200', '200', '500', '200', '200'])
})

test('a user who is suppressed while a batch fails, before its requests are stored one by one', async (t) => {
  const { api, taken, until } = await slowApi(t)
  const answers = pipelined(api, ['m0', 'm1'])
  await until(() => taken.length === 1)
  assert.deepEqual(taken[0]?.batch.messageIds, ['m0', 'm1'])
  api.store.configuration = configuration([source('1')], { 1: ['m0'] })
  taken[0]?.end(new Error('cannot be stored'))
  await until(() => taken.length === 2)
  assert.deepEqual(taken[1]?.batch.messageIds, ['m1'])
  taken[1]?.end({ segment: 1, duplicates: [] })
  assert.deepEqual(statusesIn(await answers), ['200', '200'])
  assert.deepEqual(api.suppressed, [['1', 1]])
})

test('a request that is received again has passed the rate limit', async (t) => {
  const { api, taken, until } = await slowApi(t, { rateLimitPerSecond: 4 })
  const answers = pipelined(api, ['m0', 'm1'])
  await until(() => taken.length === 1)
  // Another request uses up the limit meanwhile.
  const other = api.post('/v1/batch', { batch: Array.from({ length: 50 }, (_, at) => ({ ...callOf(`b${at}`), type: 'track' })) })
  await until(() => taken.length === 2)
  assert.equal((await api.post('/v1/track', callOf('late'))).status, 429)
  api.store.configuration = configuration([source('1')])
  taken[0]?.end(new Error('cannot be stored'))
  await until(() => taken.length === 3)
  for (const { end } of taken.slice(1)) end({ segment: 1, duplicates: [] })
  await until(() => api.accepted.flatMap(({ messageIds }) => messageIds).length === 52)
  assert.deepEqual([statusesIn(await answers), (await other).status], [['200', '200'], 200])
})

test('if the store is unavailable, every request gets a 503, and none counts towards the rate limit', async (t) => {
  const api = await trackingApi(t, { rateLimitPerSecond: 8 })
  api.store.accept = () => Promise.reject(new StoreUnavailable('the disk is full'))
  const ids = Array.from({ length: 6 }, (_, at) => `m${at}`)
  assert.deepEqual(
    statusesIn(await pipelined(api, ids)),
    Array.from({ length: 6 }, () => '503'),
  )
  api.store.accept = () => Promise.resolve({ segment: 1, duplicates: [] })
  assert.deepEqual(
    statusesIn(await pipelined(api, ids)),
    Array.from({ length: 6 }, () => '200'),
  )
})

test('the limit on the backlog refuses only requests to the destination that has reached it', async (t) => {
  const api = await trackingApi(
    t,
    {},
    {
      route: (_configuration, _sourceId, { items }) => ({
        ...ROUTING,
        shipments: items.some((item) => item?.['messageId'] === 'm2') ? ROUTING.shipments : [],
      }),
      backlogLimit: { isReached: ({ shipments }) => shipments.length > 0 },
    },
  )
  assert.deepEqual(statusesIn(await pipelined(api, ['m0', 'm1', 'm2', 'm3'])), ['200', '200', '503', '200'])
})

test('a source with privacy rules is not gathered, so no value is replaced twice', async (t) => {
  const api = await trackingApi(t)
  const privacy: Source['privacy'] = [{ path: 'userId', action: 'hash' }]
  api.store.configuration = configuration([source('1', { privacy })])
  const ids = ['a', 'b', 'c']
  assert.deepEqual(statusesIn(await pipelined(api, ids)), ['200', '200', '200'])
  assert.deepEqual(
    api.accepted.map(({ messageIds }) => messageIds),
    [['a'], ['b'], ['c']],
  )
})
