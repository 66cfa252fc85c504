// kill -9 while messages are accepted or a destination is changed: everything that was acknowledged is stored, and as a whole.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { accept, allPages, ledgerOf, newDestination, newSourceAndDestination, track } from '../conformance/fixtures.ts'
import { openFor, tempFolder } from './fixtures/temp-store.ts'

test('all messages that were acknowledged before a kill are stored, pending once, and still known as duplicates', {
  timeout: 60_000,
}, async (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'test.db')
  const first = await openFor(t, path)
  const { sourceId, destinationId } = await newSourceAndDestination(first)
  await first.close()
  const acknowledged: string[] = []
  for (let kills = 1; kills <= 2; kills++) {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'fixtures/child.ts'), 'accept', path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exit = once(child, 'exit')
    let text = ''
    child.stdout.on('data', (bytes: Buffer) => {
      text += bytes.toString()
      if (text.length > 40_000 * kills) child.kill('SIGKILL')
    })
    assert.deepEqual(await exit, [null, 'SIGKILL'])
    // The last line may be incomplete.
    const lines = text.split('\n').slice(0, -1)
    assert.equal(lines[0], 'open')
    acknowledged.push(...lines.slice(1).flatMap((line) => line.split(' ')))
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
  timeout: 60_000,
}, async (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'test.db')
  const first = await openFor(t, path)
  const { destinationId } = await newSourceAndDestination(first)
  await first.close()
  for (const atLeast of [7, 40]) {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'fixtures/child.ts'), 'version', path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exit = once(child, 'exit')
    let text = ''
    child.stdout.on('data', (bytes: Buffer) => {
      text += bytes.toString()
      if (text.split('\n').length > atLeast) child.kill('SIGKILL')
    })
    assert.deepEqual(await exit, [null, 'SIGKILL'])
    const committed = Number(text.split('\n').at(-2))
    const store = await openFor(t, path)
    const destination = store.configuration().destinations.get(destinationId)
    const [newest] = (await store.settings.destinationVersions(destinationId, { limit: 1, cursor: null })).data
    assert.ok(newest !== undefined && newest.version >= committed, `${newest?.version} and ${committed}`)
    assert.deepEqual([newest.version, newest.content.transformation], [destination?.version, destination?.transformation])
    await store.close()
  }
})

test('after a kill, each message is in quarantine or has one delivery, and all that were released stay released', {
  timeout: 60_000,
}, async (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'test.db')
  const first = await openFor(t, path)
  const { sourceId, destinationId } = await newSourceAndDestination(first)
  await first.close()
  let acknowledged = 0
  for (const atLeast of [15, 50]) {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'fixtures/child.ts'), 'release', path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exit = once(child, 'exit')
    let text = ''
    child.stdout.on('data', (bytes: Buffer) => {
      text += bytes.toString()
      if (text.split('\n').length > atLeast) child.kill('SIGKILL')
    })
    assert.deepEqual(await exit, [null, 'SIGKILL'])
    acknowledged += Number(text.split('\n').at(-2))
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

test('after a kill, each delivery that failed has exactly one dead letter, and no other has one', { timeout: 60_000 }, async (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'test.db')
  const first = await openFor(t, path)
  const { sourceId, destinationId } = await newSourceAndDestination(first)
  const { id: target } = await newDestination(first, sourceId, { sourceIds: [] })
  await first.close()
  let acknowledged = 0
  for (const atLeast of [20, 60]) {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'fixtures/child.ts'), 'fail', path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exit = once(child, 'exit')
    let text = ''
    child.stdout.on('data', (bytes: Buffer) => {
      text += bytes.toString()
      if (text.split('\n').length > atLeast) child.kill('SIGKILL')
    })
    assert.deepEqual(await exit, [null, 'SIGKILL'])
    acknowledged += 3 * (text.split('\n').length - 2)
    const store = await openFor(t, path)
    const { failed } = await ledgerOf(store, destinationId)
    const { owed, pending } = await ledgerOf(store, target)
    assert.ok(failed >= acknowledged)
    const letters = await allPages((page) => store.history.messages({ type: 'dead_letter' }, page), 1_000)
    assert.deepEqual([owed, pending, letters.length], [failed, failed, failed])
    await store.close()
  }
})
