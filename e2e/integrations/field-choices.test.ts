// The values that a tool offers for a field, with real definitions, through the whole service and a real host process. The tool that answers is a
// recording gateway.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { switchyard } from '../system/command-line.ts'
import { type Service, startService } from '../system/service.ts'
import { wire } from '../system/wiring.ts'
import { type Gateway, startGateway } from './gateway/recording-gateway.ts'

interface Choices {
  choices: { value: string; label: string; description?: string }[]
  nextPage: string | null
  error: { code: string; message: string } | null
}

const KEY = 'sample-secret-key'
const JSON_TYPE = { 'content-type': 'application/json' }
const LISTS = { data: ['Customers', 'Leads'].map((name, at) => ({ id: `list-${at}`, attributes: { name } })) }
const KLAVIYO = { type: 'integration', integration: 'actions-klaviyo', settings: { api_key: KEY } }
const LIST = { action: 'upsertProfile', field: 'list_id' }

let gateway: Gateway
let service: Service

before(async () => {
  gateway = await startGateway()
  service = await startService({ env: gateway.env })
})

beforeEach(() => {
  gateway.answer = () => ({ headers: JSON_TYPE, body: JSON.stringify(LISTS) })
})

after(async () => {
  await service[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
})

async function call(
  path: string,
  body: object,
  token = service.token,
): Promise<{ status: number; body: Choices & { code?: string; field?: string } }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(`${service.url}/api${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as Choices }
}

const SUBSCRIPTION = {
  name: 'Profile',
  action: 'upsertProfile',
  subscribe: 'type = "identify"',
  mapping: { email: { '@path': '$.traits.email' } },
}

test('a stored destination and settings that are not stored get the choices of the tool, and the mapping field is marked', async () => {
  const first = gateway.arrivals.length
  const { destinationId } = await wire(service, { ...KLAVIYO, subscriptions: [SUBSCRIPTION] })
  const expected = {
    choices: [
      { value: 'list-0', label: 'Customers' },
      { value: 'list-1', label: 'Leads' },
    ],
    nextPage: null,
    error: null,
  }
  assert.deepEqual(await call(`/destinations/${destinationId}/choices`, LIST), { status: 200, body: expected })
  assert.deepEqual(await call('/catalog/actions-klaviyo/choices', { ...LIST, settings: KLAVIYO.settings }), { status: 200, body: expected })
  const requests = gateway.requests().slice(first)
  assert.deepEqual(
    requests.map(({ method, host, path, headers }) => [method, host, path, headers['authorization']]),
    Array.from({ length: 2 }, () => ['GET', 'a.klaviyo.com', '/api/lists/', `Klaviyo-API-Key ${KEY}`]),
  )
  const { actions } = await service.api<{ actions: { slug: string; fields: { properties: Record<string, object> } }[] }>(
    '/catalog/actions-klaviyo',
  )
  const { fields } = actions.find(({ slug }) => slug === LIST.action) ?? assert.fail()
  assert.partialDeepStrictEqual(fields.properties['list_id'], { 'x-dynamic': 'values' })
})

test('choices that depend on other fields, the keys of an object and properties of list elements, as HubSpot has them', async () => {
  const first = gateway.arrivals.length
  const { destinationId } = await wire(service, {
    type: 'integration',
    integration: 'actions-hubspot-cloud',
    settings: { oauth: { accessToken: KEY } },
    subscriptions: [],
  })
  gateway.answer = ({ path }) => ({
    headers: JSON_TYPE,
    body: JSON.stringify({
      results: path.includes('/properties/')
        ? [
            { name: 'plan', label: 'Plan', type: 'string', hasUniqueValue: false, modificationMetadata: { readOnlyValue: false } },
            { name: 'code', label: 'Code', type: 'string', hasUniqueValue: true },
          ]
        : [{ labels: { plural: 'Cars' }, fullyQualifiedName: 'p1_cars', name: 'cars', objectTypeId: '2-1' }],
    }),
  })
  const ask = async (field: string, mapping: object = {}): Promise<Choices> => {
    const { status, body } = await call(`/destinations/${destinationId}/choices`, { action: 'upsertObject', field, mapping })
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const mapping = { object_details: { object_type: 'contact' }, associations: [{ object_type: 'p1_cars', id: { '@path': '$.x' } }] }
  const values = async (field: string): Promise<string[]> => (await ask(field, mapping)).choices.map(({ value }) => value)
  assert.ok((await values('object_details.object_type')).includes('p1_cars'))
  assert.deepEqual(await values('object_details.id_field_name'), ['hs_object_id', 'email', 'code'])
  assert.ok((await values('properties')).some((name) => name === 'plan'))
  assert.deepEqual(await values('associations[0].id_field_name'), ['hs_object_id', 'code'])
  const paths = gateway
    .requests()
    .slice(first)
    .map(({ path }) => path)
  assert.ok(
    paths.some((path) => path.endsWith('/properties/contact')) && paths.some((path) => path.endsWith('/properties/p1_cars')),
    paths.join(),
  )
  const { error } = await ask('object_details.id_field_name')
  assert.deepEqual(error, { code: 'integration_failed', message: "Select a value from the 'Object Type' field" })
})

test('errors have a stable code and a message without secrets, and deliveries are not affected', async () => {
  const { destinationId, ...wiring } = await wire(service, { ...KLAVIYO, subscriptions: [SUBSCRIPTION] })
  const ask = async (): Promise<Choices> => (await call(`/destinations/${destinationId}/choices`, LIST)).body
  gateway.answer = () => ({ status: 401, headers: JSON_TYPE, body: JSON.stringify({ errors: [{ detail: `Wrong key ${KEY}` }] }) })
  const refused = await ask()
  assert.equal(refused.error?.code, 'http_401')
  assert.match(refused.error?.message ?? '', /^The tool answered 401: /)
  assert.ok(!JSON.stringify(refused).includes(KEY), JSON.stringify(refused))
  gateway.answer = () => ({ headers: JSON_TYPE, body: JSON.stringify({ data: [{ id: KEY, attributes: { name: KEY } }] }) })
  assert.deepEqual(await ask(), { choices: [], nextPage: null, error: null })
  gateway.answer = () => ({ headers: JSON_TYPE, body: '{"data":{"id":"1"}}' })
  const id = await wiring
    .send([{ type: 'identify', userId: 'u', traits: { email: 'jane@example.com' }, messageId: 'after-lookups' }])
    .then(() => 'after-lookups')
  assert.equal((await wiring.settled(id)).state, 'delivered')
})

test('lookups are rejected for viewers, for fields that are not dynamic, and for unknown actions and destinations', async () => {
  const { destinationId } = await wire(service, { ...KLAVIYO, subscriptions: [SUBSCRIPTION] })
  const path = `/destinations/${destinationId}/choices`
  const { token } = await service.api<{ token: string }>('/tokens', { method: 'POST', body: { name: 'Viewer', role: 'viewer' } })
  const refusal = async (where: string, body: object, by?: string): Promise<unknown[]> => {
    const { status, body: answer } = await call(where, body, by)
    return [status, answer.code, answer.field]
  }
  assert.deepEqual(await refusal(path, LIST, token), [403, 'forbidden', undefined])
  assert.deepEqual(await refusal('/catalog/actions-klaviyo/choices', LIST, token), [403, 'forbidden', undefined])
  assert.deepEqual(await refusal(path, { ...LIST, field: 'email' }), [400, 'invalid_field', 'field'])
  assert.deepEqual(await refusal(path, { ...LIST, field: '__proto__.x' }), [400, 'invalid_field', 'field'])
  assert.deepEqual(await refusal(path, { ...LIST, action: 'other' }), [400, 'invalid_field', 'action'])
  assert.deepEqual(await refusal('/destinations/dst_none/choices', LIST), [404, 'destination_not_found', undefined])
  assert.deepEqual(await refusal('/catalog/none/choices', LIST), [404, 'integration_not_found', undefined])
  assert.deepEqual(await refusal('/catalog/actions-klaviyo/choices', LIST), [400, 'invalid_field', 'settings.api_key'])
  const webhook = await wire(service, { urls: ['https://receiver.example/'] })
  assert.deepEqual(await refusal(`/destinations/${webhook.destinationId}/choices`, LIST), [400, 'invalid_field', 'action'])
  const unsaved = { ...LIST, action: 'upsertObject', field: 'object_details.object_type' }
  const oauth = { clientId: 'c', clientSecret: 's', refreshToken: 'r' }
  const { body } = await call('/catalog/actions-hubspot-cloud/choices', { ...unsaved, settings: { oauth } })
  assert.equal(body.error?.code, 'invalid_authentication')
})

test('the command line lists choices, and marks dynamic fields', async () => {
  const { destinationId } = await wire(service, { ...KLAVIYO, subscriptions: [SUBSCRIPTION] })
  const listed = await switchyard(service, 'destinations', 'choices', destinationId, LIST.action, LIST.field)
  assert.equal(listed.code, 0, listed.stderr)
  assert.match(listed.stdout, /list-0 +Customers/)
  gateway.answer = () => ({ status: 401, headers: JSON_TYPE, body: '{}' })
  const refused = await switchyard(service, 'destinations', 'choices', destinationId, LIST.action, LIST.field)
  assert.deepEqual([refused.code, /The tool answered 401/.test(refused.stdout)], [1, true])
  const { stdout } = await switchyard(service, 'catalog', 'show', 'actions-hubspot-cloud', '--action', 'upsertObject')
  assert.match(stdout, /properties .*dynamic keys/)
  assert.match(stdout, /object_details .*dynamic properties object_type, id_field_name, property_group/)
  assert.ok(!stdout.includes('__segment_internal_directive'))
})
