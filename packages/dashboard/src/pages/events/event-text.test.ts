import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventTitle, messagesAddress, plannedText, receiverSummary, shareText, typesText } from './event-text.ts'

test('an event is shown by its name, otherwise by its type', () => {
  assert.equal(eventTitle({ type: 'track', event: 'Order Completed' }), 'Order Completed')
  assert.equal(eventTitle({ type: 'identify', event: null }), 'identify')
  assert.equal(eventTitle({ type: 'track', event: '  ' }), '"  "')
  assert.equal(eventTitle({ type: null, event: null }), 'Other events')
})

test('types are shown with their shares if there are several', () => {
  assert.equal(typesText([{ type: 'string', share: 1 }]), 'string')
  assert.match(
    typesText([
      { type: 'number', share: 0.98 },
      { type: 'null', share: 0.02 },
    ]),
    /^number 98.?%, null 2.?%$/,
  )
})

test('a share is never rounded to all or nothing', () => {
  assert.match(shareText(0), /^0.?%$/)
  assert.match(shareText(0.0001), /^< 0[.,]1.?%$/)
  assert.match(shareText(0.9999), /^> 99[.,]9.?%$/)
  assert.match(shareText(1), /^100.?%$/)
})

test('the link to the messages keeps names with special characters', () => {
  const address = messagesAddress({ sourceId: 'src_1', type: 'track', event: 'a&b = ü' })
  assert.equal(new URLSearchParams(address.split('?')[1]).get('event'), 'a&b = ü')
  assert.equal(messagesAddress({ sourceId: 'src_1', type: 'page', event: null }), '/messages?sourceId=src_1&type=page')
})

test('says how many of the recent messages a destination gets', () => {
  assert.equal(receiverSummary({ sent: 50, skips: [] }, 50), 'Gets all of the last 50 messages')
  assert.equal(receiverSummary({ sent: 31, skips: [] }, 50), 'Gets 31 of the last 50 messages')
  assert.equal(receiverSummary({ sent: 0, skips: [] }, 50), 'Gets none of the last 50 messages')
  assert.equal(receiverSummary({ sent: 0, skips: [] }, 1), 'Does not get the last message')
  assert.equal(receiverSummary({ sent: 1, skips: [] }, 1), 'Gets the last message')
})

test('says whether the plan of the source has a rule for the event', () => {
  const plans = [{ sourceIds: ['src_1'], rules: [{ type: 'track', event: 'A' }, { type: 'page' }] }]
  assert.equal(plannedText({ sourceId: 'src_1', type: 'track', event: 'A' }, plans), 'planned')
  assert.equal(plannedText({ sourceId: 'src_1', type: 'page', event: null }, plans), 'planned')
  assert.equal(plannedText({ sourceId: 'src_1', type: 'track', event: 'B' }, plans), 'not planned')
  assert.equal(plannedText({ sourceId: 'src_2', type: 'page', event: null }, plans), 'no plan')
  assert.equal(plannedText({ sourceId: 'src_2', type: 'page', event: null }, undefined), '')
})
