// What an integration keeps between messages is kept for all nodes: a user in the cooling-off period of Twilio Studio gets one execution, whichever
// node delivers the next message, also after the node that delivered the first was killed.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { type Gateway, startGateway } from '../integrations/gateway/recording-gateway.ts'
import { isExecution, TWILIO_STUDIO, twilioAnswer } from '../integrations/receivers/twilio-studio.ts'
import { eventually } from '../system/signals.ts'
import { type MessageView, wire } from '../system/wiring.ts'
import { type Cluster, type Node, startCluster } from './cluster.ts'

/** A host asks for the entries again if its copy is older than a second. */
const SEEN_MS = 1_100

let gateway: Gateway
let cluster: Cluster
before(async () => {
  gateway = await startGateway()
  gateway.answer = twilioAnswer
  cluster = await startCluster({ nodes: 2, service: () => ({ env: gateway.env }) })
})
after(async () => {
  await cluster[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
})

test('a cooling-off period that began on one node holds on the other, also after the first was killed', async () => {
  const [here, there] = [cluster.node(1), cluster.node(2)]
  const executions = (): number => gateway.requests().filter(isExecution).length
  const { writeKey, destinationId } = await wire(here.service, TWILIO_STUDIO)
  await cluster.known(`/destinations/${destinationId}`)
  const identified = async (node: Node, userId: string): Promise<string> => {
    const messageId = `${userId}-${node.name}-${gateway.arrivals.length}`
    const headers = { authorization: `Basic ${btoa(`${writeKey}:`)}`, 'content-type': 'application/json' }
    const response = await fetch(`${node.url}/v1/identify`, { method: 'POST', headers, body: JSON.stringify({ messageId, userId }) })
    assert.equal(response.status, 200, await response.text())
    const { state } = await eventually(
      async () => {
        const [delivery] = (await node.service.api<MessageView>(`/messages/${messageId}`)).deliveries
        assert.ok(delivery, `${messageId} is not owed`)
        return delivery
      },
      (delivery) => delivery.state !== 'pending',
    )
    return state
  }
  assert.equal(await identified(here, 'jane'), 'delivered')
  assert.equal(await identified(there, 'jane'), 'failed', 'the other node has just read the entries')
  // Both nodes have a copy of the entries now, which is a second old at most.
  assert.equal(await identified(there, 'joe'), 'delivered')
  await setTimeout(SEEN_MS)
  assert.equal(await identified(here, 'joe'), 'failed')
  assert.equal(await identified(here, 'ann'), 'delivered')
  await here.kill()
  await setTimeout(SEEN_MS)
  assert.equal(await identified(there, 'ann'), 'failed')
  assert.equal(executions(), 3)
})
