// Integrations whose code reads values that only Segment's machines have, with the same values of the user (host-settings.ts): each is created through
// the API, and its requests contain them. Two destinations of one host process never see each other's.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { Answer } from '../system/receiver.ts'
import { type Service, startService } from '../system/service.ts'
import { type Wiring, wire } from '../system/wiring.ts'
import { signatureProblem } from './aws-signature.ts'
import { type Gateway, type GatewayRequest, startGateway } from './gateway/recording-gateway.ts'
import { acceptedByStandIn } from './seen/seen-actions.ts'

const CLIENT = { clientId: 'client-of-the-user', clientSecret: 'client-secret-of-the-user' }
const OAUTH = { ...CLIENT, refreshToken: 'refresh-token-of-the-user' }
const RETRY = { windowMs: 1_000, initialMs: 3_600_000, maxMs: 3_600_000 }
const TOKENS = { access_token: 'new-access-token', refresh_token: 'new-refresh-token' }

let gateway: Gateway
let service: Service

before(async () => {
  gateway = await startGateway()
  // One host, so that all destinations share a process.
  service = await startService({ env: { ...gateway.env, SWITCHYARD_INTEGRATION_HOSTS: '1' } })
})
beforeEach(() => {
  gateway.answer = () => undefined
})
after(async () => {
  await service[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
})

interface Tool {
  settings: object
  /** Undefined: the automatic presets. */
  subscription?: { action: string; mapping: object }
  event?: object
  more?: object
}

function create(slug: string, { settings, subscription, more }: Tool): Promise<Wiring> {
  const subscriptions = subscription && [{ name: 'Send', subscribe: 'type = "track"', enabled: true, ...subscription }]
  return wire(service, { type: 'integration', integration: slug, settings, ...(subscriptions && { subscriptions }), retry: RETRY, ...more })
}

/** Creates the destination, delivers one message, and returns the requests. */
async function send(slug: string, tool: Tool): Promise<GatewayRequest[]> {
  const wiring = await create(slug, tool)
  const first = gateway.arrivals.length
  const { state, attempts } = await wiring.settled(await wiring.track(tool.event))
  assert.equal(state, 'delivered', JSON.stringify(attempts))
  await acceptedByStandIn(service, wiring.destinationId, attempts)
  return gateway.requests().slice(first)
}

const addressOf = ({ method, host, path }: GatewayRequest): string => `${method} ${host}${path.split('?')[0]}`
const json = (value: object): Answer => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) })
/** Answers requests for tokens; all others get `other`. */
function answerTokens(isTokenRequest: RegExp, other: object = {}): void {
  gateway.answer = (request) => json(isTokenRequest.test(`${request.host}${request.path}`) ? TOKENS : other)
}

