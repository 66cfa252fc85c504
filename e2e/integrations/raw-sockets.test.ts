// Integrations that speak other protocols than HTTP: the address guard checks their connections too.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startReceiver } from '../system/receiver.ts'
import { startService } from '../system/service.ts'
import { wire } from '../system/wiring.ts'

const KAFKA = {
  name: 'Kafka',
  type: 'integration',
  integration: 'actions-kafka',
  subscriptions: [
    {
      name: 'Send',
      action: 'send',
      subscribe: 'type = "track"',
      mapping: { topic: 'events', payload: { '@path': '$.properties' } },
      enabled: true,
    },
  ],
}
const SETTINGS = { clientId: 'sample', mechanism: 'plain', username: 'sample', password: 'sample-password', ssl_enabled: false }

for (const host of ['127.0.0.1', 'localhost']) {
  test(`a Kafka broker at ${host}, and private addresses are not allowed: failed for good, and nothing is dialled`, async () => {
    await using broker = await startReceiver()
    // A public host makes private addresses forbidden.
    await using service = await startService({ env: { SWITCHYARD_HOST: '0.0.0.0' } })
    const wiring = await wire(service, { ...KAFKA, settings: { ...SETTINGS, brokers: `${host}:${broker.port}` } })
    const delivery = await wiring.settled(await wiring.track({ properties: { plan: 'premium' } }))
    assert.deepEqual([delivery.state, delivery.reason, delivery.attemptCount], ['failed', 'address_refused', 1])
    assert.equal(broker.connections, 0)
  })
}
