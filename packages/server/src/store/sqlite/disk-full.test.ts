// A disk that is full for a while. Uses a small file system in memory, which only root can mount.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  accept,
  claim,
  claimOne,
  counts,
  ledgerOf,
  newSourceAndDestination,
  RecordingConsumer,
  settle,
  track,
  tracks,
} from '../conformance/fixtures.ts'
import { type Store, StoreUnavailable } from '../store.ts'
import { openFor, tempFolder } from './fixtures/temp-store.ts'

function smallDisk(t: TestContext): string | undefined {
  const folder = tempFolder()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', folder], { stdio: 'pipe' })
  } catch (error) {
    t.skip(`no small file system can be mounted here: ${(error as Error).message.split('\n').join(' ')}`)
    return undefined
  }
  t.after(() => {
    execFileSync('umount', ['-l', folder])
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

/** Accepts messages until the disk is full. Returns the acknowledged and the rejected ones. */
async function fill(store: Store, sourceId: string, destinationId: string): Promise<{ kept: string[]; refused: string[] }> {
  const kept: string[] = []
  const refused: string[] = []
  for (const bytes of [200_000, 10_000, 10]) {
    for (let failures = 0; failures < 2; ) {
      const ids = [randomUUID(), randomUUID()]
      const items = ids.map((id) => track(id, { properties: { noise: randomBytes(bytes).toString('base64') } }))
      try {
        await accept(store, sourceId, items, [destinationId])
        kept.push(...ids)
      } catch (error) {
        assert.ok(error instanceof StoreUnavailable, String(error))
        refused.push(...ids)
        failures++
      }
    }
  }
  // A check writes less than the smallest message, so it fills the last pages.
  for (let checks = 0; checks < 100 && (await store.check()).ok; checks++);
  return { kept, refused }
}

test('on a full disk messages are rejected, none is lost or invented, and deliveries are recorded when there is space again', {
  timeout: 180_000,
}, async (t) => {
  const folder = smallDisk(t)
  if (folder === undefined) return
  const path = join(folder, 'test.db')
  const ballast = join(folder, 'ballast')
  writeFileSync(ballast, Buffer.alloc(8 * 1024 * 1024))
  const states: (string | null)[] = []
  const store = await openFor(t, path, { onState: (problem) => states.push(problem) })
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await accept(store, sourceId, tracks(3), [destinationId])
  const held = await claimOne(store, destinationId)
  const { kept, refused } = await fill(store, sourceId, destinationId)
  assert.ok(statfsSync(folder).bavail < 16, 'the disk is full')
  assert.equal((await store.check()).ok, false)
  assert.match(String(states.at(-1)), /full|disk/i)
  const told = states.length

  const consumer = new RecordingConsumer()
  store.delivery.attach(consumer)
  assert.deepEqual(consumer.writableStates, [false], 'a stage that starts later is told, too')
  await assert.rejects(accept(store, sourceId, [track('wanted')], [destinationId]), StoreUnavailable)
  assert.deepEqual([consumer.cancelled.length, consumer.received], [1, []], 'the reservation is cancelled')
  consumer.reserves = false

  const { isOver } = watched(settle(store, held, 'delivered'))
  const cancelling = await newWayToDelete(store)
  assert.equal(cancelling, undefined, 'nothing can be written')
  const { shipments } = await claim(store, destinationId, { maxFresh: 2 })
  assert.equal(shipments.length, 2, 'reading still works')
  store.delivery.release(shipments.map(({ shipment }) => shipment))
  assert.equal((await store.check()).ok, false)
  assert.equal(isOver(), false, 'the settlement waits')
  assert.deepEqual(await ledgerOf(store, destinationId), counts({ owed: kept.length + 3, pending: kept.length + 3 }))
  assert.equal(states.length, told, 'a successful read does not end the problem')

  rmSync(ballast)
  await isOver.promise
  assert.deepEqual(states.slice(told), [null])
  assert.deepEqual(consumer.writableStates, [false, true])
  assert.deepEqual(await ledgerOf(store, destinationId), counts({ owed: kept.length + 3, pending: kept.length, delivered: 3 }))
  const late = await accept(
    store,
    sourceId,
    [...kept, ...refused].map((id) => track(id)),
    [destinationId],
  )
  assert.deepEqual(late.duplicates, [...kept.keys()], 'acknowledged messages are duplicates, rejected ones are not')
  await store.close()

  const again = await openFor(t, path)
  const owed = kept.length + refused.length + 3
  assert.deepEqual(await ledgerOf(again, destinationId), counts({ owed, pending: owed - 3, delivered: 3 }))
  await again.close()
})

test('a store can be closed while the disk is full, and waiting commands are rejected', { timeout: 180_000 }, async (t) => {
  const folder = smallDisk(t)
  if (folder === undefined) return
  const path = join(folder, 'test.db')
  const store = await openFor(t, path)
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const { kept } = await fill(store, sourceId, destinationId)
  const settling = settle(store, await claimOne(store, destinationId), 'delivered')
  store.ingest.reject({ sourceId, code: 'c', count: 1, sample: '', atMs: 1 })
  const refused = assert.rejects(settling, StoreUnavailable)
  assert.equal((await store.check()).ok, false)
  await store.close()
  await refused
  execFileSync('mount', ['-o', 'remount,size=64m', folder])
  const again = await openFor(t, path)
  assert.deepEqual(await ledgerOf(again, destinationId), counts({ owed: kept.length, pending: kept.length }))
  await again.close()
})

async function newWayToDelete(store: Store): Promise<unknown> {
  return newSourceAndDestination(store).catch((error: unknown) => {
    assert.ok(error instanceof StoreUnavailable)
  })
}

function watched(promise: Promise<unknown>): { isOver: (() => boolean) & { promise: Promise<unknown> } } {
  let over = false
  const watching = promise.finally(() => {
    over = true
  })
  return { isOver: Object.assign(() => over, { promise: watching }) }
}

test('if nothing waits to be written, the store finds out by itself that there is space again', { timeout: 180_000 }, async (t) => {
  const folder = smallDisk(t)
  if (folder === undefined) return
  const ballast = join(folder, 'ballast')
  writeFileSync(ballast, Buffer.alloc(8 * 1024 * 1024))
  const store = await openFor(t, join(folder, 'test.db'))
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  await fill(store, sourceId, destinationId)
  const consumer = new RecordingConsumer()
  const writable = new Promise<void>((resolve) => {
    consumer.writable = (isWritable) => isWritable && resolve()
  })
  store.delivery.attach(consumer)
  rmSync(ballast)
  await writable
  await store.close()
})

test('a purge that needs more space than there is does not stop sending: outcomes can be recorded', { timeout: 180_000 }, async (t) => {
  const folder = smallDisk(t)
  if (folder === undefined) return
  const store = await openFor(t, join(folder, 'test.db'))
  const { sourceId, destinationId } = await newSourceAndDestination(store)
  const noise = (): string => randomBytes(300_000).toString('base64')
  for (let at = 0; at < 24; at++)
    await accept(store, sourceId, [track(`u${at}`, { userId: 'gone' }), track(`n${at}`, { properties: { noise: noise() } })], [])
  await accept(store, sourceId, tracks(3), [destinationId])
  const { bavail, bsize } = statfsSync(folder)
  writeFileSync(join(folder, 'ballast'), Buffer.alloc(bavail * bsize - 512 * 1024))
  const held = await claimOne(store, destinationId)
  const consumer = new RecordingConsumer()
  let onResumed = (): void => {}
  const isResumed = new Promise<void>((resolve) => {
    onResumed = resolve
  })
  const isSettled = new Promise<void>((resolve) => {
    let hasStopped = false
    consumer.writable = (isWritable) => {
      if (isWritable) return onResumed()
      // Just before the purge is tried again, so that they share a transaction.
      if (!hasStopped) setTimeout(() => resolve(settle(store, held, 'delivered')), 248)
      hasStopped = true
    }
  })
  store.delivery.attach(consumer)
  const { id } = await store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
  await isResumed
  await isSettled
  assert.equal((await store.deletions.one(id))?.purged, 0, 'the purge waits')
  await store.close()
})
