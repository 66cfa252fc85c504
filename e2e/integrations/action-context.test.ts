// What an action gets beside the message, through the whole service and a real host process: what Segment's own app gives it, and without which
// integrations fail or behave differently. The tool that answers is a recording gateway.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type Service, startService } from '../system/service.ts'
import { type Wiring, wire } from '../system/wiring.ts'
import { type Gateway, startGateway } from './gateway/recording-gateway.ts'

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
