// Analytics<Events>: the compiler checks calls against an event map. `npm run verify -- types` runs this test: each mark
// that expects an error fails if the compiler accepts the mistake below it.

import assert from 'node:assert/strict'
import test from 'node:test'
import { Analytics, type TrackParams } from '@switchyard/node'

interface Events {
  'Order Completed': { total: number; currency?: string }
  'Signed Up': { plan?: 'free' | 'pro' }
}

test('the compiler checks event names and properties against the event map', () => {
  const analytics = new Analytics<Events>({ writeKey: 'wk', disable: true }).on('error', () => {})
  const userId = 'u'
  analytics.track({ userId, event: 'Order Completed', properties: { total: 1 } })
  analytics.track({ userId, event: 'Order Completed', properties: { total: 1, currency: 'EUR' } })
  analytics.track({ userId, event: 'Signed Up' })
  analytics.track({ userId, event: 'Signed Up', properties: { plan: 'pro' } })
  // @ts-expect-error no such event
  analytics.track({ userId, event: 'Order Complete', properties: { total: 1 } })
  // @ts-expect-error total is a number
  analytics.track({ userId, event: 'Order Completed', properties: { total: '1' } })
  // @ts-expect-error total is required
  analytics.track({ userId, event: 'Order Completed', properties: {} })
  // @ts-expect-error properties are required where one of them is
  analytics.track({ userId, event: 'Order Completed' })
  // @ts-expect-error no such plan
  analytics.track({ userId, event: 'Signed Up', properties: { plan: 'gold' } })
  // @ts-expect-error properties of another event
  analytics.track({ userId, event: 'Signed Up', properties: { total: 1 } })
  // @ts-expect-error userId or anonymousId is required
  analytics.track({ event: 'Signed Up' })
  const params: TrackParams<Events> = { userId, event: 'Signed Up' }
  assert.equal(analytics.track(params), true)
})

test('without an event map, any event and any properties are accepted', () => {
  const analytics = new Analytics({ writeKey: 'wk', disable: true }).on('error', () => {})
  interface Order {
    total: number
  }
  const order: Order = { total: 1 }
  assert.equal(analytics.track({ userId: 'u', event: 'anything', properties: order }), true)
  // @ts-expect-error an event is a string
  analytics.track({ userId: 'u', event: 1 })
  // @ts-expect-error an event is required
  analytics.track({ userId: 'u' })
  // @ts-expect-error userId is a string
  analytics.identify({ userId: 1 })
  // @ts-expect-error previousId is required
  analytics.alias({ userId: 'u' })
})
