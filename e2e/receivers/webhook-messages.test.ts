// What a webhook gets, byte for byte: the fields of every type, the times and the context, through the whole service. The wall clock is
// stopped, so that times can be compared exactly.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { signBody } from '@switchyard/webhook'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Arrival, type ReceivedMessage, type Receiver, startReceiver } from '../system/receiver.ts'
import { type Wiring, wire } from '../system/wiring.ts'

interface Vectors {
  sharedSecret: string
  messages: { note: string; call: { type: string; messageId: string } | null; outbound: object; body: string; xSignature: string }[]
}

const NOW = '2026-11-14T09:00:00.200Z'
const { messages: vectors, sharedSecret } = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', '..', 'packages', 'webhook', 'vectors.json'), 'utf8'),
) as Vectors

const CALLS = {
  page: { userId: 'u-1', properties: { path: '/a', referrer: 'https://before.example/', title: 'A', url: 'https://shop.example/a' } },
  screen: {
    userId: 'u-1',
    name: 'Home',
    context: {
      device: { model: 'Phone 9', type: 'android' },
      os: { name: 'Android', version: '16' },
      app: { build: '42', name: 'Shop', version: '4.2' },
    },
  },
  identify: { userId: 'u-1', traits: { email: 'a@b.example', address: { city: 'Bern' } } },
  track: { userId: 'u-1', event: 'Order Completed', properties: { total: 12.5, items: [{ sku: 's' }, null] } },
  alias: { userId: 'u-2', previousId: 'anon-9' },
  group: { userId: 'u-1', groupId: 'g-1', traits: { name: 'Initech' } },
} as const
type Type = keyof typeof CALLS
const TYPES = Object.keys(CALLS) as Type[]

let service: InProcessService
let receiver: Receiver
let wiring: Wiring

before(async () => {
  service = await startInProcess({ wallMs: Date.parse(NOW) })
  receiver = await startReceiver()
  wiring = await wire(service, { urls: [receiver.url], sharedSecret })
})

after(async () => {
  await service[Symbol.asyncDispose]()
  await receiver.close()
})

async function arrivalOf(messageId: string): Promise<Arrival> {
  await receiver.until(() => receiver.byMessageId.has(messageId))
  return receiver.byMessageId.get(messageId)?.[0] as Arrival
}

/** The message that arrives for a call to the path of its type. */
async function outbound(
  type: Type,
  call: { messageId?: string; [field: string]: unknown },
  headers: Record<string, string> = {},
): Promise<ReceivedMessage> {
  const { messageId = randomUUID() } = call
  await wiring.post(`/v1/${type}`, { ...call, messageId }, headers)
  return (await arrivalOf(messageId)).messages[0] as ReceivedMessage
}

