// What claims of ordered shipments cost while keys fail, and that they find these keys however many there are. The rest is tested in store/conformance.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { StatementSync } from 'node:sqlite'
import test, { type TestContext } from 'node:test'
import { claimOrdered, names, newOrdered, settle } from '../../conformance/delivery/ordering.ts'
import { accept, NOW_MS, track } from '../../conformance/fixtures.ts'
import { openFor, tempFolder } from '../fixtures/temp-store.ts'
import { OrderedClaims } from './ordered-claims.ts'
import { ClaimReader } from './read-claims.ts'
import { openWriterContext } from './writer-context.ts'

const MESSAGES = 300
const LIMITS = { maxFresh: 1_000, maxHeads: 1_000, maxWaiting: 1_000, maxBytes: 1e9 }

function messagesOf(count: number, name: string) {
  return Array.from({ length: count }, (_, at) => track(`${name}${at}-${randomUUID()}`, { userId: `${name}${at}` }))
}

/** A store in which messages of `failing` users, from `failing0` on, wait for a retry. */
async function storeWith(t: TestContext, failing: number) {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'test.db')
  const store = await openFor(t, path)
  const { sourceId, destinationId } = await newOrdered(store)
  if (failing > 0) {
    await accept(store, sourceId, messagesOf(failing, 'failing'), [destinationId])
    await settle(store, (await claimOrdered(store, destinationId)).shipments, 'retry')
  }
  return { store, path, sourceId, destinationId }
}

/** Claims messages of as many other users. Returns how many statements were run. */
async function statementsWith(t: TestContext, failing: number): Promise<number> {
  const { store, path, sourceId, destinationId } = await storeWith(t, failing)
  const messages = messagesOf(MESSAGES, 'user')
  for (let at = 0; at < MESSAGES; at += 10) await accept(store, sourceId, messages.slice(at, at + 10), [destinationId])
  await store.close()

  const context = openWriterContext({ path, dedupMs: 1_000 })
  t.after(() => context.database.close())
  const claims = new OrderedClaims(context, new ClaimReader(context))
  const methods = (['run', 'get', 'all', 'iterate'] as const).map((name) => t.mock.method(StatementSync.prototype, name))
  const { shipments } = claims.claim({ destinationId, nowMs: NOW_MS, ...LIMITS })
  const count = methods.reduce((sum, { mock }) => sum + mock.callCount(), 0)
  for (const { mock } of methods) mock.restore()
  assert.equal(shipments.length, MESSAGES / 10)
  return count
}

test('while keys fail, a claim runs no statement for each message of other keys', async (t) => {
  const none = await statementsWith(t, 0)
  assert.deepEqual([await statementsWith(t, 1), await statementsWith(t, 100)], [none, none])
})

test('while more than 100 keys fail, a claim looks up each key of its messages', async (t) => {
  assert.equal((await statementsWith(t, 101)) - (await statementsWith(t, 0)), MESSAGES)
})

test('messages of a key that fails are not claimed, however many keys fail', async (t) => {
  for (const failing of [1, 101]) {
    const { store, sourceId, destinationId } = await storeWith(t, failing)
    await accept(store, sourceId, [...messagesOf(1, 'failing'), ...messagesOf(1, 'user'), ...messagesOf(1, 'failing')], [destinationId])
    assert.deepEqual(names(await claimOrdered(store, destinationId)), ['user0'])
  }
})
