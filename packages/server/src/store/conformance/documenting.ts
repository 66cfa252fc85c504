// Conformance: documents, which are changed by code that reads them first.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { DocumentQuery, Store } from '../store.ts'
import type { StoreFixture } from './fixtures.ts'

const HOSTILE = { text: 'a\0b\ud800"\\', '\0': { ['__proto__']: 1 }, deep: [[null, 1.5]] }

async function put(store: Store, kind: string, entries: Record<string, number>): Promise<void> {
  await store.documents.update(kind, [], () => new Map(Object.entries(entries).map(([key, atMs]) => [key, { atMs, doc: { key } }])))
}

export function documenting({ store, reopen }: StoreFixture): void {
  test('documents are the same after the store is reopened', async () => {
    const kind = randomUUID()
    await store().documents.update(kind, ['a'], (stored) => {
      assert.equal(stored.size, 0)
      return new Map([['a', { atMs: 7, doc: HOSTILE }]])
    })
    await reopen()
    assert.deepEqual(await store().documents.get(kind, 'a'), { key: 'a', atMs: 7, doc: HOSTILE })
    assert.equal(await store().documents.get(kind, 'b'), undefined)
    assert.equal(await store().documents.get('another', 'a'), undefined)
    await store().documents.update(
      kind,
      ['a', 'b'],
      (stored) => new Map([['a', null], ...[...stored.values()].map((d) => ['b', d] as const)]),
    )
    assert.deepEqual(await store().documents.list(kind, { order: 'key', limit: 10 }), [{ key: 'b', atMs: 7, doc: HOSTILE }])
  })

  test('updates that run at once see each other', async () => {
    const kind = randomUUID()
    const add = () =>
      store().documents.update(kind, ['sum'], (stored) => {
        const sum = (stored.get('sum')?.doc['sum'] as number | undefined) ?? 0
        return new Map([['sum', { atMs: 0, doc: { sum: sum + 1 } }]])
      })
    await Promise.all(Array.from({ length: 20 }, add))
    assert.equal((await store().documents.get(kind, 'sum'))?.doc['sum'], 20)
  })

  test('lists by key or by time, with a prefix, page by page', async () => {
    const kind = randomUUID()
    await put(store(), kind, { 'a/1': 5, 'a/2': 9, 'a/3': 5, 'a~': 1, 'B/1': 7 })
    const all = async (query: Omit<DocumentQuery, 'limit'>): Promise<string[]> => {
      const keys: string[] = []
      for (let after: DocumentQuery['after']; ; ) {
        const page = await store().documents.list(kind, { ...query, after, limit: 2 })
        keys.push(...page.map(({ key }) => key))
        if (page.length < 2) return keys
        after = page.at(-1)
      }
    }
    assert.deepEqual(await all({ order: 'key' }), ['B/1', 'a/1', 'a/2', 'a/3', 'a~'])
    assert.deepEqual(await all({ order: 'key', prefix: 'a/' }), ['a/1', 'a/2', 'a/3'])
    assert.deepEqual(await all({ order: 'newest', prefix: 'a' }), ['a/2', 'a/3', 'a/1', 'a~'])
  })

  test('drops by prefix and time', async () => {
    const kind = randomUUID()
    await put(store(), kind, Object.fromEntries(Array.from({ length: 1_100 }, (_, n) => [`old/${n}`, n])))
    await put(store(), kind, { 'new/1': 5, 'old/x': 2_000 })
    assert.equal(await store().documents.drop(kind, { prefix: 'old/', beforeMs: 2_000 }), 1_100)
    assert.equal(await store().documents.drop(kind, { beforeMs: 10 }), 1)
    assert.equal(await store().documents.drop(kind, {}), 1)
  })

  test('a key that cannot be stored is a bug of the caller, and nothing is written', async () => {
    const kind = randomUUID()
    for (const key of ['', 'a\\', 'ä', '\0', 'x'.repeat(201)]) {
      await assert.rejects(put(store(), kind, { good: 1, [key]: 1 }), /not a key of a document/)
    }
    assert.deepEqual(await store().documents.list(kind, { order: 'key', limit: 10 }), [])
  })
}
