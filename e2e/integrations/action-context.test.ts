// What an action gets beside the message, through the whole service and a real host process: what Segment's own app gives it, and without which
// integrations fail or behave differently. The tool that answers is a recording gateway.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { type Service, startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { type Wiring, wire } from '../system/wiring.ts'
import { type Gateway, startGateway } from './gateway/recording-gateway.ts'
import { isExecution, isLookup, TWILIO_STUDIO, twilioAnswer } from './receivers/twilio-studio.ts'

const RETRY = { initialMs: 100, maxMs: 1_000 }

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

function integration(slug: string, settings: object, more: object = {}): Promise<Wiring> {
  return wire(service, { type: 'integration', integration: slug, settings, retry: RETRY, ...more })
}

const BRAZE = { app_id: 'app', api_key: 'sample-key', endpoint: 'https://rest.iad-01.braze.com' }
const ORDER = {
  event: 'Order Completed',
  properties: {
    order_id: 'o-1',
    cart_id: 'c-1',
    total: 20,
    currency: 'EUR',
    source: 'shop',
    products: [{ product_id: 'p-1', name: 'Chair', variant: 'red', quantity: 1, price: 20 }],
  },
}

test('the presets of Braze for orders are delivered, with the sync mode of their action', async () => {
  const first = gateway.arrivals.length
  const wiring = await integration('actions-braze-cloud', BRAZE)
  const delivery = await wiring.settled(await wiring.track(ORDER))
  assert.equal(delivery.state, 'delivered', JSON.stringify(delivery.attempts))
  const [request] = gateway.requests().slice(first)
  assert.match(request?.body ?? '', /"name":"ecommerce.order_placed"/)
  assert.doesNotMatch(request?.body ?? '', /_update_existing_only/)
})

test('a sync mode that is set for a subscription reaches the action', async () => {
  const first = gateway.arrivals.length
  const wiring = await integration('actions-braze-cloud', BRAZE)
  const { subscriptions } = await service.api<{ subscriptions: { name: string; syncMode: string | null }[] }>(
    `/destinations/${wiring.destinationId}`,
  )
  const updating = subscriptions
    .filter(({ name }) => name.startsWith('Order Placed'))
    .map((each) => Object.assign({}, each, { syncMode: 'update' }))
  await wiring.change({ subscriptions: updating })
  assert.equal((await wiring.settled(await wiring.track(ORDER))).state, 'delivered')
  const [request] = gateway.requests().slice(first)
  assert.match(request?.body ?? '', /"_update_existing_only":true/)
})

const WAIT_S = 2
const EVENTS = [1, 2, 3].map((n) => ({ type: 'track', userId: `u-${n}`, event: 'Tested' }))

for (const [slug, settings, subscription] of [
  [
    'actions-emarsys',
    { api_user: 'sample', api_password: 'sample-password' },
    { name: 'Trigger', action: 'triggerEvent', mapping: { eventid: '12', key_field: '3', key_value: { '@path': '$.userId' } } },
  ],
  [
    'actions-klaviyo',
    { api_key: 'sample-key' },
    {
      name: 'Track',
      action: 'trackEvent',
      mapping: { profile: { email: 'jane@example.com' }, metric_name: 'Tested', properties: {}, enable_batching: true },
    },
  ],
] as const) {
  test(`${slug}: a batch that is refused with 429 is retried after the time that the tool asks for`, async () => {
    let refused = 0
    gateway.answer = () =>
      refused++ === 0
        ? { status: 429, headers: { 'retry-after': String(WAIT_S), 'content-type': 'application/json' }, body: '{}' }
        : undefined
    const wiring = await integration(slug, settings, {
      subscriptions: [{ ...subscription, subscribe: 'type = "track"', enabled: true }],
      batch: { size: EVENTS.length, lingerMs: 60_000 },
    })
    const events = EVENTS.map((event, at) => Object.assign({ messageId: `${slug}-${at}` }, event))
    await wiring.send(events)
    for (const { messageId } of events) {
      const { state, attemptCount, attempts } = await wiring.settled(messageId)
      assert.deepEqual([state, attemptCount], ['delivered', 2], JSON.stringify(attempts))
      const waitedMs = Date.parse(attempts.at(-1)?.startedAt ?? '') - Date.parse(attempts[0]?.startedAt ?? '')
      assert.ok(waitedMs >= WAIT_S * 950, `the next attempt came after ${waitedMs} ms`)
    }
  })
}

