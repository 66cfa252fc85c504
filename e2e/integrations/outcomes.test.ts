// How deliveries to integrations end, through the whole service: HTTP answers by the rules of webhooks, failures of the network, results message by
// message, and subscriptions that succeeded are not run again. The tool that answers is a recording gateway.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { type Answer, startReceiver } from '../system/receiver.ts'
import { type Service, startService } from '../system/service.ts'
import { type AttemptView, type Delivery, type Wiring, wire } from '../system/wiring.ts'
import { type Gateway, type GatewayRequest, startGateway } from './gateway/recording-gateway.ts'

const SLACK_URL = 'https://hooks.slack.com/services/T000/B000/sample'
/** Attempts do not contain the path, which is a credential. */
const SLACK_URL_SHOWN = 'https://hooks.slack.com/(hidden)'
const RETRY = { initialMs: 100, maxMs: 1_000 }
/** So long that a batch which goes out was full. */
const NEVER_MS = 60_000

type IntegrationAttempt = AttemptView & { subscription: string | null; method: string | null }

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

function integration(slug: string, settings: object, subscriptions: object[] | undefined, more: object = {}): Promise<Wiring> {
  return wire(service, { type: 'integration', integration: slug, settings, ...(subscriptions && { subscriptions }), retry: RETRY, ...more })
}

function slackSubscription(name: string, channel: string): object {
  const mapping = { url: SLACK_URL, channel, text: { '@template': '{{event}} by {{userId}}' } }
  return { name, action: 'postToChannel', subscribe: 'type = "track"', mapping, enabled: true }
}

const slack = (more?: object): Promise<Wiring> => integration('actions-slack', {}, [slackSubscription('Post', '#sales')], more)

/** Answers the first request like this and all others with 200. */
function failOnce(answer: Answer): void {
  let isFirst = true
  gateway.answer = () => {
    if (!isFirst) return undefined
    isFirst = false
    return answer
  }
}

function attemptsOf({ attempts }: Delivery): IntegrationAttempt[] {
  return attempts as IntegrationAttempt[]
}

function requestsSince(number: number): GatewayRequest[] {
  return gateway.requests().slice(number)
}

describe('Answers to an integration', () => {
  test('200: delivered, with the request in the attempt', async () => {
    const first = gateway.arrivals.length
    const wiring = await slack()
    const delivery = await wiring.settled(await wiring.track({ event: 'Signed up' }))
    assert.equal(delivery.state, 'delivered')
    assert.deepEqual(
      attemptsOf(delivery).map(({ subscription, method, url, status, reason }) => [subscription, method, url, status, reason]),
      [['Post', 'POST', SLACK_URL_SHOWN, 200, null]],
    )
    const [request] = requestsSince(first)
    assert.equal(`https://${request?.host}${request?.path}`, SLACK_URL)
    assert.deepEqual(JSON.parse(request?.body ?? ''), { channel: '#sales', text: 'Signed up by u-1' })
  })

  for (const status of [400, 401, 403, 404, 410]) {
    test(`${status} is permanent`, async () => {
      failOnce({ status, body: 'no' })
      const wiring = await slack()
      const delivery = await wiring.settled(await wiring.track())
      assert.deepEqual([delivery.state, delivery.reason, delivery.attemptCount], ['failed', `http_${status}`, 1])
      const [attempt] = attemptsOf(delivery)
      assert.deepEqual([attempt?.url, attempt?.status, attempt?.responseStart], [SLACK_URL_SHOWN, status, 'no'])
    })
  }

  for (const status of [408, 429, 500, 502, 503]) {
    test(`${status} is temporary: it is retried`, async () => {
      failOnce({ status })
      const wiring = await slack()
      const delivery = await wiring.settled(await wiring.track())
      assert.deepEqual([delivery.state, delivery.attemptCount], ['delivered', 2])
      assert.deepEqual(
        attemptsOf(delivery).map((attempt) => attempt.status),
        [status, 200],
      )
    })
  }

  test('429 with Retry-After: the next attempt waits as long as the tool asks', async () => {
    failOnce({ status: 429, headers: { 'retry-after': '2' } })
    const wiring = await slack()
    const { state, attempts } = await wiring.settled(await wiring.track())
    assert.equal(state, 'delivered')
    const [refused, accepted] = attempts
    const waitedMs = Date.parse(accepted?.startedAt ?? '') - Date.parse(refused?.startedAt ?? '')
    assert.ok(waitedMs >= 1_900, `the next attempt came after ${waitedMs} ms`)
  })

  test('a connection that is reset is temporary', async () => {
    failOnce({ reset: true })
    const wiring = await slack()
    const delivery = await wiring.settled(await wiring.track())
    assert.deepEqual(
      [delivery.state, attemptsOf(delivery).map(({ reason, status }) => [reason, status])],
      [
        'delivered',
        [
          ['connection_reset', null],
          [null, 200],
        ],
      ],
    )
  })

  test('no answer before the deadline: a timeout, which is temporary', async () => {
    failOnce({ hang: true })
    const wiring = await slack({ timeoutMs: 1_500 })
    const delivery = await wiring.settled(await wiring.track())
    assert.equal(delivery.state, 'delivered')
    const attempts = attemptsOf(delivery)
    const [timedOut, accepted] = [attempts.find(({ reason }) => reason === 'timeout'), attempts.at(-1)]
    assert.deepEqual([timedOut?.method, timedOut?.url, timedOut?.status, accepted?.status], ['POST', SLACK_URL_SHOWN, null, 200])
  })

  test('a payload that the action does not accept is permanent, and nothing is sent', async () => {
    const first = gateway.arrivals.length
    const mapping = { url: SLACK_URL, text: { '@path': '$.properties.text' } }
    const subscription = { name: 'Post', action: 'postToChannel', subscribe: 'type = "track"', mapping, enabled: true }
    const wiring = await integration('actions-slack', {}, [subscription])
    const delivery = await wiring.settled(await wiring.track())
    assert.deepEqual([delivery.state, delivery.reason], ['failed', 'invalid_payload'])
    assert.match(attemptsOf(delivery)[0]?.error ?? '', /missing the required field 'text'/)
    assert.equal(gateway.arrivals.length, first)
  })
})

