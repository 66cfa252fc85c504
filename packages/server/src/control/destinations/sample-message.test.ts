import assert from 'node:assert/strict'
import test from 'node:test'
import { SAMPLE_TYPES, sampleMessage } from './sample-message.ts'

const NOW_MS = Date.parse('2026-11-14T09:00:00.000Z')

/** The fields of each type, in addition to those that all types except delete have. */
const FIELDS: Record<(typeof SAMPLE_TYPES)[number], string[]> = {
  identify: ['userId', 'traits'],
  track: ['userId', 'event', 'properties'],
  page: ['userId', 'properties'],
  screen: ['userId', 'name', 'context'],
  group: ['userId', 'groupId', 'traits'],
  alias: ['Previous ID', 'User ID'],
  delete: ['userId'],
}

for (const type of SAMPLE_TYPES) {
  test(`a sample ${type} has the fields that a receiver is promised`, () => {
    const message = JSON.parse(JSON.stringify(sampleMessage(type, NOW_MS))) as Record<string, unknown>
    assert.equal(message['type'], type)
    assert.equal(message['timestamp'], '2026-11-14T09:00:00.000Z')
    for (const field of FIELDS[type]) assert.ok(message[field] !== undefined, field)
    assert.equal(message['version'], type === 'delete' ? undefined : 1)
  })
}

test('a sample delete has exactly its three fields', () => {
  assert.deepEqual(Object.keys(sampleMessage('delete', NOW_MS)).sort(), ['timestamp', 'type', 'userId'])
})

test('no two samples share a messageId', () => {
  assert.notEqual(sampleMessage('track', NOW_MS)['messageId'], sampleMessage('track', NOW_MS)['messageId'])
})