test('an IntegrationError with a status that the library retries is temporary, although the tool answered 200', async () => {
  let failures = 0
  gateway.answer = ({ path }) => {
    const token = { access_token: 'sample-token', expires_in: 3600 }
    const answer = path.includes('/oauth/token') ? token : { success: failures++ > 0 }
    return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(answer) }
  }
  const mapping = {
    external_id: '1234',
    lookup_field: 'email',
    data: { email: 'jane@example.com' },
    enable_batching: false,
    batch_size: 300,
    event_name: 'Audience Entered',
  }
  const wiring = await integration(
    'actions-marketo-static-lists',
    { folder_name: 'sample', api_endpoint: 'https://tool.example.com/path', client_id: 'sample', client_secret: 'sample' },
    { subscriptions: [{ name: 'Add', action: 'addToList', subscribe: 'type = "track"', mapping, enabled: true }] },
  )
  const { state, attemptCount, attempts } = await wiring.settled(await wiring.track())
  assert.deepEqual([state, attemptCount], ['delivered', 2], JSON.stringify(attempts))
  // The error is on the row of the request that was answered with 200.
  const shown = attempts.filter(({ url }) => !url.includes('/oauth/')).map(({ status, reason, error }) => [status, reason, error !== null])
  assert.deepEqual(shown, [
    [200, 'integration_retry', true],
    [200, null, false],
  ])
})

/** A contact and a company with the default mappings of their actions, for the same messages. */
const HUBSPOT = [
  { name: 'Contact', action: 'upsertContact', subscribe: 'type = "group"' },
  { name: 'Company', action: 'upsertCompany', subscribe: 'type = "group"' },
]
const HUBSPOT_SETTINGS = {
  oauth: { clientId: 'c', clientSecret: 'sample-secret', refreshToken: 'sample-refresh', accessToken: 'sample-access' },
}

test('HubSpot: the actions of one message share what they leave, in order, also when the second is retried', async () => {
  const first = gateway.arrivals.length
  let isDown = true
  gateway.answer = ({ host, path }) => {
    if (host !== 'api.hubapi.com') return undefined
    const id = path.startsWith('/crm/v3/objects/contacts/') ? 'contact-1' : 'company-1'
    if (path.startsWith('/crm/v3/objects/companies/') && isDown) {
      isDown = false
      return { status: 503 }
    }
    return { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ id, properties: {} }) }
  }
  const wiring = await integration('actions-hubspot-cloud', HUBSPOT_SETTINGS, { subscriptions: HUBSPOT })
  const traits = { name: 'Acme', email: 'jane@example.com' }
  await wiring.send([{ type: 'group', messageId: 'hubspot-1', userId: 'u-1', groupId: 'g-1', traits, context: { traits } }])
  const delivery = await wiring.settled('hubspot-1')
  assert.equal(delivery.state, 'delivered', JSON.stringify(delivery.attempts))
  const requests = gateway.requests().slice(first)
  assert.equal(requests.filter(({ path }) => path.startsWith('/crm/v3/objects/contacts/')).length, 1, 'the contact is not written again')
  assert.ok(
    requests.some(({ path, body }) => `${path} ${body}`.includes('contact-1') && `${path} ${body}`.includes('company-1')),
    'the company is associated with the contact',
  )
})

test('a preview counts a message that cannot be sent as failed, and shows the headers that would be sent', async () => {
  const mapping = { url: 'https://hooks.slack.com/services/T0/B0/x', text: { '@path': '$.properties.text' } }
  const subscription = { name: 'Post', action: 'postToChannel', subscribe: 'type = "track"', mapping }
  const wiring = await integration('actions-slack', {}, { subscriptions: [subscription] })
  interface Preview {
    data: { requests?: { headers: Record<string, string> }[]; error?: { reason: string } }[]
    summary: { sent: number; failed: number }
  }
  const preview = (properties: object): Promise<Preview> => {
    const message = { type: 'track', userId: 'u-1', event: 'Tested', properties }
    return service.api(`/destinations/${wiring.destinationId}/preview`, { method: 'POST', body: { message } })
  }
  const bad = await preview({})
  assert.deepEqual([bad.summary.sent, bad.summary.failed, bad.data[0]?.error?.reason], [0, 1, 'invalid_payload'])
  const good = await preview({ text: 'hello' })
  assert.deepEqual([good.summary.sent, good.summary.failed, good.data[0]?.error], [1, 0, undefined])
  assert.equal(good.data[0]?.requests?.[0]?.headers['host'], 'hooks.slack.com')
})

test('HubSpot: the schema of an object is read once for a subscription, and not for every message', async () => {
  const first = gateway.arrivals.length
  const schema = {
    results: ['email', 'plan'].map((name) => ({ name, type: 'string', fieldType: 'text', hasUniqueValue: name === 'email' })),
  }
  const written = (body: string): object => {
    const { inputs = [] } = JSON.parse(body === '' ? '{}' : body) as { inputs?: { id: string }[] }
    return { status: 'COMPLETE', results: inputs.map(({ id }) => ({ id: '1', properties: { email: id } })) }
  }
  gateway.answer = ({ path, body }) => ({
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(path.includes('/properties/') ? schema : written(body)),
  })
  const mapping = {
    object_details: {
      object_type: 'contact',
      id_field_name: 'email',
      id_field_value: { '@path': '$.userId' },
      property_group: 'contactinformation',
    },
    properties: { plan: 'premium' },
    association_sync_mode: 'upsert',
    enable_batching: false,
    batch_size: 100,
  }
  const subscription = { name: 'Object', action: 'upsertObject', subscribe: 'type = "track"', mapping, syncMode: 'upsert' }
  const wiring = await integration('actions-hubspot-cloud', HUBSPOT_SETTINGS, { subscriptions: [subscription] })
  const reads: number[] = []
  for (let count = 0; count < 3; count++) {
    const { state, attempts } = await wiring.settled(await wiring.track({ userId: `jane-${count}@example.com` }))
    assert.equal(state, 'delivered', JSON.stringify(attempts))
    const requests = gateway.requests().slice(first)
    reads.push(requests.filter(({ path }) => path.includes('/crm/v3/properties/')).length)
  }
  assert.ok((reads[0] ?? 0) > 0, 'the first message reads the schema')
  assert.deepEqual(new Set(reads), new Set([reads[0]]))
})

