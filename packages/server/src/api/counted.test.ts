import assert from 'node:assert/strict'
import test from 'node:test'
import { counted } from './counted.ts'

test('the noun agrees with the number', () => {
  assert.equal(counted(0, 'message'), '0 messages')
  assert.equal(counted(1, 'message'), '1 message')
  assert.equal(counted(2, 'delivery is', 'deliveries are'), '2 deliveries are')
})
