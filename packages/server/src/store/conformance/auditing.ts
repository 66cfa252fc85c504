// Conformance: control tokens and the audit log.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import type { Actor, Audit, AuditEntry, ControlToken, NewAuditEntry, Store } from '../store.ts'
import {
  accept,
  allPages,
  claimOne,
  DAY_MS,
  deliveriesOf,
  newDestination,
  newSource,
  newSourceAndDestination,
  quietMoment,
  type StoreFixture,
  settle,
  track,
} from './fixtures.ts'

const UNLIMITED = { sources: 'all', expiresAtMs: null, owner: null } as const
const ANN: Actor = { id: 'tok_ann', name: 'Ann' }
const BOB: Actor = { id: 'tok_bob', name: 'Bob \u{1f600}' }

export function auditing({ store, reopen, open }: StoreFixture): void {
  let made = 0
  const newToken = (change: Partial<ControlToken> = {}): Promise<ControlToken> =>
    store().resources.createToken({ name: 'a token', role: 'viewer', ...UNLIMITED, hash: `hash-${++made}`, ...change })
  const uses = async (id: string): Promise<number | undefined> => (await store().resources.tokenUses()).find((use) => use.id === id)?.atMs

  test('tokens are part of the configuration, also after the store is reopened', async () => {
    const [viewer, admin] = [await newToken({ name: 'näme\u0000' }), await newToken({ role: 'admin' })]
    assert.notEqual(viewer.id, admin.id)
    assert.deepEqual(store().configuration().tokens.get(viewer.id), viewer)
    assert.ok(Math.abs(viewer.createdAtMs - Date.now()) < 60_000)
    const before = store().configuration().tokens
    await reopen()
    assert.deepEqual(store().configuration().tokens, before)
    assert.deepEqual(store().configuration().tokens.get(admin.id), admin)
  })

  test('a deleted token is removed at once, and is still removed after a restart', async () => {
    const token = await newToken()
    assert.equal(await store().resources.deleteToken(token.id), true)
    assert.equal(store().configuration().tokens.has(token.id), false)
    assert.equal(await store().resources.deleteToken(token.id), false)
    await reopen()
    assert.equal(store().configuration().tokens.has(token.id), false)
  })

  test('two tokens never have the same hash', async () => {
    const { hash, id } = await newToken()
    await assert.rejects(newToken({ hash }))
    assert.deepEqual(
      [...store().configuration().tokens.values()].filter((token) => token.hash === hash).map((token) => token.id),
      [id],
    )
  })

  test('the last use of a token is stored, never goes back, and is no change of the configuration', async () => {
    const { id } = await newToken()
    assert.equal(await uses(id), undefined)
    const before = store().configuration()
    await store().resources.useToken(id, 5_000)
    await store().resources.useToken(id, 4_000)
    await store().resources.useToken('tok_nobody', 4_000)
    assert.equal(store().configuration(), before)
    await reopen()
    assert.equal(await uses(id), 5_000)
    assert.equal(await uses('tok_nobody'), undefined)
    await store().resources.deleteToken(id)
    assert.equal(await uses(id), undefined)
  })

  // ── The audit log ──

  const noted =
    <T extends object>(action: string, actor: Actor = ANN): Audit<T> =>
    (after, before) => ({
      actor,
      action,
      subject: ((after ?? before) as { id?: string } | null)?.id ?? null,
      before: before === null ? null : { was: true },
      after: after === null ? null : { is: true },
    })
  const entries = (filter: Parameters<Store['history']['audit']>[0] = {}, limit = 100): Promise<AuditEntry[]> =>
    allPages((page) => store().history.audit(filter, page), limit)
  const actions = async (filter: Parameters<Store['history']['audit']>[0], limit = 100): Promise<string[]> =>
    (await entries(filter, limit)).map(({ action }) => action)
  const own = (): string => `act-${++made}`

  test('every change is in the audit log with its actor, newest first, also after a restart', async () => {
    const { deletions, resources } = store()
    const action = own()
    const source = await newSource(store())
    const token = await resources.createToken({ name: 't', role: 'viewer', ...UNLIMITED, hash: `hash-${++made}` }, noted(action))
    await resources.updateSource(source.id, { enabled: false }, noted(action))
    const destination = await resources.createDestination(await newDestination(store(), source.id), noted(action))
    await resources.updateDestination(destination.id, { enabled: false }, noted(action, BOB))
    await resources.deleteDestination(destination.id, noted(action))
    const deletion = await deletions.create({ userIds: ['u'], sourceIds: [source.id], suppress: false }, noted(action))
    await deletions.suppress({ userIds: ['u'], sourceIds: [source.id] }, noted(action))
    await deletions.unsuppress('u', [source.id], noted(action))
    await resources.deleteSource(source.id, noted(action))
    await resources.deleteToken(token.id, noted(action))
    await reopen()
    const found = await entries({ action })
    assert.deepEqual(
      found.map(({ subject, before, after, actor }) => [subject, before !== null, after !== null, actor.name]),
      [
        [token.id, true, false, 'Ann'],
        [source.id, true, false, 'Ann'],
        [null, true, false, 'Ann'],
        [null, false, true, 'Ann'],
        [deletion.id, false, true, 'Ann'],
        [destination.id, true, false, 'Ann'],
        [destination.id, true, true, 'Bob \u{1f600}'],
        [destination.id, false, true, 'Ann'],
        [source.id, true, true, 'Ann'],
        [token.id, false, true, 'Ann'],
      ],
    )
    assert.equal(new Set(found.map(({ id }) => id)).size, 10)
    for (const { atMs } of found) assert.ok(Math.abs(atMs - Date.now()) < 60_000)
  })

  test('a call that changes nothing has no audit entry', async () => {
    const { deletions, replays, resources } = store()
    const action = own()
    const { sourceId, destinationId } = await newSourceAndDestination(store())
    await resources.updateSource('src_unknown', { enabled: false }, noted(action))
    const { sources, destinations } = store().configuration()
    const { name, writeKeys } = sources.get(sourceId) ?? assert.fail()
    assert.equal((await resources.updateSource(sourceId, { name, writeKeys: [...writeKeys] }, noted(action)))?.id, sourceId)
    const { batch, headers } = asWebhook(destinations.get(destinationId))
    await resources.updateDestination(destinationId, { batch: { ...batch }, headers: { ...headers } }, noted(action))
    const app = await resources.createOAuthApp({ name: 'one', sourceIds: [sourceId], keys: [], revokedBeforeMs: null })
    await resources.updateOAuthApp(app.id, { sourceIds: [sourceId] }, noted(action))
    await resources.deleteSource('src_unknown', noted(action))
    await resources.updateDestination('dst_unknown', {}, noted(action))
    await resources.deleteDestination('dst_unknown', noted(action))
    await resources.deleteToken('tok_unknown', noted(action))
    await deletions.unsuppress('nobody', null, noted(action))
    await deletions.suppress({ userIds: ['once'], sourceIds: [sourceId] })
    await deletions.suppress({ userIds: ['once'], sourceIds: [sourceId] }, noted(action))
    await accept(store(), sourceId, [track('pending')], [destinationId])
    const claimed = await claimOne(store(), destinationId)
    const [delivery] = deliveriesOf(claimed.shipment) as [string]
    await replays.replay(delivery, noted(action))
    await assert.rejects(deletions.create({ userIds: ['u'], sourceIds: ['src_unknown'], suppress: true }, noted(action)))
    await assert.rejects(
      resources.createSource(
        { name: 'x', enabled: true, requireOAuth: false, writeKeys: [...(store().configuration().sources.get(sourceId)?.writeKeys ?? [])] },
        noted(action),
      ),
    )
    assert.deepEqual(await entries({ action }), [])
    await settle(store(), claimed, 'failed')
    await replays.replay(delivery, noted(action))
    assert.equal((await entries({ action })).length, 1)
  })

  test('entries are found by actor, action, subject and time, on pages of any size', async () => {
    const { history } = store()
    const [one, two, subject] = [own(), own(), own()]
    const note = (entry: Partial<NewAuditEntry>): Promise<void> =>
      history.noteAudit({ actor: ANN, action: one, subject: null, before: null, after: null, ...entry })
    await note({ subject })
    const middleMs = await quietMoment()
    await note({ actor: BOB, subject })
    await note({ action: two, subject, after: { deep: { list: [1, 'two', null] } } })
    for (const limit of [1, 2, 100]) {
      assert.equal((await entries({ subject }, limit)).length, 3)
      assert.deepEqual(await actions({ subject, actorId: ANN.id }, limit), [two, one])
      assert.deepEqual(await actions({ subject, action: one }, limit), [one, one])
      assert.deepEqual(await actions({ subject, fromMs: middleMs }, limit), [two, one])
      assert.deepEqual(await actions({ subject, toMs: middleMs - 1 }, limit), [one])
      assert.deepEqual(await actions({ action: one, actorId: BOB.id }, limit), [one])
      assert.deepEqual(await actions({ subject: 'nothing' }, limit), [])
    }
    const [newest] = await entries({ subject })
    assert.deepEqual(
      [newest?.after, newest?.before, newest?.actor],
      [{ deep: { list: [1, 'two', null] } }, null, { ...ANN, type: 'token', owner: null }],
    )
  })

  test('a page of large entries is short, and the next page has the rest', async () => {
    const after = { settings: 'x'.repeat(2 * 1024 * 1024) }
    for (let at = 0; at < 12; at++) {
      await store().history.noteAudit({ actor: ANN, action: 'x.large', subject: 'large', before: null, after })
    }
    const page = await store().history.audit({ subject: 'large' }, { limit: 1_000, cursor: null })
    assert.ok(page.data.length >= 1 && page.data.length < 12 && page.next !== null)
    assert.equal((await allPages((page) => store().history.audit({ subject: 'large' }, page), 1_000)).length, 12)
  })

  test('entries are kept longer than messages, and are dropped after 400 days', async () => {
    const other = await open({ retentionDays: 7 })
    const { history } = other.store
    for (let at = 0; at < 1_200; at += 100) {
      await Promise.all(
        Array.from({ length: 100 }, () => history.noteAudit({ actor: ANN, action: 'x.y', subject: null, before: null, after: null })),
      )
    }
    const count = async (): Promise<number> => (await allPages((page) => history.audit({}, page), 1_000)).length
    await other.store.dropExpired(Date.now() + 399 * DAY_MS)
    assert.equal(await count(), 1_200)
    await other.store.dropExpired(Date.now() + 402 * DAY_MS)
    assert.equal(await count(), 0)
    await other.dispose()
  })

  test('entries are kept as long as messages if those are kept for more than 400 days', async () => {
    const other = await open({ retentionDays: 1_000 })
    await other.store.history.noteAudit({ actor: ANN, action: 'x.y', subject: null, before: null, after: null })
    await other.store.dropExpired(Date.now() + 900 * DAY_MS)
    assert.equal((await other.store.history.audit({}, { limit: 1, cursor: null })).data.length, 1)
    await other.dispose()
  })
}