describe('Values that the code reads from the environment', () => {
  const facebook = (accessToken: string): Tool => ({
    settings: { pixelId: '1234', accessToken },
    subscription: {
      action: 'pageView',
      mapping: {
        action_source: 'website',
        event_time: { '@path': '$.timestamp' },
        event_source_url: 'https://shop.example.com/',
        user_data: { externalId: { '@path': '$.userId' }, client_user_agent: 'agent' },
      },
    },
  })

  test('Facebook Conversions API: the access token', async () => {
    const [request, ...others] = await send('actions-facebook-conversions-api', facebook('facebook-token-of-the-user'))
    assert.deepEqual(others, [])
    assert.match(addressOf(request as GatewayRequest), /^POST graph\.facebook\.com\/v[\d.]+\/1234\/events$/)
    assert.equal(request?.headers['authorization'], 'Bearer facebook-token-of-the-user')
  })

  test('two destinations of one process that send at the same time each use their own', async () => {
    const wirings = [
      await create('actions-facebook-conversions-api', facebook('token-one')),
      await create('actions-facebook-conversions-api', facebook('token-two')),
    ]
    const first = gateway.arrivals.length
    const sent = await Promise.all(
      Array.from({ length: 12 }, async (_, at) => {
        const wiring = wirings[at % 2] as Wiring
        return { wiring, id: await wiring.track({ userId: at % 2 === 0 ? 'one' : 'two' }) }
      }),
    )
    for (const { wiring, id } of sent) assert.equal((await wiring.settled(id)).state, 'delivered')
    const tokens = gateway
      .requests()
      .slice(first)
      .map(({ headers, body }) => {
        const { data } = JSON.parse(body) as { data: { user_data: { external_id: string | string[] } }[] }
        return [headers['authorization'], String(data[0]?.user_data.external_id)] as const
      })
    assert.equal(tokens.length, 12)
    const idsOf = (token: string): string[] => [...new Set(tokens.filter(([used]) => used === `Bearer ${token}`).map(([, id]) => id))]
    const [one, two] = [idsOf('token-one'), idsOf('token-two')]
    assert.deepEqual([one.length, two.length, one[0] === two[0]], [1, 1, false])
  })

  test('Google Ads: the developer token', async () => {
    const [request] = await send('actions-google-enhanced-conversions', {
      settings: { customerId: '123-456-7890', developerToken: 'google-developer-token', oauth: { ...OAUTH, accessToken: 'access' } },
      subscription: {
        action: 'uploadClickConversion',
        mapping: { conversion_action: '1', gclid: 'click-1', conversion_timestamp: { '@path': '$.timestamp' }, value: 1, currency: 'EUR' },
      },
    })
    assert.match(addressOf(request as GatewayRequest), /^POST googleads\.googleapis\.com\//)
    assert.deepEqual([request?.headers['developer-token'], request?.headers['authorization']], ['google-developer-token', 'Bearer access'])
  })

  test('Microsoft Advertising: the developer token', async () => {
    answerTokens(/oauth2/)
    const requests = await send('actions-ms-bing-ads-audiences', {
      settings: { customerAccountId: '1', customerId: '2', developerToken: 'microsoft-developer-token', oauth: OAUTH },
      subscription: {
        action: 'syncAudiences',
        mapping: {
          audience_id: 'audience-1',
          audience_key: 'buyers',
          computation_class: 'audience',
          traits_or_props: { '@path': '$.properties' },
          identifier_type: 'Email',
          email: 'jane@example.com',
          enable_batching: true,
          batch_size: 1_000,
        },
      },
      event: { properties: { buyers: true } },
    })
    const upload = requests.find(({ host }) => host.includes('bingads') || host.includes('api.ads')) ?? requests.at(-1)
    assert.equal(upload?.headers['developertoken'], 'microsoft-developer-token')
    assert.equal(upload.headers['authorization'], 'Bearer new-access-token')
  })

  test('Amazon Ads DSP and AMC: the client ID of the OAuth app', async () => {
    answerTokens(/\/auth\/o2\/token/)
    const requests = await send('actions-amazon-amc', {
      settings: { region: 'https://advertising-api.amazon.com', oauth: OAUTH },
      subscription: {
        action: 'syncAudiencesToDSP',
        mapping: {
          event_name: 'Audience Entered',
          externalUserId: { '@path': '$.userId' },
          audienceId: '1234',
          email: 'jane@example.com',
          enable_batching: true,
        },
      },
    })
    const [token, upload] = requests as [GatewayRequest, GatewayRequest]
    assert.equal(new URLSearchParams(token.body).get('client_id'), CLIENT.clientId)
    assert.equal(upload.headers['amazon-advertising-api-clientid'], CLIENT.clientId)
  })

  test('Amazon Conversions: the client ID and the client secret of the OAuth app', async () => {
    answerTokens(/\/auth\/o2\/token/)
    const requests = await send('actions-amazon-conversions-api', {
      settings: { region: 'https://advertising-api.amazon.com', advertiserId: '1234', oauth: OAUTH },
      subscription: {
        action: 'trackConversion',
        mapping: {
          name: 'Bought',
          eventType: 'OTHER',
          eventActionSource: 'website',
          countryCode: 'US',
          timestamp: { '@path': '$.timestamp' },
          matchKeys: { email: 'jane@example.com' },
          enable_batching: true,
        },
      },
    })
    const [token, upload] = requests as [GatewayRequest, GatewayRequest]
    const asked = new URLSearchParams(token.body)
    assert.deepEqual([asked.get('client_id'), asked.get('client_secret')], [CLIENT.clientId, CLIENT.clientSecret])
    assert.equal(upload.headers['amazon-ads-clientid'], CLIENT.clientId)
  })

  test('LinkedIn Conversions: an expired access token is renewed with the OAuth app', async () => {
    gateway.answer = ({ host, headers }) =>
      host === 'www.linkedin.com' ? json(TOKENS) : headers['authorization'] === 'Bearer expired' ? { status: 401 } : undefined
    const requests = await send('actions-linkedin-conversions', {
      settings: { oauth: { ...OAUTH, accessToken: 'expired' } },
      subscription: {
        action: 'streamConversion',
        mapping: {
          conversionHappenedAt: { '@path': '$.timestamp' },
          email: 'jane@example.com',
          onMappingSave: { inputs: {}, outputs: { id: '1234' } },
          enable_batching: false,
        },
      },
    })
    const renewal = requests.find(({ host }) => host === 'www.linkedin.com')
    assert.equal(new URLSearchParams(renewal?.body).get('client_id'), CLIENT.clientId)
    assert.equal(requests.at(-1)?.headers['authorization'], 'Bearer new-access-token')
  })

  test('Memora: sends to the production system', async () => {
    const requests = await send('actions-memora', {
      settings: { username: 'name', password: 'word', twilioAccount: 'AC1234' },
      subscription: {
        action: 'upsertProfile',
        mapping: {
          memora_store: 'store-1',
          profile_identifiers: { 'Contact.$.email': 'jane@example.com' },
          profile_traits: { 'Contact.$.firstName': 'Jane' },
        },
      },
    })
    assert.deepEqual([...new Set(requests.map(({ host }) => host))], ['memory.twilio.com'])
  })
})

describe('Integrations with an OAuth app of the user', () => {
  test('Blackbaud: renews the token, and creates a gift', async () => {
    gateway.answer = ({ host, path }) =>
      json(host.startsWith('oauth2.') ? TOKENS : path.includes('/search') ? { count: 1, value: [{ id: '1' }] } : { id: '1' })
    const requests = await send('actions-blackbaud-raisers-edge-nxt', {
      settings: { bbApiSubscriptionKey: 'subscription-key', oauth: OAUTH },
      subscription: {
        action: 'createGift',
        mapping: { amount: 5, fund_id: '1', payment_method: 'Cash', constituent_id: '1' },
      },
    })
    assert.equal(new URLSearchParams(requests[0]?.body).get('refresh_token'), OAUTH.refreshToken)
    assert.equal(requests.at(-1)?.headers['authorization'], 'Bearer new-access-token')
  })

  test('Hilo: renews the token, and sends an event', async () => {
    answerTokens(/\/oauth\/token/)
    const [token, event] = await send('actions-hilo', { settings: { integrationId: 'integration-1', oauth: OAUTH } })
    assert.equal(new URLSearchParams(token?.body).get('client_secret'), CLIENT.clientSecret)
    assert.equal(event?.headers['authorization'], 'Bearer new-access-token')
    assert.match(event?.path ?? '', /integration_id=integration-1/)
  })

  test('Reddit Audiences: renews the token, and adds a user', async () => {
    answerTokens(/access_token/)
    const [token, upload] = await send('actions-reddit-audiences', {
      settings: { ad_account_id: 'account-1', oauth: OAUTH },
      subscription: {
        action: 'syncAudience',
        mapping: {
          segment_computation_action: 'audience',
          computation_key: 'buyers',
          external_audience_id: 'audience-1',
          email: 'jane@example.com',
          traits_or_props: { '@path': '$.properties' },
        },
      },
      event: { properties: { buyers: true } },
    })
    const basic = Buffer.from(`${CLIENT.clientId}:${CLIENT.clientSecret}`).toString('base64')
    assert.deepEqual([token?.host, token?.headers['authorization']], ['www.reddit.com', `Basic ${basic}`])
    assert.match(upload?.path ?? '', /audience-1/)
    assert.equal(upload?.headers['authorization'], 'Bearer new-access-token')
  })

  test('Yotpo: requests a token with the app alone, and sends data', async () => {
    answerTokens(/\/oauth\/token/)
    const [token, data] = await send('yotpo-actions', {
      settings: { store_id: 'store-1', oauth: CLIENT },
      subscription: { action: 'sendData', mapping: { data: { '@path': '$.' } } },
    })
    assert.deepEqual(JSON.parse(token?.body ?? ''), {
      client_id: CLIENT.clientId,
      client_secret: CLIENT.clientSecret,
      grant_type: 'authorization_code',
    })
    assert.equal(data?.headers['x-yotpo-token'], 'new-access-token')
  })

  test('Attio: an access token is enough', async () => {
    gateway.answer = () => json({ data: { id: { record_id: 'record-1' } } })
    const requests = await send('actions-attio', {
      settings: { oauth: { accessToken: 'attio-token' } },
      subscription: { action: 'identifyUser', mapping: { email_address: 'jane@example.com', user_id: { '@path': '$.userId' } } },
    })
    assert.ok(requests.length > 0)
    for (const { host, headers } of requests) assert.deepEqual([host, headers['authorization']], ['api.attio.com', 'Bearer attio-token'])
  })

  test('Google Sheets (dev only): renews the token at the address of Google', async () => {
    answerTokens(/^oauth2\.googleapis\.com\/token/, { values: [] })
    const requests = await send('actions-google-sheets-dev', {
      settings: { oauth: OAUTH },
      subscription: {
        action: 'postSheet',
        mapping: {
          record_identifier: 'r1',
          operation_type: 'new',
          spreadsheet_id: 'sheet-1',
          spreadsheet_name: 'Sheet1',
          data_format: 'RAW',
          fields: { plan: 'pro' },
          batch_size: 1_001,
          batch_bytes: 2_000_000,
        },
      },
    })
    assert.deepEqual([requests[0]?.host, requests.at(-1)?.host], ['oauth2.googleapis.com', 'sheets.googleapis.com'])
    assert.equal(requests.at(-1)?.headers['authorization'], 'Bearer new-access-token')
  })

  test('Extensible Webhook: renews the token at the URL of the user', async () => {
    answerTokens(/^login\.example\.com\/token/, {})
    const subscription = { action: 'send', mapping: { url: 'https://api.example.com/events', method: 'POST', data: { plan: 'pro' } } }
    const first = await send('actions-webhook-extensible', {
      settings: { tokenUrl: 'https://login.example.com/token', oauth: OAUTH },
      subscription,
    })
    const asked = new URLSearchParams(first[0]?.body)
    assert.deepEqual(
      [first[0]?.host, asked.get('grant_type'), asked.get('refresh_token')],
      ['login.example.com', 'refresh_token', OAUTH.refreshToken],
    )
    assert.deepEqual(
      [first[1]?.host, first[1]?.headers['authorization'], first[1]?.body],
      ['api.example.com', 'Bearer new-access-token', '{"plan":"pro"}'],
    )
  })

  test('Extensible Webhook: without a refresh token, requests a token with the app alone', async () => {
    answerTokens(/^login\.example\.com\/token/, {})
    const [token, event] = await send('actions-webhook-extensible', {
      settings: { tokenUrl: 'https://login.example.com/token', oauth: CLIENT },
      subscription: { action: 'send', mapping: { url: 'https://api.example.com/events', method: 'POST', data: { plan: 'pro' } } },
    })
    const asked = new URLSearchParams(token?.body)
    const basic = Buffer.from(`${CLIENT.clientId}:${CLIENT.clientSecret}`).toString('base64')
    assert.deepEqual([token?.host, asked.get('grant_type'), asked.get('refresh_token')], ['login.example.com', 'client_credentials', null])
    assert.equal(token?.headers['authorization'], `Basic ${basic}`)
    assert.deepEqual([event?.host, event?.headers['authorization']], ['api.example.com', 'Bearer new-access-token'])
  })
})

describe('Integrations that write files for Segment to upload, unless a flag tells them not to', () => {
  const KEYS = { id: 'AKIDOFTHEUSER', secret: 'secret-of-the-user' }

  /** Delivers so many messages in one batch, and returns the requests. */
  async function sendBatch(slug: string, size: number, tool: Tool): Promise<GatewayRequest[]> {
    const wiring = await create(slug, { ...tool, more: { batch: { size, lingerMs: 60_000, bytes: 5_000_000 }, timeoutMs: 30_000 } })
    const first = gateway.arrivals.length
    const messages = Array.from({ length: size }, (_, at) => ({
      type: 'track',
      messageId: `${wiring.sourceId}-${at}`,
      userId: `user-${at}`,
      event: 'Audience Entered',
      properties: { email: `user-${at}@example.com` },
    }))
    for (let at = 0; at < size; at += 500) await wiring.send(messages.slice(at, at + 500))
    const { state, attempts } = await wiring.settled(messages[0]?.messageId as string)
    assert.equal(state, 'delivered', JSON.stringify(attempts))
    await acceptedByStandIn(service, wiring.destinationId, attempts)
    return gateway.requests().slice(first)
  }

  test('LiveRamp: a file with 25 users in the bucket of the user', async () => {
    gateway.answer = (request) => (signatureProblem(request, new Map([[KEYS.id, KEYS.secret]])) === null ? undefined : { status: 403 })
    const [request, ...others] = await sendBatch('actions-liveramp-audiences', 25, {
      settings: { __segment_internal_engage_force_full_sync: true, __segment_internal_engage_batch_sync: true },
      subscription: {
        action: 'audienceEnteredS3',
        mapping: {
          s3_aws_access_key: KEYS.id,
          s3_aws_secret_key: KEYS.secret,
          s3_aws_bucket_name: 'liveramp-of-the-user',
          s3_aws_region: 'us-west-2',
          audience_key: { '@path': '$.userId' },
          unhashed_identifier_data: { email: { '@path': '$.properties.email' } },
          delimiter: ',',
          filename: 'users.csv',
          enable_batching: true,
        },
      },
    })
    assert.deepEqual(others, [])
    assert.equal(addressOf(request as GatewayRequest), 'PUT liveramp-of-the-user.s3.amazonaws.com/users.csv')
    assert.equal(request?.body.split('\n').length, 26)
  })

  test('The Trade Desk: 1,500 users in one upload to the address that it returned', async () => {
    gateway.answer = ({ host }) => json(host === 'api.thetradedesk.com' ? { Url: 'https://drop.example.com/upload' } : {})
    const [ask, upload, ...others] = await sendBatch('actions-the-trade-desk-crm', 1_500, {
      settings: {
        auth_token: 'trade-desk-token',
        advertiser_id: 'advertiser-1',
        __segment_internal_engage_force_full_sync: true,
        __segment_internal_engage_batch_sync: true,
      },
      subscription: {
        action: 'syncAudience',
        mapping: { external_id: 'segment-1', pii_type: 'Email', email: { '@path': '$.properties.email' }, enable_batching: true },
      },
    })
    assert.deepEqual(others, [])
    assert.match(addressOf(ask as GatewayRequest), /^POST api\.thetradedesk\.com\/v3\/crmdata\/segment\/advertiser-1\/segment-1$/)
    assert.equal(addressOf(upload as GatewayRequest), 'PUT drop.example.com/upload')
    assert.equal(upload?.body.trim().split('\n').length, 1_500)
  })
})
