// The `secrets` of a destination reach the receiver, and nobody else: a receiver repeats them in its answer, and everything that the service shows,
// logs and writes to its store is searched for them.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { wire } from '../system/wiring.ts'

const SECRETS = { token: 'SECRET/one "1"', routingKey: 'SECRET-two-2' }
const REQUEST = {
  path: '/{{secrets.routingKey}}/{{userId}}',
  headers: { 'X-Key': 'Key {{secrets.routingKey}}' },
  body: {
    routing_key: { '@path': '$.secrets.routingKey' },
    text: { '@template': '{{event}} {{secrets.token}}' },
    products: { '@arrayPath': ['$.properties.products', { key: { '@path': '$.secrets.routingKey' } }] },
    all: { '@path': '$.' },
    flat: { '@flatten': { separator: '.', value: { '@path': '$.' } } },
  },
}
/** A message that tries to replace the secrets, and to read them. */
const CODE = `export default function (message) {
  console.log('secrets: ' + JSON.stringify(message.secrets) + typeof secrets)
  return { ...message, secrets: { token: 'of the message', routingKey: 'of the message' } }
}`

let service: InProcessService
let receiver: Receiver
let log = ''

before(async () => {
  service = await startInProcess({ onLog: (line) => void (log += line) })
  receiver = await startReceiver(({ path, headers, bytes }) => ({
    status: 400,
    body: `${path} ${String(headers['x-key'])} ${bytes.toString()}`,
  }))
})
after(async () => {
  await service[Symbol.asyncDispose]()
  await receiver.close()
})

test('secrets are sent in path, headers and body; no message can replace them, and nothing shows them', async () => {
  const settings = { urls: [receiver.url], secrets: SECRETS, request: REQUEST, transformation: { code: CODE }, sharedSecret: 'shared' }
  const wiring = await wire(service, settings)
  const { destinationId: id } = wiring
  const properties = { products: [{ secrets: { routingKey: 'of the product' } }] }
  const messageId = await wiring.track({ userId: 'u 1', properties })
  const delivery = await wiring.settled(messageId)

  const { path, headers, bytes } = receiver.arrivals[0] ?? assert.fail()
  assert.equal(path, '/SECRET-two-2/u%201')
  assert.equal(headers['x-key'], 'Key SECRET-two-2')
  const body = JSON.parse(bytes.toString()) as Record<string, unknown> & { all: Record<string, unknown> }
  assert.equal(body['routing_key'], 'SECRET-two-2')
  assert.match(String(body['text']), / SECRET\/one "1"$/)
  assert.deepEqual(body['products'], [{ key: 'SECRET-two-2' }])
  assert.deepEqual(body.all['secrets'], { token: 'of the message', routingKey: 'of the message' }, 'the whole message has no secret in it')

  assert.deepEqual([delivery.state, delivery.request?.headers['X-Signature']], ['failed', '(not shown)'])
  assert.match(delivery.request?.body ?? '', /"routing_key":"\(hidden\)"/)
  assert.match(delivery.attempts[0]?.responseStart ?? '', /"routing_key":"\(hidden\)"/)
  const { id: viewer, token } = await service.api<{ id: string; token: string }>('/tokens', {
    method: 'POST',
    body: { name: 'v', role: 'viewer' },
  })
  assert.ok(viewer)
  const asViewer = async (place: string, init: RequestInit = {}): Promise<unknown> => {
    const all = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return (await fetch(`${service.url}/api${place}`, { ...init, headers: all })).json()
  }
  const shown = [
    delivery,
    await wiring.message(messageId),
    await service.api(`/destinations/${id}`),
    await service.api(`/destinations/${id}/versions`),
    await service.api(`/destinations/${id}/health`),
    await service.api(`/destinations/${id}/preview`, { method: 'POST', body: { messageId } }),
    await service.api(`/destinations/${id}/preview`, {
      method: 'POST',
      body: { messageId, changes: { request: { ...REQUEST, format: 'form' } } },
    }),
    await service.api(`/destinations/${id}/test`, { method: 'POST', body: {} }),
    await service.api('/audit'),
    await service.api('/configuration'),
    await asViewer(`/deliveries/${delivery.id}`),
    await asViewer(`/destinations/${id}/preview`, { method: 'POST', body: JSON.stringify({ messageId }) }),
  ]
  assert.equal(receiver.arrivals.length, 2, 'the test was sent, too')
  for (const [at, view] of shown.entries()) assert.doesNotMatch(JSON.stringify(view), /SECRET[^}"]/, `view ${at}`)
  assert.match(JSON.stringify(shown[5]), /"url":"[^"]*\/\(hidden\)\/u%201"/)
  assert.doesNotMatch(log, /SECRET/)
})

test('a preview with changes can use secrets that it contains, and does not show them', async () => {
  const { destinationId: id } = await wire(service, { urls: [receiver.url] })
  const changes = {
    secrets: { key: 'SECRET-three' },
    request: { headers: { 'X-A': '{{secrets.key}}' }, body: { a: { '@template': '<{{secrets.key}}>' } } },
  }
  const { data } = await service.api<{ data: { request: { headers: Record<string, string>; body: string } }[] }>(
    `/destinations/${id}/preview`,
    {
      method: 'POST',
      body: { message: { type: 'track', userId: 'u', event: 'e' }, changes },
    },
  )
  const [{ request } = assert.fail()] = data
  assert.deepEqual([request.headers['X-A'], request.body], ['(hidden)', '{"a":"<(hidden)>"}'])
})

test('secrets survive a restart', async () => {
  const wiring = await wire(service, {
    urls: [receiver.url],
    secrets: SECRETS,
    request: { body: { '@path': '$.secrets.token' }, format: 'text' },
  })
  await service.restart()
  const { secrets } = await service.api<{ secrets: object }>(`/destinations/${wiring.destinationId}`)
  assert.deepEqual(secrets, { token: '(hidden)', routingKey: '(hidden)' })
  const before = receiver.arrivals.length
  await wiring.track()
  await receiver.until(() => receiver.arrivals.length > before)
  assert.equal(receiver.arrivals.at(-1)?.bytes.toString(), SECRETS.token)
})
