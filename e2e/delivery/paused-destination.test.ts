// A paused destination: its messages are kept, also across a restart, and each is sent once when it is resumed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startReceiver } from '../system/receiver.ts'
import { startService, track } from '../system/service.ts'

test('50 messages for a paused destination arrive once after a restart and a resume, not before, and the ledger is consistent', async () => {
  await using receiver = await startReceiver()
  await using other = await startReceiver()
  await using first = await startService({ log: 'error' })
  let service = first
  const id = await service.destination({ urls: [receiver.url], name: 'Paused' })
  const otherId = await service.destination({ urls: [other.url], name: 'Other' })
  const change = (body: object): Promise<{ paused: boolean; enabled: boolean }> =>
    service.api(`/destinations/${id}`, { method: 'PATCH', body })
  const rowOf = async (destinationId: string) => (await service.ledger()).find((row) => row.destinationId === destinationId)
  const { paused, enabled } = await change({ paused: true })
  assert.deepEqual([paused, enabled], [true, true])

  const ids = Array.from({ length: 50 }, (_, at) => `m-${at}`)
  for (const messageId of ids.slice(0, 25)) await service.send([track(messageId)])
  await service.send(ids.slice(25).map((messageId) => track(messageId)))
  await service.api('/deletions', { method: 'POST', body: { userIds: ['nobody'] } })
  // The other destination has got it, so this one would have got it, too.
  await other.until(() => other.arrivals.length === 51)
  assert.equal(receiver.arrivals.length, 0)
  const { owed, pending } = (await rowOf(id)) ?? {}
  assert.deepEqual([owed, pending], [51, 51])
  const { story } = await service.api<{ story: { what: string; sentence: string; destinationId: string | null }[] }>('/messages/m-0')
  const waiting = story.find(({ what, destinationId }) => what === 'waiting' && destinationId === id)
  assert.equal(waiting?.sentence, 'On hold: "Paused" is paused. The message is sent when the destination is resumed.')

  await service.stop()
  service = await service.restart()
  await service.send([track('after')])
  await other.until(() => other.byMessageId.has('after'))
  assert.equal(receiver.arrivals.length, 0, 'a restart does not end a pause')
  assert.equal((await service.api<{ paused: boolean }>(`/destinations/${id}`)).paused, true)

  await change({ paused: false })
  await receiver.until(() => receiver.arrivals.length >= 52)
  await service.settled()
  assert.equal(receiver.arrivals.length, 52)
  for (const messageId of [...ids, 'after']) assert.equal(receiver.byMessageId.get(messageId)?.length, 1, messageId)
  for (const destinationId of [id, otherId]) {
    const row = await rowOf(destinationId)
    assert.deepEqual([row?.owed, row?.delivered, row?.pending], [52, 52, 0])
  }
  const sorted = (rows: { destinationId: string }[]) => [...rows].sort((a, b) => (a.destinationId < b.destinationId ? -1 : 1))
  assert.deepEqual(sorted(await service.ledger({ recount: true })), sorted(await service.ledger()))
})