describe('Outbound webhook message', () => {
  test('version is the number 1, for every type', async () => {
    for (const type of TYPES) assert.equal((await outbound(type, CALLS[type]))['version'], 1)
  })

  test('type is one of page, screen, identify, track, alias, group', async () => {
    for (const type of TYPES) assert.equal((await outbound(type, CALLS[type])).type, type)
  })

  test('userId identifies the user', async () => {
    for (const type of TYPES.filter((type) => type !== 'alias')) assert.equal((await outbound(type, CALLS[type]))['userId'], 'u-1')
  })

  test('timestamp is ISO 8601 UTC with milliseconds, whatever form the call gave it in', async () => {
    for (const type of TYPES) assert.equal((await outbound(type, CALLS[type]))['timestamp'], NOW)
    for (const timestamp of ['2026-01-02T03:04:05Z', '2026-01-02T04:04:05+01:00', '2026-01-02T03:04:05.000Z']) {
      assert.equal((await outbound('track', { ...CALLS.track, timestamp }))['timestamp'], '2026-01-02T03:04:05.000Z')
    }
  })

  test('page has properties with path, referrer, title and url', async () => {
    const { properties } = await outbound('page', CALLS.page)
    assert.deepEqual(properties, CALLS.page.properties)
    assert.deepEqual((await outbound('page', { userId: 'u-1' }))['properties'], {}, 'an object also where the call had none')
  })

  test('screen has a name, and a context with device, os and app', async () => {
    const { name, context } = await outbound('screen', CALLS.screen)
    assert.deepEqual({ name, context }, { name: 'Home', context: CALLS.screen.context })
  })

  test('identify has the user’s traits', async () => {
    assert.deepEqual((await outbound('identify', CALLS.identify))['traits'], CALLS.identify.traits)
  })

  test('track has an event and free-form properties', async () => {
    const { event, properties } = await outbound('track', CALLS.track)
    assert.deepEqual({ event, properties }, { event: 'Order Completed', properties: CALLS.track.properties })
  })

  test('alias has the keys “Previous ID” and “User ID”, with a space, instead of userId', async () => {
    const message = await outbound('alias', CALLS.alias)
    assert.deepEqual([message['Previous ID'], message['User ID']], ['anon-9', 'u-2'])
    for (const key of ['userId', 'previousId']) assert.ok(!(key in message), key)
  })

  test('group has a groupId and the group’s traits', async () => {
    const { groupId, traits } = await outbound('group', CALLS.group)
    assert.deepEqual({ groupId, traits }, { groupId: 'g-1', traits: { name: 'Initech' } })
  })

  test('delete has only type, userId and timestamp, and no version', async () => {
    const { targets } = await service.api<{ targets: { deliveryId: string }[] }>('/deletions', {
      method: 'POST',
      body: { userIds: ['u-deleted'], sourceIds: [wiring.sourceId] },
    })
    assert.equal(targets.length, 1)
    const isIt = (message: ReceivedMessage): boolean => message.type === 'delete' && message['userId'] === 'u-deleted'
    await receiver.until(() => receiver.messages().some(isIt))
    assert.deepEqual(receiver.messages().find(isIt), { type: 'delete', userId: 'u-deleted', timestamp: NOW })
  })

  for (const { note, call, outbound } of vectors) {
    if (call === null) continue
    test(`the shared test vector arrives as expected: ${note}`, async () => {
      await wiring.send([call], { sentAt: NOW })
      const { bytes, headers, messages } = await arrivalOf(call.messageId)
      assert.deepEqual(messages, [outbound])
      assert.equal(headers['x-signature'], signBody(bytes, sharedSecret))
    })
  }

  test('a message also has messageId, anonymousId, context, integrations, name and category if the call had them', async () => {
    const more = { anonymousId: 'a-1', context: { locale: 'de-CH' }, integrations: { All: true } }
    for (const type of TYPES) {
      const message = await outbound(type, { ...CALLS[type], ...more, messageId: `with-${type}` })
      const { messageId, anonymousId, context, integrations } = message
      assert.deepEqual({ messageId, anonymousId, context, integrations }, { messageId: `with-${type}`, ...more })
    }
    for (const type of ['page', 'screen'] as const) {
      const { name, category } = await outbound(type, { ...CALLS[type], name: 'Shoes', category: 'Shop' })
      assert.deepEqual({ name, category }, { name: 'Shoes', category: 'Shop' })
    }
    const least = await outbound('track', { anonymousId: 'a-1', event: 'Least' })
    assert.equal(Object.keys(least).sort().join(' '), 'anonymousId context event messageId properties receivedAt timestamp type version')
  })

  test('neither the write key nor unknown fields of the message are sent', async () => {
    const messageId = randomUUID()
    const call = { type: 'track', messageId, ...CALLS.track, writeKey: wiring.writeKey, _metadata: { bundled: [] }, channel: 'server' }
    await wiring.send([call], { writeKey: wiring.writeKey })
    const { bytes, headers } = await arrivalOf(messageId)
    assert.ok(!bytes.includes(wiring.writeKey) && !JSON.stringify(headers).includes(wiring.writeKey))
    for (const key of ['writeKey', '_metadata', 'channel']) assert.ok(!bytes.includes(`"${key}"`), key)
  })

  test('the body equals what JSON.stringify makes of the parsed body, byte for byte', async () => {
    // Written by hand, because JSON.stringify would have normalized it before it was sent.
    const properties = `{"10":1,"9":2, "exponent":1e21,"long":12345678901234567890,"zero":-0,"one":1.0,"escaped":"\\u00e9\\/\\u2028",
      "raw":"é ✓ 😀 \u2028","lone":"\\ud800","nul":"\\u0000","twice":1,"twice":2,"__proto__":{"x":1},"":null,"deep":[[[{}]]]}`
    const messageId = randomUUID()
    const response = await fetch(`${service.url}/v1/track`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${wiring.writeKey}:`)}` },
      body: `{ "messageId":"${messageId}", "userId":"u-1", "event":"Odd \\ud83d\\ude00", "properties":${properties} }`,
    })
    assert.equal(response.status, 200)
    const { bytes, headers } = await arrivalOf(messageId)
    const text = bytes.toString()
    assert.equal(text, JSON.stringify(JSON.parse(text)))
    assert.equal(Buffer.from(text).compare(bytes), 0)
    assert.equal(headers['content-length'], String(bytes.length))
    const arrived = (JSON.parse(text) as { properties: unknown }).properties
    assert.equal(JSON.stringify(arrived), JSON.stringify(JSON.parse(properties)), 'nothing was lost or changed')
  })
})

