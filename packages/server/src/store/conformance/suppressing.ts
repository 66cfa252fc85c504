// Conformance: users whose new messages are dropped, with or without a deletion request.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allPages, newSource, type StoreFixture } from './fixtures.ts'

export function suppressing({ store, reopen, open }: StoreFixture): void {
  test('users are suppressed by source until they are unsuppressed', async () => {
    const [{ id: one }, { id: other }] = [await newSource(store()), await newSource(store())]
    const before = Date.now()
    await store().deletions.create({ userIds: ['s1', 's2', 's\0\u00e9'], sourceIds: [one, other], suppress: true })
    await store().deletions.create({ userIds: ['not'], sourceIds: [one], suppress: false })
    await store().deletions.create({ userIds: ['s1'], sourceIds: [one], suppress: true })
    const suppressed = (sourceId: string): string[] => [...(store().configuration().suppressions.get(sourceId) ?? [])].sort()
    assert.deepEqual(suppressed(one), ['s1', 's2', 's\0\u00e9'].sort())
    await reopen()
    assert.deepEqual(suppressed(one), ['s1', 's2', 's\0\u00e9'].sort())
    for (const limit of [1, 2, 7]) {
      const all = await allPages((page) => store().deletions.suppressions({}, page), limit)
      const own = all.filter(({ sourceId }) => sourceId === one || sourceId === other)
      assert.equal(own.length, 6)
      assert.equal(new Set(own.map((each) => `${each.sourceId} ${each.userId}`)).size, 6)
      assert.ok(own.every(({ since }) => since >= before - 1))
    }
    assert.equal(await store().deletions.unsuppress('s1', [one]), 1)
    assert.equal(await store().deletions.unsuppress('s1', [one]), 0)
    assert.equal(await store().deletions.unsuppress('s2', null), 2)
    assert.equal(await store().deletions.unsuppress('s2', ['src_unknown']), 0)
    assert.deepEqual([suppressed(one), suppressed(other)], [['s\0\u00e9'], ['s1', 's\0\u00e9'].sort()])
  })

  test('a suppression does not change the rest of the configuration, and none is lost with concurrent changes', async () => {
    const { id: one } = await newSource(store())
    const { id: other } = await newSource(store())
    const { sources, destinations } = store().configuration()
    const userIds = Array.from({ length: 20 }, (_, at) => `at once ${at}`)
    await Promise.all([
      ...userIds.map((userId) => store().deletions.suppress({ userIds: [userId], sourceIds: [one] })),
      store().deletions.create({ userIds: ['with a deletion'], sourceIds: [one, other], suppress: true }),
    ])
    const suppressed = (sourceId: string): string[] => [...(store().configuration().suppressions.get(sourceId) ?? [])].sort()
    const expected = [...userIds, 'with a deletion'].sort()
    assert.deepEqual([suppressed(one), suppressed(other)], [expected, ['with a deletion']])
    await Promise.all([
      store().deletions.unsuppress('at once 0', null),
      store().deletions.suppress({ userIds: ['at once 0'], sourceIds: [other] }),
      store().deletions.unsuppress('with a deletion', [other]),
    ])
    const inMemory = [suppressed(one), suppressed(other)]
    assert.equal(store().configuration().sources, sources)
    assert.equal(store().configuration().destinations, destinations)
    await reopen()
    assert.deepEqual([suppressed(one), suppressed(other)], inMemory)
    assert.deepEqual(inMemory, [expected.filter((userId) => userId !== 'at once 0'), ['at once 0']])
  })

  test('suppressions are added without a deletion, and listed by user and source', async () => {
    const other = await open({ retentionDays: 7 })
    const { deletions } = other.store
    const [{ id: one }, { id: two }] = [await newSource(other.store), await newSource(other.store)]
    assert.equal(await deletions.suppress({ userIds: ['x', 'y', 'x'], sourceIds: null }), 4)
    assert.equal(
      await deletions.suppress({ userIds: ['y', 'z'], sourceIds: [two] }),
      1,
      'users who were already suppressed are not counted',
    )
    assert.deepEqual([...(other.store.configuration().suppressions.get(two) ?? [])].sort(), ['x', 'y', 'z'])
    await assert.rejects(deletions.suppress({ userIds: ['w'], sourceIds: [one, 'src_unknown'] }))
    const list = async (filter: Parameters<typeof deletions.suppressions>[0], limit: number): Promise<string[]> =>
      (await allPages((page) => deletions.suppressions(filter, page), limit)).map(({ userId, sourceId }) => `${userId} ${sourceId}`)
    for (const limit of [1, 2, 10]) {
      assert.deepEqual(await list({}, limit), [`x ${one}`, `y ${one}`, `x ${two}`, `y ${two}`, `z ${two}`])
      assert.deepEqual(await list({ userId: 'y' }, limit), [`y ${one}`, `y ${two}`])
      assert.deepEqual(await list({ sourceId: two }, limit), [`x ${two}`, `y ${two}`, `z ${two}`])
      assert.deepEqual(await list({ sourceId: two, userId: 'x' }, limit), [`x ${two}`])
      assert.deepEqual(await list({ sourceId: 'src_unknown' }, limit), [])
      assert.deepEqual(await list({ userId: 'nobody' }, limit), [])
    }
    await other.dispose()
  })
}
