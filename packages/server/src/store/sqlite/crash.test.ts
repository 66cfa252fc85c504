// kill -9 while messages are accepted or a destination is changed: everything that was acknowledged is stored, and as a whole.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { accept, allPages, ledgerOf, newDestination, newSourceAndDestination, track } from '../conformance/fixtures.ts'
import { openFor, tempFolder } from './fixtures/temp-store.ts'

function tempPath(t: TestContext): string {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'test.db')
}

/** Starts a child process that writes to the store, kills it once it has printed `atLeast` lines, and returns the complete lines. */
async function killedAfter(atLeast: number, mode: 'accept' | 'fail' | 'release' | 'version', path: string): Promise<string[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'fixtures/child.ts'), mode, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  let text = ''
  child.stdout.on('data', (bytes: Buffer) => {
    text += bytes.toString()
    if (text.split('\n').length > atLeast + 1) child.kill('SIGKILL')
  })
  assert.deepEqual(await closed, [null, 'SIGKILL'], text)
  const [opened, ...lines] = text.split('\n').slice(0, -1)
  assert.equal(opened, 'open')
  return lines
}

test('all messages that were acknowledged before a kill are stored, pending once, and still known as duplicates', {
  timeout: 180_000,
}, async (t) => {
  const path = tempPath(t)
  const first = await openFor(t, path)
  const { sourceId, destinationId } = await newSourceAndDestination(first)
  await first.close()
  const acknowledged: string[] = []
  for (const atLeast of [200, 400]) {
    const lines = await killedAfter(atLeast, 'accept', path)
    acknowledged.push(...lines.flatMap((line) => line.split(' ')))
    const store = await openFor(t, path)
    const stored = await allPages((page) => store.history.messages({ sourceId }, page), 1_000)
    const ids = new Set(stored.map(({ content, index }) => content.items[index]?.['messageId']))
    for (const id of acknowledged) assert.ok(ids.has(id), `${id} was acknowledged`)
    const { owed, pending } = await ledgerOf(store, destinationId)
    assert.deepEqual([owed, pending, stored.length], [ids.size, ids.size, ids.size], 'whole batches or nothing')
    const again = acknowledged.slice(-2_000).map((id) => track(id))
    const { duplicates } = await accept(store, sourceId, again, [destinationId])
    assert.equal(duplicates.length, again.length)
    await store.close()
  }
  assert.ok(acknowledged.length > 1_000)
})

test('after a kill, a destination has exactly the content of its newest version, which is not older than the last committed one', {
  timeout: 180_000,
}, async (t) => {
  const path = tempPath(t)
  const first = await openFor(t, path)
  const { destinationId } = await newSourceAndDestination(first)
  await first.close()
  for (const atLeast of [7, 40]) {
    const lines = await killedAfter(atLeast, 'version', path)
    const committed = Number(lines.at(-1))
    const store = await openFor(t, path)
    const destination = store.configuration().destinations.get(destinationId)
    const [newest] = (await store.resources.destinationVersions(destinationId, { limit: 1, cursor: null })).data
    assert.ok(newest !== undefined && newest.version >= committed, `${newest?.version} and ${committed}`)
    assert.deepEqual([newest.version, newest.content['transformation']], [destination?.version, asWebhook(destination).transformation])
    await store.close()
  }
})

test('after a kill, each message is in quarantine or has one delivery, and all that were released stay released', {
  timeout: 180_000,
}, async (t) => {
  const path = tempPath(t)
  const first = await openFor(t, path)
  const { sourceId, destinationId } = await newSourceAndDestination(first)
  await first.close()
  let acknowledged = 0
  for (const atLeast of [15, 50]) {
    const lines = await killedAfter(atLeast, 'release', path)
    acknowledged += Number(lines.at(-1))
    const store = await openFor(t, path)
    const { owed, pending } = await ledgerOf(store, destinationId)
    const books = (await store.books.sourceCounts()).find((row) => row.sourceId === sourceId)
    assert.ok(books !== undefined && books.released >= acknowledged, `${books?.released} and ${acknowledged}`)
    assert.deepEqual([owed, pending, books.quarantined], [books.released, books.released, books.accepted - books.released])
    assert.deepEqual(await store.books.recountQuarantined(), [{ sourceId, quarantined: books.quarantined }])
    const stored = await allPages((page) => store.history.messages({ sourceId }, page), 1_000)
    for (const { quarantine, deliveries } of stored) assert.equal(deliveries.length, quarantine?.state === 'released' ? 1 : 0)
    await store.close()
  }
})

test('after a kill, each delivery that failed has exactly one dead letter, and no other has one', { timeout: 180_000 }, async (t) => {
  const path = tempPath(t)
  const first = await openFor(t, path)
  const { sourceId, destinationId } = await newSourceAndDestination(first)
  const { id: target } = await newDestination(first, sourceId, { sourceIds: [] })
  await first.close()
  let acknowledged = 0
  for (const atLeast of [20, 60]) {
    const lines = await killedAfter(atLeast, 'fail', path)
    acknowledged += 3 * lines.length
    const store = await openFor(t, path)
    const { failed } = await ledgerOf(store, destinationId)
    const { owed, pending } = await ledgerOf(store, target)
    assert.ok(failed >= acknowledged)
    const letters = await allPages((page) => store.history.messages({ type: 'dead_letter' }, page), 1_000)
    assert.deepEqual([owed, pending, letters.length], [failed, failed, failed])
    await store.close()
  }
})