describe('The times of a message', () => {
  const track = (times: object): Promise<ReceivedMessage> => outbound('track', { ...CALLS.track, ...times })
  const timesOf = ({ timestamp, originalTimestamp, sentAt, receivedAt }: ReceivedMessage): object => {
    return { timestamp, originalTimestamp, sentAt, receivedAt }
  }

  test('timestamp is receivedAt − (sentAt − originalTimestamp), so a sender’s clock may be an hour ahead', async () => {
    const sent = { timestamp: '2026-11-14T10:00:00.000Z', sentAt: '2026-11-14T10:00:07.500Z' }
    assert.deepEqual(timesOf(await track(sent)), {
      timestamp: '2026-11-14T08:59:52.700Z',
      originalTimestamp: '2026-11-14T10:00:00.000Z',
      sentAt: '2026-11-14T10:00:07.500Z',
      receivedAt: NOW,
    })
  })

  test('the sentAt of a batch is used for its messages', async () => {
    const messageId = randomUUID()
    await wiring.send([{ type: 'track', messageId, ...CALLS.track, timestamp: '2026-11-14T08:00:00.000Z' }], {
      sentAt: '2026-11-14T08:00:01.000Z',
    })
    const { messages } = await arrivalOf(messageId)
    assert.deepEqual(timesOf(messages[0] as ReceivedMessage), {
      timestamp: '2026-11-14T08:59:59.200Z',
      originalTimestamp: '2026-11-14T08:00:00.000Z',
      sentAt: '2026-11-14T08:00:01.000Z',
      receivedAt: NOW,
    })
  })

  test('a timestamp without sentAt is kept as it is: historical import', async () => {
    assert.deepEqual(timesOf(await track({ timestamp: '2019-03-01T00:00:00.000Z' })), {
      timestamp: '2019-03-01T00:00:00.000Z',
      originalTimestamp: '2019-03-01T00:00:00.000Z',
      sentAt: undefined,
      receivedAt: NOW,
    })
  })

  test('without a timestamp, the time of the service is used', async () => {
    assert.deepEqual(timesOf(await track({ sentAt: '2026-11-14T10:00:07.500Z' })), {
      timestamp: NOW,
      originalTimestamp: undefined,
      sentAt: '2026-11-14T10:00:07.500Z',
      receivedAt: NOW,
    })
  })
})

