// Conformance: lists that are limited to some sources, and tokens that are limited to them. Nothing of other sources is in a page, counts, or takes
// the place of an entry.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { DeliveryFilter, Store } from '../store.ts'
import {
  accept,
  allPages,
  newDestination,
  newSource,
  PLAN_ID,
  quarantining,
  type StoreFixture,
  settleAll,
  track,
  tracks,
} from './fixtures.ts'
import { finish, matching, OPERATOR, pendingMessages } from './replays/replay-fixtures.ts'

const byText = (a: string | null, b: string | null): number => ((a ?? '') < (b ?? '') ? -1 : 1)

/** Two sources and a destination that serves both, with two messages of the first and three of the second, in turn. */
async function sharedDestination(store: Store) {
  const [{ id: own }, { id: other }] = [await newSource(store), await newSource(store)]
  const { id: destinationId } = await newDestination(store, own, { sourceIds: [own, other] })
  const prefix = randomUUID()
  const send = async (): Promise<void> => {
    for (const at of [0, 1, 2]) {
      await accept(store, other, [track(`${prefix}-other-${at}`)], [destinationId])
      if (at < 2) await accept(store, own, [track(`${prefix}-own-${at}`)], [destinationId])
    }
  }
  return { own, other, destinationId, prefix, send }
}