describe('Several subscriptions', () => {
  test('only the subscription that failed is run again', async () => {
    const first = gateway.arrivals.length
    let failures = 0
    gateway.answer = ({ body }) => (body.includes('#support') && failures++ === 0 ? { status: 503 } : undefined)
    const wiring = await integration('actions-slack', {}, [
      slackSubscription('To sales', '#sales'),
      slackSubscription('To support', '#support'),
    ])
    const delivery = await wiring.settled(await wiring.track())
    assert.equal(delivery.state, 'delivered')
    assert.deepEqual(
      requestsSince(first)
        .map(({ body }) => (JSON.parse(body) as { channel: string }).channel)
        .sort(),
      ['#sales', '#support', '#support'],
    )
    assert.deepEqual(
      attemptsOf(delivery)
        .map(({ attempt, subscription, status }) => `${attempt} ${subscription} ${status}`)
        .sort(),
      ['1 To sales 200', '1 To support 503', '2 To support 200'],
    )
  })

  test('if one failed for good, the delivery failed, also when the others succeeded', async () => {
    gateway.answer = ({ body }) => (body.includes('#support') ? { status: 404 } : undefined)
    const wiring = await integration('actions-slack', {}, [
      slackSubscription('To sales', '#sales'),
      slackSubscription('To support', '#support'),
    ])
    const delivery = await wiring.settled(await wiring.track())
    assert.deepEqual([delivery.state, delivery.reason, delivery.attemptCount], ['failed', 'http_404', 1])
  })
})

