// The client for tests, without a server: prints what it recorded and what it says about a call that is not as planned.

const { Analytics } = require('@switchyard/node')
const { createTestClient } = require('@switchyard/node/testing')

const plan = {
  name: 'Shop',
  unplanned: 'observe',
  rules: [
    { type: 'track', event: 'Order Completed', mode: 'observe', schema: { type: 'object', properties: { total: { type: 'number' } } } },
  ],
}
const analytics = createTestClient({ plan })
analytics.track({ userId: 'u', event: 'Order Completed', properties: { total: 1 } })
analytics.assertPlanned()
analytics.track({ userId: 'u', event: 'Order Completed', properties: { total: '1' } })
let message = ''
try {
  analytics.assertPlanned()
} catch (error) {
  message = error.message
}
console.log(JSON.stringify({ isAnalytics: analytics instanceof Analytics, events: analytics.messages.map(({ event }) => event), message }))
