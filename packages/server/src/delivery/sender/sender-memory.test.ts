import assert from 'node:assert/strict'
import test from 'node:test'
import { type MemoryUser, SenderMemory } from './sender-memory.ts'

const MIB = 1024 * 1024
const user = (): MemoryUser => ({ heldBytes: 0, sentBytes: 0 })

test('the more destinations have requests in flight, the smaller is the share of each, and each may always have one', () => {
  const memory = new SenderMemory()
  const users = Array.from({ length: 12 }, user)
  const [first] = users as [MemoryUser]
  memory.sent(first, 16 * MIB)
  assert.ok(memory.maySend(first))
  for (const other of users.slice(1)) memory.sent(other, 16 * MIB)
  assert.ok(!memory.maySend(first), 'twelve destinations share 96 MB')
  assert.ok(memory.maySend(user()))
  for (const other of users.slice(1)) memory.ended(other, 16 * MIB)
  assert.ok(memory.maySend(first))
})

test('prepared messages are limited for one load, for one destination and for all, and what waits because of others is told when there is room', () => {
  const memory = new SenderMemory()
  const [one, two, three] = [user(), user(), user()]
  assert.ok(!memory.mayPrepareAhead({ heldBytes: 2 * MIB }))
  memory.hold(one, 32 * MIB)
  assert.ok(!memory.mayPrepareAhead({ heldBytes: 0 }))
  assert.ok(!memory.mayTransform(one, () => assert.fail('it waits only for itself')))
  memory.hold(two, 31 * MIB)
  memory.hold(three, 1 * MIB)
  let told = 0
  assert.ok(!memory.mayTransform(two, () => told++))
  assert.ok(memory.mayTransform(user(), () => assert.fail('it has nothing yet')))
  memory.hold(one, -MIB)
  assert.equal(told, 1)
  assert.ok(memory.mayTransform(two, () => assert.fail('there is room')))
})
