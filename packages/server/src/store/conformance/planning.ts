// Conformance: tracking plans as a resource of the configuration, and the built-in source.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type NewPlan, SourceHasPlan, SYSTEM_SOURCE } from '../store.ts'
import { newSource, type StoreFixture } from './fixtures.ts'

const PLAN: NewPlan = {
  name: 'shop',
  unplanned: 'allow',
  rules: [{ type: 'track', event: '__proto__', mode: 'observe', schema: { properties: { 'näme\0': { type: 'string' } } } }],
  sourceIds: [],
}

export function planning({ store, reopen }: StoreFixture): void {
  test('plans are the same after the store is reopened, and each change of the content has a higher version', async () => {
    const { resources } = store()
    const [one, other] = [await newSource(store()), await newSource(store())]
    const { id } = await resources.createPlan({ ...PLAN, sourceIds: [one.id] })
    assert.equal((await resources.updatePlan(id, { description: 'about the shop' }))?.version, 2)
    assert.equal((await resources.updatePlan(id, { description: 'about the shop' }))?.version, 2)
    assert.equal((await resources.updatePlan(id, { sourceIds: [other.id] }))?.version, 2)
    const plan = store().configuration().plans.get(id)
    assert.deepEqual(plan, {
      ...PLAN,
      id,
      description: 'about the shop',
      sourceIds: [other.id],
      version: 2,
      createdAtMs: plan?.createdAtMs,
    })
    await reopen()
    assert.deepEqual(store().configuration().plans.get(id), plan)
    await store().resources.deleteSource(other.id)
    assert.deepEqual(store().configuration().plans.get(id)?.sourceIds, [])
    assert.equal(await store().resources.deletePlan(id), true)
    assert.equal(await store().resources.deletePlan(id), false)
    await reopen()
    assert.equal(store().configuration().plans.has(id), false)
  })

  test('a source has at most one plan', async () => {
    const { resources } = store()
    const { id: sourceId } = await newSource(store())
    const first = await resources.createPlan({ ...PLAN, sourceIds: [sourceId] })
    await assert.rejects(resources.createPlan({ ...PLAN, sourceIds: [sourceId] }), SourceHasPlan)
    const second = await resources.createPlan(PLAN)
    await assert.rejects(resources.updatePlan(second.id, { sourceIds: [sourceId] }), SourceHasPlan)
    await resources.updatePlan(first.id, { sourceIds: [] })
    assert.deepEqual((await resources.updatePlan(second.id, { sourceIds: [sourceId] }))?.sourceIds, [sourceId])
  })

  test('the built-in source is created once', async () => {
    await Promise.all([store().resources.ensureSystemSource(), store().resources.ensureSystemSource()])
    await reopen()
    const before = store().configuration().sources.get(SYSTEM_SOURCE)
    await store().resources.ensureSystemSource()
    assert.equal(before?.builtIn, true)
    assert.deepEqual(store().configuration().sources.get(SYSTEM_SOURCE), before)
  })
}
