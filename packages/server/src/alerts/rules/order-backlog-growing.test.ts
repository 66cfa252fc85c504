import assert from 'node:assert/strict'
import test from 'node:test'
import { orderBacklogGrowing as rule } from './order-backlog-growing.ts'
import type { Rule } from './rule.ts'

const judge = (about: { isActive?: boolean; ordered: { keys: number; skipped: number } | null }): string => {
  const ordered = about.ordered && { ...about.ordered, maxWaiting: 10_000 }
  return (rule as Rule<unknown>).judge({ nowMs: 1, isActive: true, ...about, ordered }, {}).verdict
}

test('too many waiting messages of a key open an incident while the destination is active, and none close it', () => {
  assert.equal(judge({ ordered: { keys: 1, skipped: 0 } }), 'open')
  assert.equal(judge({ ordered: { keys: 0, skipped: 2 } }), 'open')
  assert.equal(judge({ ordered: { keys: 1, skipped: 0 }, isActive: false }), 'keep')
  assert.equal(judge({ ordered: { keys: 0, skipped: 0 } }), 'close')
  assert.equal(judge({ ordered: null }), 'close')
})

test('its sentences name numbers and the destination, no keys', () => {
  assert.equal(rule.event, 'Order Backlog Growing')
  assert.match(
    rule.opened('CRM', { keys: 2, skipped: 1, maxWaiting: 10_000 }),
    /"CRM": 2 keys have more than 10,000 waiting messages, and 1 message was given up \(order_backlog\) so that its key goes on\./,
  )
  assert.match(rule.closed('CRM', {}), /^No key of the destination "CRM"/)
})
