// From a program to a webhook: the client library, the service and a receiver. Every call arrives once, with its content. Third-party
// clients are tested in compatibility/.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Analytics as PublicClient } from '@segment/analytics-node'
import { Analytics } from '@switchyard/node'
import { type ReceivedMessage, startReceiver } from '../system/receiver.ts'
import { type Service, startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'
import { wire } from '../system/wiring.ts'

let service: Service

before(async () => {
  service = await startService()
})

after(() => service[Symbol.asyncDispose]())

const name = '@switchyard/node'
const ROUNDS = 100

describe(name, () => {
  test('every message arrives at the webhook once', async () => {
    await using receiver = await startReceiver()
    const wiring = await wire(service, { urls: [receiver.url] })
    // These calls were written for the public client that ours replaces.
    const analytics = new Analytics({ writeKey: wiring.writeKey, host: service.url }) as unknown as PublicClient
    const errors: unknown[] = []
    analytics.on('error', (error) => errors.push(error))
    for (let round = 0; round < ROUNDS; round++) {
      const messageId = (type: string): string => `${name} ${type} ${round}`
      analytics.identify({ userId: 'u-1', traits: { round }, messageId: messageId('identify') })
      analytics.track({ userId: 'u-1', event: 'Tested', properties: { round, note: 'é ✓' }, messageId: messageId('track') })
      analytics.page({
        anonymousId: 'a-1',
        category: 'Docs',
        name: 'Home',
        properties: { url: 'https://a.example/' },
        messageId: messageId('page'),
      })
      analytics.screen({ userId: 'u-1', name: 'Home', messageId: messageId('screen') })
      analytics.group({ userId: 'u-1', groupId: 'g-1', traits: { round }, messageId: messageId('group') })
      analytics.alias({ userId: 'u-2', previousId: 'a-1', messageId: messageId('alias') })
    }
    await analytics.closeAndFlush()
    assert.deepEqual(errors, [])
    const total = 6 * ROUNDS
    const ledger = await eventually(
      async () => (await service.ledger()).find(({ destinationId }) => destinationId === wiring.destinationId),
      (row) => row?.delivered === total,
      { what: `${total} delivered` },
    )
    assert.deepEqual(ledger, {
      destinationId: wiring.destinationId,
      owed: total,
      delivered: total,
      pending: 0,
      failed: 0,
      expired: 0,
      cancelled: 0,
      quarantined: 0,
    })
    assert.deepEqual([receiver.byMessageId.size, receiver.arrivals.length], [total, total])

    const one = (type: string): ReceivedMessage => receiver.byMessageId.get(`${name} ${type} 7`)?.[0]?.messages[0] as ReceivedMessage
    for (const type of ['identify', 'track', 'page', 'screen', 'group', 'alias']) {
      const { version, context, timestamp, originalTimestamp, sentAt, receivedAt } = one(type)
      assert.deepEqual([one(type).type, version], [type, 1])
      assert.equal((context as { library: { name: string } }).library.name, name)
      for (const time of [timestamp, originalTimestamp, sentAt, receivedAt]) assert.match(String(time), /^\d{4}-.*\.\d{3}Z$/)
    }
    assert.deepEqual(one('track')['properties'], { round: 7, note: 'é ✓' })
    assert.deepEqual(one('identify')['traits'], { round: 7 })
    assert.deepEqual([one('page')['category'], one('page')['anonymousId']], ['Docs', 'a-1'])
    assert.deepEqual([one('alias')['Previous ID'], one('alias')['User ID']], ['a-1', 'u-2'])
  })

  test('the client sends a batch again if the response was lost, and it arrives once', async () => {
    await using receiver = await startReceiver()
    const wiring = await wire(service, { urls: [receiver.url] })
    let lost = 0
    const analytics = new Analytics({
      writeKey: wiring.writeKey,
      host: service.url,
      httpClient: async (url, init) => {
        const response = await fetch(url, init)
        if (lost++ === 0) throw new Error('the connection broke before the answer came')
        return response
      },
    })
    for (let number = 0; number < 15; number++) analytics.track({ userId: 'u-1', event: 'Tested', messageId: `lost ${number}` })
    assert.deepEqual(await analytics.flush({ close: true }), { stored: 15, failed: 0, pending: 0 })
    assert.ok(lost >= 2)
    const stats = await service.api<{ data: { sourceId: string; accepted: number; duplicates: number }[] }>('/stats/totals')
    const { accepted, duplicates } = stats.data.find(({ sourceId }) => sourceId === wiring.sourceId) ?? {}
    assert.deepEqual([accepted, duplicates], [15, 15])
    await receiver.until(() => receiver.byMessageId.size === 15)
    const last = await wiring.track()
    await receiver.until(() => receiver.byMessageId.has(last))
    assert.equal(receiver.arrivals.length, 16)
  })
})