test('a feature flag can be overridden per destination; one that the integration does not ask for is refused', async () => {
  const settings = { projectToken: 'sample', apiSecret: 'sample', apiRegion: 'US 🇺🇸', strictMode: '1' }
  const track = { name: 'Track', action: 'trackEvent', subscribe: 'type = "track"' }
  const wiring = await integration('actions-mixpanel', settings, { subscriptions: [track], batch: { size: 2, lingerMs: 60_000 } })
  gateway.answer = () => ({
    status: 400,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code: 400, error: 'some data points failed', failed_records: [{ index: 0, message: 'invalid' }] }),
  })
  const states = async (name: string): Promise<string[]> => {
    const events = ['1', '2'].map((n) => ({ type: 'track', messageId: `${name}-${n}`, userId: `u-${n}`, event: 'Tested' }))
    await wiring.send(events)
    return await Promise.all(events.map(async ({ messageId }) => (await wiring.settled(messageId)).state))
  }
  assert.deepEqual(await states('off'), ['failed', 'failed'])
  await wiring.change({ settings: { features: { 'mixpanel-multistatus': true } } })
  assert.deepEqual(await states('on'), ['failed', 'delivered'])
  const saved = await service.api<{ settings: object }>(`/destinations/${wiring.destinationId}`)
  assert.deepEqual(saved.settings, { ...saved.settings, features: { 'mixpanel-multistatus': true } })
  await assert.rejects(
    wiring.change({ settings: { features: { 'no-such-flag': true } } }),
    /settings\.features\.no-such-flag.*is not a setting/s,
  )
})

test('Twilio Studio: one execution for a user in the cooling-off period, also after the service was killed', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-state-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const executions = (): number => gateway.requests().filter(isExecution).length
  const before = executions()
  let failures = 1
  // The first lookup fails: the entries that the action has set until then are not kept, so that the message can be retried.
  gateway.answer = (request) => {
    const isRefused = isLookup(request.path) && failures-- > 0
    return isRefused ? { headers: { 'content-type': 'application/json' }, status: 500, body: '{}' } : twilioAnswer(request)
  }
  const start = (): Promise<Service> => startService({ env: gateway.env, folder })
  const identify = (messageId: string, userId: string): object => ({ type: 'identify', messageId, userId })

  const first = await start()
  const current: Pick<Service, 'url' | 'api'> = { url: first.url, api: (...request) => first.api(...request) }
  const wiring = await wire(current, TWILIO_STUDIO)
  const sent = async (ids: readonly string[], userId: string): Promise<string[]> => {
    await wiring.send(ids.map((id) => identify(id, userId)))
    return (await Promise.all(ids.map((id) => wiring.settled(id)))).map(({ state }) => state).sort()
  }
  // A preview keeps nothing.
  await first.api(`/destinations/${wiring.destinationId}/preview`, { method: 'POST', body: { message: identify('preview', 'jane') } })
  assert.deepEqual(await sent(['studio-1'], 'jane'), ['delivered'])
  assert.equal(failures < 0, true, 'the lookup was retried')
  assert.deepEqual(await sent(['studio-2', 'studio-3'], 'jane'), ['failed', 'failed'])
  assert.deepEqual(await sent(['studio-4', 'studio-5'], 'joe'), ['delivered', 'failed'])
  assert.equal(executions() - before, 2)
  process.kill(first.pid, 'SIGKILL')
  await first[Symbol.asyncDispose]()

  await using again = await start()
  Object.assign(current, { url: again.url, api: (...request: Parameters<Service['api']>) => again.api(...request) })
  assert.deepEqual(await sent(['studio-6'], 'jane'), ['failed'])
  assert.equal(executions() - before, 2)
  // The entries of a user are deleted with the user. A host forgets them when it next reads the stored entries.
  await again.api('/deletions', { method: 'POST', body: { userIds: ['joe'] } })
  await eventually(
    async () => await sent([`studio-${randomUUID()}`], 'joe'),
    ([state]) => state === 'delivered',
  )
  assert.equal(executions() - before, 3)
})