export function scoping({ store, reopen }: StoreFixture): void {
  for (const limit of [1, 2, 50]) {
    test(`with ${limit} per page, messages and deliveries of other sources are on no page`, async () => {
      const { own, destinationId, prefix, send } = await sharedDestination(store())
      await send()
      const ownIds = [`${prefix}-own-1`, `${prefix}-own-0`]
      const messages = await allPages((page) => store().history.messages({ sourceIds: [own] }, page), limit)
      assert.deepEqual(
        messages.map(({ content, index }) => content.items[index]?.['messageId']),
        ownIds,
      )
      const deliveries = async (filter: DeliveryFilter): Promise<(string | null)[]> => {
        const rows = await allPages((page) => store().history.deliveries({ destinationId, sourceIds: [own], ...filter }, page), limit)
        return rows.map(({ messageId }) => messageId).sort(byText)
      }
      assert.deepEqual(await deliveries({ state: 'pending' }), [...ownIds].sort())
      await settleAll(store(), destinationId, 'failed')
      assert.deepEqual(await deliveries({}), [...ownIds].sort())
      assert.deepEqual(await deliveries({ state: 'failed' }), [...ownIds].sort())
      assert.deepEqual(await deliveries({ event: 'tested' }), [...ownIds].sort())
      assert.deepEqual(await deliveries({ userId: 'a user', state: 'failed' }), [...ownIds].sort())
      assert.deepEqual(await deliveries({ state: 'delivered' }), [])
      const { causes, counted } = await store().history.failureCauses({ destinationId, sourceIds: [own] })
      assert.deepEqual(
        causes.map(({ count }) => count),
        [2],
      )
      assert.equal(counted, 2)
      assert.equal((await store().history.failureCauses({ destinationId })).counted, 5)
    })
  }

  test('a source and a scope without it find nothing, and a scope of nothing finds nothing', async () => {
    const { own, other, destinationId, send } = await sharedDestination(store())
    await send()
    const page = { limit: 10, cursor: null }
    for (const filter of [{ sourceId: other, sourceIds: [own] }, { sourceIds: [] }, { sourceIds: ['src_unknown'] }]) {
      assert.deepEqual(await store().history.messages(filter, page), { data: [], next: null })
    }
    assert.deepEqual(await store().history.deliveries({ destinationId, sourceIds: [] }, page), { data: [], next: null })
    assert.equal((await store().history.messages({ sourceId: own, sourceIds: [own, other] }, page)).data.length, 2)
  })

  test('a messageId finds the message of a source in scope, although another source has used it later', async () => {
    const { own, other, prefix } = await sharedDestination(store())
    const shared = `${prefix}-shared`
    await accept(store(), own, [track(shared, { event: 'own' })])
    await accept(store(), other, [track(shared, { event: 'other' })])
    const found = await store().history.message(shared, [own])
    assert.equal(found?.content.sourceId, own)
    assert.deepEqual(
      (await store().history.trails(shared, [own])).map(({ content }) => content.sourceId),
      [own],
    )
    assert.equal((await store().history.trails(shared)).length, 2)
    const [listed] = (await store().history.messages({ sourceId: other }, { limit: 1, cursor: null })).data
    assert.equal(await store().history.message(listed?.id ?? '', [own]), undefined)
    assert.deepEqual(await store().history.trails(listed?.id ?? '', [own]), [])
    const [own1] = (await store().history.messages({ messageId: shared, sourceIds: [own] }, { limit: 5, cursor: null })).data
    assert.equal(own1?.content.sourceId, own)
  })

  test('a delivery names the source of its message', async () => {
    const { own, other, destinationId, send } = await sharedDestination(store())
    await send()
    const [row] = (await store().history.deliveries({ destinationId, sourceIds: [own] }, { limit: 1, cursor: null })).data
    assert.equal((await store().history.delivery(row?.id ?? ''))?.sourceId, own)
    assert.equal((await store().history.delivery(row?.id ?? '', [own]))?.sourceId, own)
    for (const scope of [[other], [], ['src_000000000000']]) assert.equal(await store().history.delivery(row?.id ?? '', scope), undefined)
  })

  test('messages in quarantine of other sources are on no page', async () => {
    const { own, other } = await sharedDestination(store())
    for (const sourceId of [other, own, other]) await accept(store(), sourceId, tracks(2), [], quarantining([0, 1]))
    const found = await allPages((page) => store().quarantine.list({ sourceIds: [own], planId: PLAN_ID }, page), 1)
    assert.deepEqual(
      found.map(({ content }) => content.sourceId),
      [own, own],
    )
  })

  test('audit entries are seen only if all their sources are in scope, and those without sources are not', async () => {
    const { own, other } = await sharedDestination(store())
    const action = `act-${randomUUID()}`
    const owner = { subject: 'ann', email: 'ann@example.com' }
    for (const sources of [[own], [own, other], [other], [], null, undefined]) {
      const actor = { id: 'tok_1', name: 'Ann', owner }
      await store().history.noteAudit({ actor, action, subject: own, before: null, after: null, ...(sources !== undefined && { sources }) })
    }
    await reopen()
    const entries = await allPages((page) => store().history.audit({ action, sourceIds: [own] }, page), 1)
    assert.deepEqual(
      entries.map(({ sources }) => sources),
      [[own]],
    )
    assert.deepEqual(entries[0]?.actor, { id: 'tok_1', name: 'Ann', type: 'token', owner })
    assert.equal((await store().history.audit({ action }, { limit: 50, cursor: null })).data.length, 6)
    assert.equal((await store().history.audit({ action, sourceIds: [own, other] }, { limit: 50, cursor: null })).data.length, 3)
  })

  test('deletion requests are listed only if all their sources are in scope, and suppressions by source', async () => {
    const { own, other, prefix } = await sharedDestination(store())
    const userIds = [`${prefix}-user`]
    const request = await store().deletions.create({ userIds, sourceIds: [own], suppress: true })
    await store().deletions.create({ userIds, sourceIds: [own, other], suppress: true })
    const page = { limit: 100, cursor: null }
    const listed = await allPages((each) => store().deletions.list({ userId: userIds[0], sourceIds: [own] }, each), 1)
    assert.deepEqual(
      listed.map(({ id }) => id),
      [request.id],
    )
    const suppressed = async (userId?: string): Promise<string[]> =>
      (await store().deletions.suppressions({ userId, sourceIds: [own] }, page)).data.map(({ sourceId }) => sourceId)
    assert.deepEqual(await suppressed(), [own])
    assert.deepEqual(await suppressed(userIds[0]), [own])
    assert.equal(await store().deletions.unsuppress(userIds[0] as string, [own]), 1)
    assert.deepEqual(await suppressed(), [])
    assert.equal((await store().deletions.suppressions({ sourceId: other }, page)).data.length, 1)
  })

  test('documents are listed by several prefixes, in both orders', async () => {
    const kind = randomUUID()
    const keys = ['a/1', 'a/2', 'b/1', 'c/1', 'c/2']
    await store().documents.update(kind, [], () => new Map(keys.map((key, atMs) => [key, { atMs, doc: {} }])))
    const list = async (prefixes: readonly string[], order: 'key' | 'newest', prefix = ''): Promise<string[]> =>
      (await store().documents.list(kind, { prefix, prefixes, order, limit: 10 })).map(({ key }) => key)
    assert.deepEqual(await list(['a/', 'c/'], 'key'), ['a/1', 'a/2', 'c/1', 'c/2'])
    assert.deepEqual(await list(['a/', 'c/'], 'newest'), ['c/2', 'c/1', 'a/2', 'a/1'])
    assert.deepEqual(await list(['a/', 'c/'], 'key', 'c/'), ['c/1', 'c/2'])
    assert.deepEqual(await list([], 'key'), [])
    const [, second] = await store().documents.list(kind, { prefixes: ['a/', 'c/'], order: 'newest', limit: 2 })
    const rest = await store().documents.list(kind, { prefixes: ['a/', 'c/'], order: 'newest', after: second, limit: 10 })
    assert.deepEqual(
      rest.map(({ key }) => key),
      ['a/2', 'a/1'],
    )
  })

  // ── Replays ──

  for (const state of ['failed', 'delivered'] as const) {
    test(`a replay job that is limited to a source counts and replays only its ${state} deliveries`, async () => {
      const { own, destinationId, prefix, send } = await sharedDestination(store())
      await send()
      await settleAll(store(), destinationId, state)
      const selection = matching({ destinationId, states: [state], sourceIds: [own] })
      assert.deepEqual(await store().replays.count(selection), {
        total: 2,
        alreadyReplayed: 0,
        byDestination: [{ destinationId, total: 2, alreadyReplayed: 0 }],
      })
      const job = await finish(store(), await store().replays.create({ selection, ratePerSecond: null, createdBy: OPERATOR }))
      assert.deepEqual([job.total, job.replayed, job.skipped, job.selection], [2, 2, {}, selection])
      assert.deepEqual((await pendingMessages(store(), destinationId)).sort(byText), [`${prefix}-own-0`, `${prefix}-own-1`])
      assert.equal((await store().replays.count(selection)).alreadyReplayed, 2)
      assert.equal((await store().replays.count({ ...selection, sourceIds: undefined })).total, 5)
    })
  }

  test('deliveries of other sources that a limited replay job selects by id count as unknown', async () => {
    const { own, other, destinationId, prefix, send } = await sharedDestination(store())
    await send()
    await settleAll(store(), destinationId, 'failed')
    const all = await allPages((page) => store().history.deliveries({ destinationId }, page), 50)
    const selection = { deliveryIds: all.map(({ id }) => id), sourceIds: [own] }
    const { total, byDestination } = await store().replays.count(selection)
    assert.deepEqual([total, byDestination.map((each) => each.total)], [5, [2]])
    const created = await store().replays.create({ selection, ratePerSecond: null, createdBy: OPERATOR })
    const job = await finish(store(), created)
    assert.deepEqual([job.replayed, job.skipped], [2, { not_found: 3 }])
    assert.deepEqual((await pendingMessages(store(), destinationId)).sort(byText), [`${prefix}-own-0`, `${prefix}-own-1`])
    const unlimited = await store().replays.create({ selection: matching({ destinationId }), ratePerSecond: null, createdBy: OPERATOR })
    const ids = async (sourceIds: readonly string[]): Promise<string[]> =>
      (await allPages((page) => store().replays.list({ sourceIds }, page), 1)).map(({ id }) => id)
    assert.deepEqual(await ids([own]), [job.id])
    assert.deepEqual(await ids([other]), [])
    assert.ok((await allPages((page) => store().replays.list({}, page), 100)).some(({ id }) => id === unlimited.id))
  })

  // ── Tokens ──

  test('the limits of a token are kept after a restart', async () => {
    const { own } = await sharedDestination(store())
    const limits = {
      role: 'editor',
      sources: [own],
      expiresAtMs: 1_900_000_000_000,
      owner: { personId: 'per_1', subject: 's', email: null },
    } as const
    const token = await store().resources.createToken({ name: 'limited', ...limits, hash: randomUUID() })
    const plain = await store().resources.createToken({
      ...token,
      role: 'admin',
      sources: 'all',
      expiresAtMs: null,
      owner: null,
      hash: 'p',
    })
    await reopen()
    assert.deepEqual(store().configuration().tokens.get(token.id), token)
    assert.deepEqual(store().configuration().tokens.get(plain.id), plain)
    for (const { id } of [token, plain]) await store().resources.deleteToken(id)
  })
}