describe('The context of a message', () => {
  test('the context and integrations of a batch are defaults for those of each message', async () => {
    const [first, second] = [randomUUID(), randomUUID()]
    await wiring.send(
      [
        {
          type: 'track',
          messageId: first,
          ...CALLS.track,
          context: { locale: 'de-CH', traits: { plan: 'pro' } },
          integrations: { A: false },
        },
        { type: 'track', messageId: second, ...CALLS.track },
      ],
      { context: { locale: 'en-US', timezone: 'Europe/Zurich' }, integrations: { A: true, B: true } },
    )
    const [one] = (await arrivalOf(first)).messages
    const [two] = (await arrivalOf(second)).messages
    assert.deepEqual(one?.['context'], { locale: 'de-CH', timezone: 'Europe/Zurich', traits: { plan: 'pro' } })
    assert.deepEqual(two?.['context'], { locale: 'en-US', timezone: 'Europe/Zurich' })
    assert.deepEqual(one?.['integrations'], { A: false, B: true })
    assert.deepEqual(two?.['integrations'], { A: true, B: true })
  })

  const contextOf = async (call: object, headers: Record<string, string> = {}): Promise<unknown> =>
    (await outbound('track', { ...CALLS.track, ...call }, headers))['context']

  test('context.ip is the caller’s address for calls of a browser', async () => {
    assert.deepEqual(await contextOf({}, { origin: 'https://shop.example' }), { ip: '127.0.0.1' })
    assert.deepEqual(await contextOf({ writeKey: wiring.writeKey }, { 'content-type': 'text/plain' }), { ip: '127.0.0.1' })
  })

  test('context.ip is the caller’s address if context.direct is true', async () => {
    assert.deepEqual(await contextOf({ context: { direct: true } }), { direct: true, ip: '127.0.0.1' })
  })

  test('context.ip is not filled for calls of a server, whose address is not the user’s', async () => {
    assert.deepEqual(await contextOf({ context: { locale: 'de-CH' } }), { locale: 'de-CH' })
  })

  test('a given context.ip is kept', async () => {
    const context = { ip: '203.0.113.9', direct: true }
    assert.deepEqual(await contextOf({ context }, { origin: 'https://shop.example' }), context)
  })

  test('X-Forwarded-For is ignored unless it comes from a trusted proxy', async () => {
    assert.deepEqual(await contextOf({ context: { direct: true } }, { 'x-forwarded-for': '203.0.113.9' }), {
      direct: true,
      ip: '127.0.0.1',
    })
  })
})

describe('Events sent to webhook receivers', () => {
  for (const type of TYPES) {
    test(`${type}: ${/^[ai]/.test(type) ? 'an' : 'a'} ${type} message is routed to the destination`, async () => {
      const messageId = randomUUID()
      await wiring.send([{ type, messageId, ...CALLS[type] }])
      assert.equal((await wiring.settled(messageId)).state, 'delivered')
      const arrivals = receiver.byMessageId.get(messageId) as Arrival[]
      assert.deepEqual(
        arrivals.map(({ method, isBatch, messages }) => ({ method, isBatch, types: messages.map(({ type }) => type) })),
        [{ method: 'POST', isBatch: false, types: [type] }],
      )
    })
  }

  test('delete: a deletion request is created, once for each affected source with the destination enabled', async () => {
    await using own = await startReceiver()
    const first = await wire(service, { urls: [own.url] })
    const second = await wire(service)
    const without = await wire(service)
    await service.api(`/destinations/${first.destinationId}`, { method: 'PATCH', body: { sourceIds: [first.sourceId, second.sourceId] } })
    const disabled = await wire(service, { urls: [own.url], enabled: false })
    const sourceIds = [first, second, without, disabled].map(({ sourceId }) => sourceId)
    const { id } = await service.api<{ id: string }>('/deletions', { method: 'POST', body: { userIds: ['u-a', 'u-b'], sourceIds } })
    const { targets } = await service.api<{ targets: { userId: string; sourceId: string; destinationId: string | null }[] }>(
      `/deletions/${id}`,
    )
    const told = targets.filter(({ destinationId }) => destinationId !== null)
    assert.deepEqual(
      told.map(({ userId, sourceId }) => `${userId} ${sourceId}`).sort(),
      ['u-a', 'u-b'].flatMap((userId) => [first.sourceId, second.sourceId].map((sourceId) => `${userId} ${sourceId}`)).sort(),
    )
    await own.until(() => own.arrivals.length === 4)
    assert.deepEqual(
      own
        .messages()
        .map(({ type, userId }) => [type, userId].join(' '))
        .sort(),
      ['delete u-a', 'delete u-a', 'delete u-b', 'delete u-b'],
    )
  })
})
