import assert from 'node:assert/strict'
import { test } from 'node:test'
import { subscriptionOf } from '../fixtures/integration.ts'
import { withIds } from './subscriptions.ts'

test('stored subscriptions that share a name keep their ids only if a request gives them: no twin gets the id of the other', () => {
  const before = [subscriptionOf('succeeded', { name: 'Post' }), subscriptionOf('failed', { name: 'Post' }), subscriptionOf('other')]
  const given = (id?: string) => ({ id, name: 'Post', action: 'a', subscribe: 'type = "track"', mapping: {}, enabled: true })
  const [unnamed] = withIds([given()], before, null)
  assert.ok(unnamed !== undefined && !['succeeded', 'failed'].includes(unnamed.id), unnamed?.id)
  assert.deepEqual(
    withIds([given('failed')], before, null).map(({ id }) => id),
    ['failed'],
  )
  const named = { name: 'Name of other', action: 'a', subscribe: 'type = "track"', mapping: {}, enabled: true }
  assert.equal(withIds([named], before, null)[0]?.id, 'other')
  assert.deepEqual(new Set(withIds([named, named], before, null).map(({ id }) => id)).size, 2)
})
