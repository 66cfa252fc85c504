// Conformance: sources, destinations, settings, counts.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { WAREHOUSE_DOCUMENTS } from '../port/warehouse-tables.ts'
import { type Configuration, WriteKeyTaken } from '../store.ts'
import {
  accept,
  claim,
  claimOne,
  counts,
  deliveriesOf,
  ledgerOf,
  messageIdsOf,
  NOW_MS,
  newDestination,
  newSource,
  newSourceAndDestination,
  type StoreFixture,
  settle,
  track,
  tracks,
  until,
} from './fixtures.ts'

export function configuring({ store, reopen, open }: StoreFixture): void {
  test('sources and destinations are the same after the store is reopened', async () => {
    const writeKeys = [randomUUID(), '\'quoted"', 'ключ\0']
    const source = await newSource(store(), { name: 'näme', writeKeys, requireOAuth: true, enabled: false })
    const destination = await newDestination(store(), source.id, {
      urls: ['https://a.example/1', 'https://b.example/2'],
      headers: { 'X-Own': 'v', __proto__x: 'y' },
      sharedSecret: 'shared \ud83d\ude00',
      signingSecrets: ['whsec_one', 'whsec_two'],
      batch: { size: 100, bytes: 1_000, lingerMs: 50 },
      historical: false,
      paused: true,
    })
    const before = store().configuration()
    assert.deepEqual(before.sources.get(source.id), source)
    assert.deepEqual(before.destinations.get(destination.id), destination)
    await reopen()
    assert.deepEqual(store().configuration(), before)
  })

  test('an update changes only the given fields', async () => {
    const source = await newSource(store())
    const destination = await newDestination(store(), source.id, { sharedSecret: 's' })
    assert.deepEqual(await store().resources.updateSource(source.id, { enabled: false }), { ...source, enabled: false })
    assert.deepEqual(await store().resources.updateDestination(destination.id, { name: 'new' }), { ...destination, name: 'new' })
    await reopen()
    assert.deepEqual(store().configuration().sources.get(source.id), { ...source, enabled: false })
    assert.deepEqual(store().configuration().destinations.get(destination.id), { ...destination, name: 'new' })
    assert.equal(await store().resources.updateSource('src_unknown', { enabled: false }), undefined)
    assert.equal(await store().resources.updateDestination('dst_unknown', { enabled: false }), undefined)
  })

  test('a change given as a function is computed from the stored state, also with concurrent changes', async () => {
    const { id } = await newSource(store(), { writeKeys: [] })
    const keys = Array.from({ length: 20 }, () => randomUUID())
    const added = (key: string) =>
      store().resources.updateSource(id, ({ writeKeys }, { sources }) => {
        assert.equal(sources.get(id)?.writeKeys, writeKeys)
        return { writeKeys: [...writeKeys, key] }
      })
    await Promise.all(keys.map(added))
    const removed = keys.slice(0, 10)
    const rest = (gone: string) =>
      store().resources.updateSource(id, ({ writeKeys }) => ({ writeKeys: writeKeys.filter((key) => key !== gone) }))
    const more = Array.from({ length: 10 }, () => randomUUID())
    await Promise.all([...removed.map(rest), ...more.map(added)])
    const wanted = new Set([...keys.slice(10), ...more])
    assert.deepEqual(new Set(store().configuration().sources.get(id)?.writeKeys), wanted)
    await reopen()
    assert.deepEqual(new Set(store().configuration().sources.get(id)?.writeKeys), wanted)
  })

  test('a change whose function throws changes nothing, and the next change succeeds', async () => {
    const source = await newSource(store())
    const destination = await newDestination(store(), source.id)
    const refusal = new Error('refused')
    const refuse = (): never => {
      throw refusal
    }
    const { deletions, resources } = store()
    const before = store().configuration()
    for (const refused of [
      () => resources.createSource(refuse),
      () => resources.updateSource(source.id, refuse),
      () => resources.deleteSource(source.id, undefined, refuse),
      () => resources.createDestination(refuse),
      () => resources.updateDestination(destination.id, refuse),
      () => resources.deleteDestination(destination.id, undefined, refuse),
      () => resources.createOAuthApp(refuse),
      () => resources.createToken(refuse),
      () => deletions.create(refuse),
      () => deletions.suppress(refuse),
    ])
      await assert.rejects(refused, refusal)
    assert.equal(store().configuration(), before)
    assert.equal((await resources.updateSource(source.id, ({ name }) => ({ name: `${name}, changed` })))?.name, `${source.name}, changed`)
  })

  test('no two sources have the same write key, also with concurrent changes', async () => {
    const { id, writeKeys } = await newSource(store())
    await assert.rejects(newSource(store(), { writeKeys }), WriteKeyTaken)
    const other = await newSource(store())
    await assert.rejects(store().resources.updateSource(other.id, { writeKeys: [randomUUID(), ...writeKeys] }), WriteKeyTaken)
    await store().resources.updateSource(id, { writeKeys: [...writeKeys, randomUUID()] })
    const raced = [randomUUID()]
    const results = await Promise.allSettled([newSource(store(), { writeKeys: raced }), newSource(store(), { writeKeys: raced })])
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    )
    await store().resources.deleteSource(id)
    await newSource(store(), { writeKeys })
  })

  test('a deleted source no longer exists, and is removed from its destinations', async () => {
    const [one, other] = [await newSource(store()), await newSource(store())]
    const { id } = await newDestination(store(), one.id, { sourceIds: [one.id, other.id] })
    assert.equal(await store().resources.deleteSource(one.id), true)
    assert.equal(await store().resources.deleteSource(one.id), false)
    await reopen()
    assert.equal(store().configuration().sources.has(one.id), false)
    assert.deepEqual(store().configuration().destinations.get(id)?.sourceIds, [other.id])
  })

  test('a source and all references to it are deleted at the same moment', async () => {
    const other = await open({ retentionDays: 7 })
    const { store: watched } = other
    const { id: sourceId } = await newSource(watched)
    for (let count = 0; count < 3; count++) await newDestination(watched, sourceId, { sharedSecret: 'a secret' })
    await watched.resources.createOAuthApp({ name: 'one', sourceIds: [sourceId], keys: [], revokedBeforeMs: null })
    const seen: boolean[][] = []
    watched.onConfiguration(({ sources, destinations, oauthApps }) => {
      const naming = [...destinations.values(), ...oauthApps.values()].map(({ sourceIds }) => sourceIds.includes(sourceId))
      seen.push([sources.has(sourceId), ...naming])
    })
    assert.equal(await watched.resources.deleteSource(sourceId), true)
    assert.deepEqual(seen, [[false, false, false, false, false]])
    const [first] = watched.configuration().destinations.values()
    assert.equal(asWebhook(first).sharedSecret, 'a secret')
    await other.dispose()
  })

  test('listeners are called for every change, after it is made and in order', async () => {
    const other = await open({ retentionDays: 7 })
    const { store: watched } = other
    const seen: Configuration[] = []
    watched.onConfiguration((configuration) => {
      assert.equal(watched.configuration(), configuration)
      seen.push(configuration)
    })
    const { id: sourceId } = await newSource(watched)
    const { id: destinationId } = await newDestination(watched, sourceId)
    await watched.resources.updateDestination(destinationId, { enabled: false })
    await watched.deletions.create({ userIds: ['u'], sourceIds: [sourceId], suppress: true })
    await watched.deletions.unsuppress('u', null)
    await watched.resources.deleteDestination(destinationId)
    await watched.resources.deleteSource(sourceId)
    const told = seen.map(({ sources, destinations, suppressions }) => [
      sources.size,
      destinations.get(destinationId)?.enabled,
      suppressions.size,
    ])
    assert.deepEqual(told, [
      [1, undefined, 0],
      [1, true, 0],
      [1, false, 0],
      [1, false, 1],
      [1, false, 0],
      [1, undefined, 0],
      [0, undefined, 0],
    ])
    await other.dispose()
  })

  test('a source that is created while users are suppressed is not lost', async () => {
    const { id } = await newSource(store())
    const made = await Promise.all(
      Array.from({ length: 8 }, async (_, at) => {
        const deletion = store().deletions.create({ userIds: [`u-${at}`], sourceIds: [id], suppress: true })
        const source = await newSource(store())
        await deletion
        return source.id
      }),
    )
    for (const sourceId of made) assert.ok(store().configuration().sources.has(sourceId))
    assert.equal(store().configuration().suppressions.get(id)?.size, 8)
  })

  test('settings are stored', async () => {
    assert.equal(await store().resources.getSetting('none'), undefined)
    await store().resources.setSetting('a name', 'one')
    await store().resources.setSetting('a name', 'two\0\n')
    await reopen()
    assert.equal(await store().resources.getSetting('a name'), 'two\0\n')
  })

  test('secrets cannot be read from the stored bytes, other values can', async () => {
    const other = await open({ retentionDays: 7 })
    const { id } = await newSource(other.store)
    const secrets = { sharedSecret: 'SECRET-shared-1', signingSecrets: ['SECRET-signing-1', 'SECRET-signing-2'] }
    const { id: destinationId } = await newDestination(other.store, id, { ...secrets, name: 'PLAIN-name' })
    await other.store.resources.updateDestination(destinationId, { sharedSecret: 'SECRET-shared-2' })
    const bytes = await other.closeAndRead()
    assert.ok(bytes.includes('PLAIN-name'), 'these are the stored bytes')
    assert.ok(!bytes.includes('SECRET-'))
    await other.dispose()
  })

  // ── Deleting a destination ──

  const untilNothingIsPending = async (destinationId: string): Promise<void> => {
    const own = async (): Promise<number | undefined> =>
      (await store().books.ledger()).find((row) => row.destinationId === destinationId)?.pending
    await until(own, (pending) => pending === 0, 'everything is cancelled')
  }

  test('pending deliveries of a deleted destination are cancelled, with the reason', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, tracks(3, 'c'), [destinationId])
    await settle(store(), await claimOne(store(), destinationId), (id) => (id.endsWith('-0') ? 'delivered' : 'retry'))
    for (let at = 0; at < 5; at++) await accept(store(), sourceId, tracks(2), [destinationId])
    assert.equal(await store().resources.deleteDestination(destinationId), true)
    assert.equal(await store().resources.deleteDestination(destinationId), false)
    await untilNothingIsPending(destinationId)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 13, delivered: 1, cancelled: 12 }))
    const { data } = await store().history.deliveries({ destinationId, state: 'cancelled' }, { limit: 100, cursor: null })
    assert.deepEqual([data.length, new Set(data.map(({ reason }) => reason))], [12, new Set(['destination_deleted'])])
    const retried = data.filter(({ messageId }) => messageId?.startsWith('c-'))
    assert.deepEqual(
      retried.map(({ attempts }) => attempts),
      [1, 1],
    )
  })

  test('shipments that are claimed when their destination is deleted are cancelled when they are released or need a retry', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    for (const name of ['a', 'b', 'c']) await accept(store(), sourceId, tracks(2, name), [destinationId])
    const [a, b, c] = (await claim(store(), destinationId)).shipments
    assert.ok(a && b && c)
    await store().resources.deleteDestination(destinationId)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 6, pending: 6 }))
    await settle(store(), a, 'delivered')
    await settle(store(), b, 'retry')
    store().delivery.release([c.shipment])
    await untilNothingIsPending(destinationId)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 6, delivered: 2, cancelled: 4 }))
  })

  test('cancelling many deliveries continues after the store was closed in the middle', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const batches = Array.from({ length: 4 }, () => tracks(1_000))
    for (const items of batches) await accept(store(), sourceId, items, [destinationId])
    const held = await claimOne(store(), destinationId)
    await store().resources.deleteDestination(destinationId)
    await reopen()
    await untilNothingIsPending(destinationId)
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 4_000, cancelled: 4_000 }))
    await assert.rejects(settle(store(), held, 'delivered'), 'the claim from before the restart is void')
    assert.equal((await store().history.delivery(deliveriesOf(held.shipment)[7] as string))?.state, 'cancelled')
  })

  test('what is stored about the tables of a warehouse is deleted with the destination, and nothing else', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    const { id: other } = await newDestination(store(), sourceId)
    const keysOf = (id: string): string[] => [id, `${id} ${sourceId} meta`, `${id} load_1`]
    const documents = [destinationId, other].flatMap(keysOf)
    const left = async (): Promise<string[][]> =>
      Promise.all(
        WAREHOUSE_DOCUMENTS.map(async (kind) => (await store().documents.list(kind, { order: 'key', limit: 100 })).map(({ key }) => key)),
      )
    for (const kind of WAREHOUSE_DOCUMENTS)
      await store().documents.update(kind, [], () => new Map(documents.map((key) => [key, { atMs: NOW_MS, doc: {} }])))
    await store().resources.deleteDestination(destinationId)
    for (const keys of await left()) assert.deepEqual(keys, keysOf(other).sort())
    await store().resources.deleteDestination(other)
    for (const keys of await left()) assert.deepEqual(keys, [])
  })

  test('a disabled destination keeps its pending deliveries', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await accept(store(), sourceId, [track('kept')], [destinationId])
    await store().resources.updateDestination(destinationId, { enabled: false })
    await reopen()
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 1, pending: 1 }))
    assert.deepEqual(messageIdsOf(await claimOne(store(), destinationId, { nowMs: NOW_MS })), ['kept'])
  })

  test('a paused destination keeps its pending deliveries and gets new ones', async () => {
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    assert.equal(store().configuration().destinations.get(destinationId)?.paused, false)
    await accept(store(), sourceId, [track('before')], [destinationId])
    assert.equal((await store().resources.updateDestination(destinationId, { paused: true }))?.paused, true)
    await reopen()
    assert.equal(store().configuration().destinations.get(destinationId)?.paused, true)
    await accept(store(), sourceId, [track('meanwhile')], [destinationId])
    await store().resources.updateDestination(destinationId, { name: 'still paused' })
    assert.deepEqual(await ledgerOf(store(), destinationId), counts({ owed: 2, pending: 2 }))
    assert.equal((await store().resources.updateDestination(destinationId, { paused: false }))?.paused, false)
    await reopen()
    assert.equal(store().configuration().destinations.get(destinationId)?.paused, false)
  })

  // ── Counts ──

  test('messages are counted by source, and rejections by code, with the last sample of each', async () => {
    const { id: sourceId } = await newSource(store())
    await accept(store(), sourceId, [...tracks(4, 'n'), track('n-0')])
    await accept(store(), sourceId, tracks(2, 'n'))
    const { ingest } = store()
    for (let at = 1; at <= 300; at++) ingest.reject({ sourceId, code: 'event_required', count: 2, sample: `sample ${at}`, atMs: at })
    ingest.reject({ sourceId, code: 'invalid_json', count: 1, sample: 'odd \0 \ud800', atMs: 7 })
    ingest.reject({ sourceId: null, code: `unknown_${sourceId}`, count: 5, sample: '', atMs: 9 })
    ingest.suppressed(sourceId, 3)
    ingest.suppressed(sourceId, 4)
    await reopen()
    const own = (await store().books.sourceCounts()).find((each) => each.sourceId === sourceId)
    assert.deepEqual(own, { sourceId, accepted: 4, duplicates: 3, rejected: 601, suppressed: 7, quarantined: 0, released: 0, deleted: 0 })
    const rejections = (await store().books.rejections()).filter((each) => each.sourceId === sourceId)
    // A lone surrogate may be stored unchanged or as the replacement character of UTF-8; nothing else may change.
    const kept = rejections.map((each) => Object.assign({}, each, { lastSample: Buffer.from(each.lastSample).toString() }))
    assert.deepEqual(kept, [
      { sourceId, code: 'event_required', count: 600, lastAtMs: 300, lastSample: 'sample 300' },
      { sourceId, code: 'invalid_json', count: 1, lastAtMs: 7, lastSample: 'odd \0 \ufffd' },
    ])
    const unknown = (await store().books.rejections()).find(({ code }) => code === `unknown_${sourceId}`)
    assert.deepEqual([unknown?.sourceId, unknown?.count], [null, 5])
  })

  test('check() is ok if the store works', async () => {
    assert.deepEqual(await store().check(), { ok: true })
  })
}
