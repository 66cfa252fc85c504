// createTestClient: what it records, what it reports, and that it leaves nothing behind.

import assert from 'node:assert/strict'
import test from 'node:test'
import { Analytics } from '@switchyard/node'
import { createTestClient, PlanError, type TrackingPlan } from '@switchyard/node/testing'

const PLAN: TrackingPlan = {
  name: 'Shop',
  unplanned: 'observe',
  rules: [
    {
      type: 'track',
      event: 'Order Completed',
      mode: 'observe',
      schema: {
        type: 'object',
        required: ['total'],
        properties: { total: { type: 'number' }, status: { enum: ['new', 'repeat'] }, paidAt: { type: 'string', format: 'date-time' } },
        additionalProperties: false,
      },
    },
    { type: 'identify', mode: 'observe', schema: { type: 'object', properties: { email: { type: 'string', format: 'email' } } } },
  ],
}

test('calls are recorded as the service would get them', async () => {
  const analytics = createTestClient({ plan: PLAN })
  assert.ok(analytics instanceof Analytics)
  assert.equal(analytics.identify({ userId: 'u', traits: { email: 'a@example.com' } }), true)
  const called = new Promise((resolve) =>
    analytics.track({ userId: 'u', event: 'Order Completed', properties: { total: 1, paidAt: new Date(0), undefined } }, resolve),
  )
  analytics.alias({ userId: 'u', previousId: 'a' })
  analytics.enqueue({ type: 'track', userId: 'u', event: 'Order Completed', properties: { total: 2 } })
  assert.equal(await called, undefined)
  assert.deepEqual(
    analytics.messages.map(({ type, event, properties, traits }) => ({ type, event, data: properties ?? traits })),
    [
      { type: 'identify', event: undefined, data: { email: 'a@example.com' } },
      { type: 'track', event: 'Order Completed', data: { total: 1, paidAt: '1970-01-01T00:00:00.000Z' } },
      { type: 'alias', event: undefined, data: undefined },
      { type: 'track', event: 'Order Completed', data: { total: 2 } },
    ],
  )
  analytics.assertPlanned()
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 0, failed: 0, pending: 0 })
})

test('the error lists every violation, every unplanned event and every call that the service would reject', () => {
  const analytics = createTestClient({ plan: PLAN })
  analytics.track({ userId: 'u', event: 'Order Completed', properties: { total: 1 } })
  analytics.track({ userId: 'u', event: 'Order Completed', properties: { status: 'old', coupon: 'X' } })
  analytics.track({ userId: 'u', event: 'Order Complete', properties: { total: 1 } })
  // @ts-expect-error the mistake that is reported
  analytics.track({ event: 'Order Completed', properties: { total: 1 } })
  analytics.page({ userId: 'u', timestamp: 'yesterday' })
  assert.throws(
    () => analytics.assertPlanned(),
    (error) => {
      assert.ok(error instanceof PlanError)
      assert.deepEqual(error.message.split('\n'), [
        '4 of 5 calls do not fit the tracking plan "Shop":',
        '  call 2, track "Order Completed"',
        '    properties.total: expected a number, found nothing (missing_property)',
        '    properties.coupon: expected nothing, found a string (unplanned_property)',
        '    properties.status: expected one of "new", "repeat", found another string (wrong_value)',
        '  call 3, track "Order Complete"',
        '    event: expected the name of a planned event, found another name (unplanned_event)',
        '  call 4, track "Order Completed"',
        '    track was rejected: Either userId or anonymousId is required. (no_user_anon_id)',
        '  call 5, page',
        '    page: timestamp is not a Date, an ISO 8601 string or epoch milliseconds. The message is sent with the time of the call instead. (timestamp_invalid)',
        '    type: expected a planned type, found the type page (unplanned_event)',
      ])
      return true
    },
  )
  assert.equal(analytics.messages.length, 4)
  analytics.clear()
  analytics.assertPlanned()
  assert.equal(analytics.messages.length, 0)
})

test('without a plan only calls that the service would reject are reported; a plan file may leave out defaults', () => {
  const analytics = createTestClient()
  analytics.track({ userId: 'u', event: 'Anything', properties: { any: 1 } })
  analytics.assertPlanned()
  // @ts-expect-error the mistake that is reported
  analytics.identify({})
  assert.throws(() => analytics.assertPlanned(), /1 of 2 calls would be rejected by the service:\n {2}call 2, identify\n/)

  const rules = [{ type: 'identify', schema: { required: ['email'] } }]
  const open = createTestClient({ plan: { name: 'Open', rules } as unknown as TrackingPlan })
  open.track({ userId: 'u', event: 'Anything' })
  open.assertPlanned()
  open.identify({ userId: 'u' })
  assert.throws(() => open.assertPlanned(), /traits\.email: expected a value, found nothing/)
})

test('a plan that cannot be applied is an error, not a silent success', () => {
  assert.throws(() => createTestClient({ plan: 'plan.yaml' as unknown as TrackingPlan }), /plan must be a tracking plan/)
  const analytics = createTestClient({ plan: { ...PLAN, rules: [{ type: 'identify', mode: 'observe', schema: { typ: 'object' } }] } })
  analytics.identify({ userId: 'u' })
  assert.throws(() => analytics.assertPlanned(), /the rule identify of the tracking plan cannot be applied: .*"typ"/)
})

test('a client leaves no timer and no other work behind', () => {
  const before = process.getActiveResourcesInfo().length
  const analytics = createTestClient({ plan: PLAN })
  for (let at = 0; at < 100; at += 1) analytics.track({ userId: 'u', event: 'Order Completed', properties: { total: at } })
  assert.equal(process.getActiveResourcesInfo().length, before)
})
