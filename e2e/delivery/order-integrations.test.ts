// Ordered integrations: the order is that of deliveries, each with all of its subscriptions, and a request has at most one message of a key, because its
// answer decides message by message. The tool that answers is a recording gateway.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { type Gateway, type GatewayRequest, startGateway } from '../integrations/gateway/recording-gateway.ts'
import { type Service, startService } from '../system/service.ts'
import { Users } from '../system/user-order.ts'
import { type Wiring, wire } from '../system/wiring.ts'

const RETRY = { initialMs: 100, maxMs: 200, factor: 2 }
const WAITING = { deadlineMs: 120_000 }

let gateway: Gateway
let service: Service

before(async () => {
  gateway = await startGateway()
  service = await startService({ env: gateway.env })
})

beforeEach(() => {
  gateway.answer = () => undefined
})

after(async () => {
  await service[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
})

function ordered(integration: string, settings: object, subscriptions: object[], more: object = {}): Promise<Wiring> {
  return wire(service, { type: 'integration', integration, settings, subscriptions, retry: RETRY, order: {}, ...more })
}

/** What has arrived since a request, in order. */
function since<T>(first: number, read: (request: GatewayRequest) => T): T[] {
  return gateway
    .requests()
    .filter(({ number }) => number > first)
    .map(read)
}

const lastNumber = (): number => gateway.requests().at(-1)?.number ?? 0

describe('Ordered integrations', () => {
  test('no subscription of a message starts before the last one of the message before it has ended', async () => {
    const post = (channel: string) => ({
      name: channel,
      action: 'postToChannel',
      subscribe: 'type = "track"',
      mapping: {
        url: 'https://hooks.slack.com/services/T000/B000/sample',
        channel,
        text: { '@template': '{{userId}}/{{properties.number}}' },
      },
      enabled: true,
    })
    const read = ({ body }: GatewayRequest): string => {
      const { text, channel } = JSON.parse(body) as { text: string; channel: string }
      return `${text} ${channel}`
    }
    let give = (): void => {}
    const held = new Promise<void>((resolve) => {
      give = resolve
    })
    const seen = new Map<string, number>()
    gateway.answer = (request) => {
      const name = read(request)
      const times = (seen.get(name) ?? 0) + 1
      seen.set(name, times)
      if (name !== 'a/1 #second') return undefined
      // The second subscription fails at first; its retry is answered when the test says so.
      return times === 1 ? { status: 500 } : { after: held }
    }
    const first = lastNumber()
    const users = new Users()
    const wiring = await ordered('actions-slack', {}, [post('#first'), post('#second')])
    await wiring.send([users.message('a'), users.message('a'), users.message('b')])
    await gateway.until(() => seen.get('a/1 #second') === 2, WAITING)
    // Another user does not wait.
    assert.equal((await wiring.settled(users.id('b', 1), WAITING)).state, 'delivered')
    assert.equal((await wiring.delivery(users.id('a', 2), () => true)).attemptCount, 0)
    give()
    assert.equal((await wiring.settled(users.id('a', 2), WAITING)).state, 'delivered')
    const own = since(first, read).filter((name) => name.startsWith('a/'))
    assert.deepEqual(own.slice(0, 3).sort(), ['a/1 #first', 'a/1 #second', 'a/1 #second'])
    assert.deepEqual(own.slice(3).sort(), ['a/2 #first', 'a/2 #second'])
  })

  test('a batch has at most one message of a key, and each key is in order although requests fail', async () => {
    const mixpanel = {
      name: 'Track',
      action: 'trackEvent',
      subscribe: 'type = "track"',
      mapping: { event: { '@template': '{{userId}}/{{properties.number}}' }, distinct_id: { '@path': '$.userId' }, enable_batching: true },
      enabled: true,
    }
    const settings = { projectToken: 'sample-token', apiSecret: 'sample-secret-of-mixpanel', apiRegion: 'US 🇺🇸' }
    const read = ({ body }: GatewayRequest): string[] => {
      const sent = JSON.parse(body) as { event: string } | { event: string }[]
      return [sent].flat().map(({ event }) => event)
    }
    const ok: string[] = []
    let requests = 0
    gateway.answer = (request) => {
      requests++
      if (requests % 3 === 1) return { status: 500 }
      ok.push(...read(request))
      return undefined
    }
    const first = lastNumber()
    const users = new Users()
    const wiring = await ordered('actions-mixpanel', settings, [mixpanel], { batch: { size: 5, lingerMs: 50 } })
    const sent: string[] = []
    for (let request = 0; request < 6; request++) {
      const names = ['a', 'a', 'b', 'c', 'a', 'b'].slice(request % 3)
      await wiring.send(
        names.map((user) => {
          const message = users.message(user) as { messageId: string }
          sent.push(message.messageId)
          return message
        }),
      )
    }
    for (const id of sent) assert.equal((await wiring.settled(id, WAITING)).state, 'delivered')
    const batches = since(first, read)
    for (const events of batches) {
      const owners = events.map((event) => event.split('/')[0])
      assert.equal(new Set(owners).size, owners.length, events.join(' '))
    }
    assert.ok(
      batches.some(({ length }) => length > 1),
      'no request had several messages',
    )
    for (const user of ['a', 'b', 'c']) {
      const numbers = ok.filter((event) => event.startsWith(`${user}/`)).map((event) => Number(event.split('/')[1]))
      assert.deepEqual(
        numbers,
        Array.from(numbers, (_, at) => at + 1),
        user,
      )
    }
    assert.equal(ok.length, sent.length)
  })
})
