// Conformance: versions of destinations.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { createSecretBox } from '../../secrets/secret-box.ts'
import { type Audit, type Destination, type DestinationContent, type RequestSettings, type Store, UnknownVersion } from '../store.ts'
import { newDestination, newSource, type StoreFixture } from './fixtures.ts'

const ACTOR = { id: 'tok_1', name: 'Ada \ud83d\ude00' }
const audit: Audit<Destination> = (after, before) => ({
  actor: ACTOR,
  action: 'destination.update',
  subject: (after ?? before)?.id ?? null,
  before: null,
  after: null,
})
const REQUEST: RequestSettings = { method: 'POST', path: '/a', headers: {}, body: null, format: 'json' }
const codeOf = (code: string): Partial<DestinationContent> => ({ transformation: { code, timeoutMs: 50, memoryMb: 8 } })
const ALL = { limit: 1_000, cursor: null }

async function numbersOf(store: Store, id: string): Promise<number[]> {
  return (await store.resources.destinationVersions(id, ALL)).data.map(({ version }) => version)
}

export function versioning({ store, reopen, open }: StoreFixture): void {
  const newOne = async (change: Partial<DestinationContent> = {}): Promise<string> =>
    (await newDestination(store(), (await newSource(store())).id, change)).id

  test('a destination begins with version 1, and each change of its content makes a version with who changed what', async () => {
    const id = await newOne()
    const { resources } = store()
    assert.equal((await resources.updateDestination(id, { name: 'renamed', paused: true }, audit))?.version, 1)
    assert.equal((await resources.updateDestination(id, { request: REQUEST }, audit))?.version, 2)
    assert.equal((await resources.updateDestination(id, { request: { ...REQUEST } }, audit))?.version, 2)
    assert.equal((await resources.updateDestination(id, { request: { ...REQUEST, path: '/b' }, ...codeOf('one') }, audit))?.version, 3)
    assert.equal((await resources.updateDestination(id, { request: null }))?.version, 4)
    await reopen()
    assert.equal(store().configuration().destinations.get(id)?.version, 4)
    const { data, next } = await store().resources.destinationVersions(id, ALL)
    assert.equal(next, null)
    assert.deepEqual(
      data.map(({ version, actor, content, changed, restoredFrom }) => ({ version, actor, content, changed, restoredFrom })),
      [
        {
          version: 4,
          actor: null,
          content: { request: null, ...codeOf('one') },
          changed: ['request'],
          restoredFrom: null,
        },
        {
          version: 3,
          actor: ACTOR,
          content: { request: { ...REQUEST, path: '/b' }, ...codeOf('one') },
          changed: ['request.path', 'transformation'],
          restoredFrom: null,
        },
        {
          version: 2,
          actor: ACTOR,
          content: { request: REQUEST, transformation: null },
          changed: ['request'],
          restoredFrom: null,
        },
        { version: 1, actor: null, content: { request: null, transformation: null }, changed: [], restoredFrom: null },
      ],
    )
    assert.ok(data.every(({ atMs }, at) => at === 0 || atMs <= (data[at - 1]?.atMs ?? 0)))
    assert.deepEqual((await store().resources.destinationVersion(id, 3))?.content['request'], { ...REQUEST, path: '/b' })
    assert.equal(await store().resources.destinationVersion(id, 5), undefined)
    assert.equal(await store().resources.destinationVersion(id, 0), undefined)
    assert.deepEqual(await store().resources.destinationVersions('dst_none', ALL), { data: [], next: null })
  })

  test('restoring makes a new version with the old content, and changes other settings of the same update', async () => {
    const id = await newOne(codeOf('good'))
    const { resources } = store()
    await resources.updateDestination(id, codeOf('bad'), audit)
    const restored = await resources.updateDestination(id, { version: 1, name: 'restored' }, audit)
    assert.deepEqual([restored?.version, asWebhook(restored).transformation?.code, restored?.name], [3, 'good', 'restored'])
    const [newest] = (await resources.destinationVersions(id, ALL)).data
    assert.deepEqual([newest?.version, newest?.restoredFrom, newest?.changed], [3, 1, ['transformation.code']])
    // The current version, or one with the same content, is in use already.
    assert.equal((await resources.updateDestination(id, { version: 3 }))?.version, 3)
    assert.equal((await resources.updateDestination(id, { version: 1 }))?.version, 3)
    const before = store().configuration()
    for (const version of [0, 4, 1_000_000]) await assert.rejects(resources.updateDestination(id, { version, name: 'x' }), UnknownVersion)
    assert.equal(store().configuration(), before)
    assert.deepEqual(await numbersOf(store(), id), [3, 2, 1])
  })

  test('concurrent changes get different numbers, without gaps', async () => {
    const id = await newOne()
    const changes = Array.from({ length: 20 }, (_, at) => store().resources.updateDestination(id, codeOf(`code ${at}`)))
    const numbers = (await Promise.all(changes)).map((destination) => destination?.version ?? 0)
    const wanted = Array.from({ length: 20 }, (_, at) => 21 - at)
    assert.deepEqual(
      numbers.sort((left, right) => right - left),
      wanted,
    )
    assert.deepEqual(await numbersOf(store(), id), [...wanted, 1])
  })

  test('a change that is rejected makes no version', async () => {
    const id = await newOne()
    const refusal = new Error('refused')
    const refuse: Audit<Destination> = () => {
      throw refusal
    }
    await assert.rejects(store().resources.updateDestination(id, codeOf('one'), refuse), refusal)
    await reopen()
    assert.deepEqual([store().configuration().destinations.get(id)?.version, await numbersOf(store(), id)], [1, [1]])
    assert.equal((await store().resources.updateDestination(id, codeOf('one')))?.version, 2)
  })

  test('the newest 100 versions are kept', async () => {
    const id = await newOne()
    for (let at = 2; at <= 103; at++) await store().resources.updateDestination(id, codeOf(`code ${at}`))
    const kept = await numbersOf(store(), id)
    assert.deepEqual([kept.length, kept[0], kept.at(-1)], [100, 103, 4])
    await assert.rejects(store().resources.updateDestination(id, { version: 3 }), UnknownVersion)
    assert.equal(asWebhook(await store().resources.updateDestination(id, { version: 4 })).transformation?.code, 'code 4')
    const pages: number[][] = []
    for (let cursor: string | null = null, isFirst = true; isFirst || cursor !== null; isFirst = false) {
      const page = await store().resources.destinationVersions(id, { limit: 40, cursor })
      pages.push(page.data.map(({ version }) => version))
      cursor = page.next
    }
    assert.deepEqual(
      pages.map((page) => [page.length, page[0]]),
      [
        [40, 104],
        [40, 64],
        [20, 24],
      ],
    )
  })

  test('a page of large versions is limited by size, and the next page has the rest', async () => {
    const id = await newOne()
    for (const letter of ['a', 'b', 'c']) await store().resources.updateDestination(id, codeOf(letter.repeat(2_000_000)))
    const first = await store().resources.destinationVersions(id, ALL)
    assert.deepEqual(
      first.data.map(({ version }) => version),
      [4, 3],
    )
    const second = await store().resources.destinationVersions(id, { limit: 1_000, cursor: first.next })
    assert.deepEqual([second.data.map(({ version }) => version), second.next], [[2, 1], null])
  })

  test('versions are encrypted again with a new key, and are deleted with their destination', async () => {
    const other = await open({ retentionDays: 7 })
    const { id: sourceId } = await newSource(other.store)
    const secret = (name: string) => ({ request: { ...REQUEST, headers: { 'X-Key': name } }, ...codeOf(name) })
    const [kept, deleted] = [await newDestination(other.store, sourceId), await newDestination(other.store, sourceId)]
    for (const { id } of [kept, deleted])
      for (const name of ['one', 'two']) await other.store.resources.updateDestination(id, secret(name), audit)
    await other.store.resources.deleteDestination(deleted.id)
    assert.deepEqual(await other.store.resources.destinationVersions(deleted.id, ALL), { data: [], next: null })
    const before = await other.store.resources.destinationVersions(kept.id, ALL)
    const box = createSecretBox('another key')
    await other.store.secrets.rotateKey(box)
    assert.deepEqual(await other.store.resources.destinationVersions(kept.id, ALL), before)
    const { secretKeyIds } = (await other.store.books.inspect(10_000)) ?? {}
    assert.deepEqual(secretKeyIds, [box.keyId])
    const reopened = await other.reopen('another key')
    assert.deepEqual(await reopened.resources.destinationVersions(kept.id, ALL), before)
    assert.equal(asWebhook(await reopened.resources.updateDestination(kept.id, { version: 2 })).transformation?.code, 'one')
    await other.dispose()
  })
}