describe('Batches', () => {
  const settings = { projectToken: 'sample-token', apiSecret: 'sample-secret-of-mixpanel', apiRegion: 'US 🇺🇸' }
  const batch = { size: 3, lingerMs: NEVER_MS }
  const mixpanel = {
    name: 'Track',
    action: 'trackEvent',
    subscribe: 'type = "track"',
    mapping: {
      event: { '@path': '$.event' },
      distinct_id: { '@path': '$.userId' },
      time: { '@path': '$.timestamp' },
      enable_batching: true,
    },
    enabled: true,
  }
  const events = (prefix: string) =>
    [1, 2, 3].map((n) => ({ type: 'track', messageId: `${prefix}-${n}`, userId: `u-${n}`, event: `Event ${n}` }))

  test('performBatch: one request for all messages, and each has its own delivery with it', async () => {
    const first = gateway.arrivals.length
    failOnce({ status: 500 })
    const wiring = await integration('actions-mixpanel', settings, [mixpanel], { batch })
    await wiring.send(events('batch'))
    for (const { messageId } of events('batch')) {
      const delivery = await wiring.settled(messageId)
      assert.deepEqual([delivery.state, attemptsOf(delivery).map(({ status }) => status)], ['delivered', [500, 200]])
    }
    const requests = requestsSince(first)
    assert.equal(requests.length, 2)
    for (const { body } of requests) {
      assert.deepEqual(
        (JSON.parse(body) as { event: string }[]).map(({ event }) => event),
        ['Event 1', 'Event 2', 'Event 3'],
      )
    }
  })

  test('secrets from the settings are not in what is recorded', async () => {
    gateway.answer = () => ({ status: 401, body: 'sample-secret-of-mixpanel is not a key' })
    const wiring = await integration('actions-mixpanel', settings, [mixpanel])
    const delivery = await wiring.settled(await wiring.track())
    assert.deepEqual([delivery.state, delivery.reason], ['failed', 'http_401'])
    assert.ok(gateway.requests().some(({ headers }) => headers['authorization'] === `Basic ${btoa('sample-secret-of-mixpanel:')}`))
    const recorded = JSON.stringify(delivery)
    assert.ok(!recorded.includes('sample-secret-of-mixpanel'))
    assert.ok(!recorded.includes(btoa('sample-secret-of-mixpanel:')))
  })

  test('a multi-status answer decides message by message', async () => {
    const details = [{ index: 1, errorMessage: 'The event name is not allowed.' }]
    gateway.answer = () => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify({ error: { details } }) })
    const subscription = {
      name: 'Send',
      action: 'sendEvent',
      subscribe: 'type = "track"',
      mapping: {
        data: { eventType: 'custom', eventName: { '@path': '$.event' }, eventTime: { '@path': '$.timestamp' } },
        userData: { externalId: { '@path': '$.userId' } },
        enable_batching: true,
      },
      enabled: true,
    }
    const wiring = await integration(
      'actions-ms-bing-capi',
      { UetTag: 'sample', ApiToken: 'sample-token', adStorageConsent: 'G' },
      [subscription],
      {
        batch,
      },
    )
    await wiring.send(events('multi'))
    const ended = await Promise.all(events('multi').map(({ messageId }) => wiring.settled(messageId)))
    assert.deepEqual(
      ended.map(({ state, reason }) => [state, reason]),
      [
        ['delivered', null],
        ['failed', 'http_400'],
        ['delivered', null],
      ],
    )
    assert.ok(attemptsOf(ended[1] as Delivery).some(({ error }) => error === 'The event name is not allowed.'))
  })
})

test('Slack, Amplitude and a webhook: one track, three deliveries with their requests', async () => {
  const first = gateway.arrivals.length
  await using receiver = await startReceiver()
  const wiring = await wire(
    service,
    { name: 'Slack', type: 'integration', integration: 'actions-slack', subscriptions: [slackSubscription('Post', '#sales')] },
    {
      name: 'Amplitude',
      type: 'integration',
      integration: 'actions-amplitude',
      settings: { apiKey: 'sample-api-key', secretKey: 'sample-secret-key' },
    },
    { name: 'Webhook', urls: [receiver.url] },
  )
  const messageId = await wiring.track({ event: 'Signed up' })
  const [slackDelivery, amplitudeDelivery, webhookDelivery] = await Promise.all(
    wiring.destinationIds.map((to) => wiring.settled(messageId, { to })),
  )
  for (const delivery of [slackDelivery, amplitudeDelivery, webhookDelivery]) assert.equal(delivery?.state, 'delivered')
  const shown = (delivery: Delivery | undefined) => attemptsOf(delivery as Delivery).map(({ method, url, status }) => [method, url, status])
  assert.deepEqual(shown(slackDelivery), [['POST', SLACK_URL_SHOWN, 200]])
  assert.deepEqual(shown(amplitudeDelivery), [['POST', 'https://api2.amplitude.com/2/httpapi', 200]])
  assert.deepEqual(shown(webhookDelivery), [[null, receiver.url, 200]])
  assert.deepEqual(
    requestsSince(first)
      .map(({ host }) => host)
      .sort(),
    ['api2.amplitude.com', 'hooks.slack.com'],
  )
  assert.deepEqual(
    receiver.messages().map(({ event }) => event),
    ['Signed up'],
  )
})
