// How long a node waits for the requests of a node that died, before it sends messages of an ordered destination.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EMAIL_CONFIRMATION_MS } from '../../../destinations/webhook/email/email-request.ts'
import { PARTITIONS } from '../../../model/order/order-key.ts'
import { claimOrdered, newOrdered, ORDER, settle } from '../../conformance/delivery/ordering.ts'
import { accept, NOW_MS, newDestination, newSource, track, until } from '../../conformance/fixtures.ts'
import { createDatabase } from '../fixtures/postgres-server.ts'
import { openAt } from '../fixtures/temp-store.ts'

const TIMEOUT_MS = 5_000

test('the next node waits until a request, or an email, of a dead node can no longer arrive', async (t) => {
  const database = await createDatabase()
  t.after(() => database.drop())
  const store = await openAt(database.url, {})
  t.after(() => store.close())
  const { id: sourceId } = await newSource(store)
  const settings = { order: ORDER, timeoutMs: TIMEOUT_MS }
  const web = await newDestination(store, sourceId, settings)
  const mail = await newDestination(store, sourceId, { ...settings, urls: ['smtps://mail.example.com'] })
  await until(
    async () => (await database.query('SELECT FROM switchyard.order_partitions WHERE owner = $1', [store.membership.holder])).length,
    (count) => count === PARTITIONS,
    'this node delivers all partitions',
  )
  await accept(store, sourceId, [track('m-1')], [web.id, mail.id])
  // The dead node may have started a request until an hour from now, so that no part of the wait is over on a busy machine.
  const HOUR_MS = 3_600_000
  await database.query(
    `INSERT INTO switchyard.order_waits (destination, part, started_until)
     SELECT DISTINCT s.destination, p.part, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::bigint
     FROM switchyard.shipments s, switchyard.order_partitions p`,
    [HOUR_MS],
  )
  const untilMs = async (destinationId: string): Promise<number> => {
    const { shipments, nextHeadAtMs } = await claimOrdered(store, destinationId)
    assert.deepEqual(shipments, [])
    return (nextHeadAtMs as number) - NOW_MS - HOUR_MS
  }
  const [forWeb, forMail] = [await untilMs(web.id), await untilMs(mail.id)]
  assert.ok(forWeb <= TIMEOUT_MS, String(forWeb))
  assert.ok(forMail <= TIMEOUT_MS + EMAIL_CONFIRMATION_MS, String(forMail))
  // Less the time between the two queries.
  assert.ok(forMail - forWeb > EMAIL_CONFIRMATION_MS / 2, String(forMail - forWeb))
})

test('work that a dead node had in flight is attempted once before it may expire', async (t) => {
  const database = await createDatabase()
  t.after(() => database.drop())
  const store = await openAt(database.url, {})
  t.after(() => store.close())
  const { sourceId, destinationId } = await newOrdered(store)
  await accept(store, sourceId, [track('m-1')], [destinationId])
  const claimed = await until(
    async () => (await claimOrdered(store, destinationId)).shipments,
    ({ length }) => length === 1,
    'this node delivers the partition',
  )
  await settle(store, claimed, 'retry')
  const overdue = async (): Promise<number> => (await store.delivery.claimOverdue(destinationId, NOW_MS, 10)).length
  await database.query(
    `INSERT INTO switchyard.order_waits (destination, part, started_until)
     SELECT destination, partition, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM switchyard.shipments WHERE attempt < -1`,
  )
  assert.equal(await overdue(), 0)
  await database.query('UPDATE switchyard.order_waits SET started_until = started_until - 3600000')
  assert.equal(await overdue(), 1)
})
