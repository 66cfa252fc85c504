import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyOfRule, matchesRule, rulesSummary, ruleTitle, violationSentence } from './plan-text.ts'

test('a rule has the key that the API uses', () => {
  assert.equal(keyOfRule({ type: 'track', event: 'Order Completed' }), 'track Order Completed')
  assert.equal(keyOfRule({ type: 'identify' }), 'identify')
  assert.equal(ruleTitle('track track record'), 'track record')
  assert.equal(ruleTitle('page'), 'page')
})

test('a violation is a sentence', () => {
  const violation = { path: 'properties.total', expected: 'a number', found: 'a string' }
  assert.equal(violationSentence({ ...violation, code: 'wrong_type' }), 'properties.total: expected a number, found a string.')
  assert.equal(violationSentence({ ...violation, code: 'missing_property' }), 'properties.total is missing: expected a number.')
  assert.equal(violationSentence({ ...violation, code: 'unplanned_property' }), 'properties.total is not planned.')
  assert.equal(violationSentence({ ...violation, code: 'unplanned_event', path: 'event' }), 'The plan has no rule for this event.')
})

test('rules are counted by their mode', () => {
  assert.equal(rulesSummary([]), '0 rules')
  assert.equal(rulesSummary([{}]), '1 rule, all observe')
  assert.equal(rulesSummary([{ mode: 'observe' }, { mode: 'quarantine' }, { mode: 'quarantine' }]), '3 rules: 1 observe, 2 quarantine')
})

test('a rule is found by event, type, owner or description', () => {
  const rule = { type: 'track' as const, event: 'Order Completed', owner: 'Checkout', schema: {} }
  assert.ok(matchesRule(rule, 'ORDER') && matchesRule(rule, 'checkout') && matchesRule(rule, ' track') && matchesRule(rule, ''))
  assert.ok(!matchesRule(rule, 'refund'))
})
