// Kafka with the real definition and a broker on loopback: how many connections it opens, and when it closes them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { definitionsFolder, require } from './definitions.ts'
import { type KafkaBroker, startKafkaBroker } from './fixtures/kafka-broker.ts'
import { closeUnused } from './kafka-producers.ts'
import { type Integration, openIntegration } from './runner.ts'

const FLAG = 'actions-kafka-optimize-connection'
const STEP = { action: 'send', mapping: { topic: 'events', payload: { '@path': '$.properties' } } }
const MESSAGE: JsonObject = { type: 'track', userId: 'u-1', event: 'Tested', properties: { plan: 'premium' } }

function openKafka(broker: KafkaBroker, clientId: string, more: JsonObject = {}): Promise<Integration> {
  const settings = { mechanism: 'plain', username: 'sample', password: 'sample-password', ssl_enabled: false }
  return openIntegration('actions-kafka', { ...settings, clientId, brokers: `127.0.0.1:${broker.port}`, ...more })
}

async function send(kafka: Integration): Promise<void> {
  const { results } = await kafka.run(STEP, [MESSAGE], { signal: new AbortController().signal })
  assert.deepEqual(results, [{ kind: 'success' }])
}

test('connections to brokers are kept between messages, and messages that are sent at the same time share them', async () => {
  await using broker = await startKafkaBroker()
  const kafka = await openKafka(broker, 'kept')
  await Promise.all([send(kafka), send(kafka), send(kafka), send(kafka)])
  const first = broker.connections
  // The one to the broker that is named, and the one to the leader of the partition.
  assert.ok(first <= 2, `${first} connections`)
  for (let count = 0; count < 5; count++) await send(kafka)
  assert.deepEqual([broker.produced, broker.connections], [9, first])
})

test('a destination that switches the flag off opens connections for each message, and closes them', async () => {
  await using broker = await startKafkaBroker()
  const kafka = await openKafka(broker, 'not-kept', { features: { [FLAG]: false } })
  await send(kafka)
  const first = broker.connections
  await send(kafka)
  assert.equal(broker.connections, 2 * first)
  await broker.whenClosed()
})

test('connections that nobody has used for a minute are closed, such as those of settings that were changed', async () => {
  await using broker = await startKafkaBroker()
  await send(await openKafka(broker, 'before'))
  const kafka = require(`${definitionsFolder()}/kafka/utils.js`) as Parameters<typeof closeUnused>[0]
  closeUnused(kafka, Date.now() + 50_000)
  assert.ok(broker.open > 0)
  closeUnused(kafka, Date.now() + 70_000)
  await broker.whenClosed()
  // The next message opens others.
  await send(await openKafka(broker, 'before'))
  closeUnused(kafka, Date.now() + 70_000)
  await broker.whenClosed()
})
