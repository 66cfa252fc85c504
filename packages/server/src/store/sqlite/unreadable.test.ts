// Bodies whose stored bytes are damaged: other segments are not affected.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test, { type TestContext } from 'node:test'
import { accept, claim, messageIdsOf, newSourceAndDestination, track, until } from '../conformance/fixtures.ts'
import { openAt, openFor, tempFolder } from './fixtures/temp-store.ts'
import type { SqliteStore } from './store.ts'

/** A store with three segments, each with a message of `gone` and one of somebody else, of which the second is damaged. */
async function openDamaged(t: TestContext, bytes: Uint8Array): Promise<{ store: SqliteStore; sourceId: string; destinationId: string }> {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'test.db')
  const before = await openAt(path)
  const { sourceId, destinationId } = await newSourceAndDestination(before)
  const segments: unknown[] = []
  for (const name of ['a', 'b', 'c']) {
    const { segment } = await accept(before, sourceId, [track(name, { userId: 'gone' }), track(`${name}-stays`)], [destinationId])
    segments.push(segment)
  }
  await before.close()
  const file = new DatabaseSync(path)
  file.prepare('UPDATE segments SET body = ? WHERE seq = ?').run(bytes, segments[1] as number)
  file.close()
  return { store: await openFor(t, path), sourceId, destinationId }
}

for (const [what, bytes] of [
  ['JSON', Buffer.from('{"batch":[')],
  ['compressed bytes', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3])],
] as const) {
  test(`a claim with a body of damaged ${what} returns the other bodies, and that one as unreadable`, async (t) => {
    const { store, destinationId } = await openDamaged(t, bytes)
    const { shipments } = await claim(store, destinationId)
    assert.deepEqual(shipments.map(messageIdsOf), [
      ['a', 'a-stays'],
      [null, null],
      ['c', 'c-stays'],
    ])
    assert.deepEqual(
      shipments.map(({ bodies }) => [...bodies.values()][0]?.content.isUnreadable),
      [undefined, true, undefined],
    )
  })
}

test('messages are listed and purged completely even if one body is damaged', async (t) => {
  const { store, sourceId } = await openDamaged(t, Buffer.from('not JSON'))
  const stored = async (): Promise<unknown[]> => {
    const { data } = await store.history.messages({ sourceId, type: 'track' }, { limit: 10, cursor: null })
    return data.map(({ content, index }) => content.items[index]?.['messageId'])
  }
  assert.deepEqual(await stored(), ['c-stays', 'c', 'a-stays', 'a'])
  const { id } = await store.deletions.create({ userIds: ['gone'], sourceIds: [sourceId], suppress: false })
  await until(
    () => store.deletions.one(id),
    (deletion) => deletion?.purged === 3,
    'purged',
  )
  assert.deepEqual(await stored(), ['c-stays', 'a-stays'])
})
