// The timeline of a message as text.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Output } from '../line/output.ts'
import { createTimelineFeed } from './message-timeline.ts'

test('the entry of a waiting delivery says when it expires; other entries do not', () => {
  const lines: string[] = []
  const out = { paint: (_style: string, text: string) => text } as unknown as Output
  const entry = (what: string, deliveryId: string) => ({ at: null, what, sentence: 'Waiting.', deliveryId, reason: null, attemptNumber: 2 })
  const deliveries = [
    { id: '1-0', expiresAt: '2026-11-18T14:10:00.000Z' },
    { id: '2-0', expiresAt: null },
  ]
  createTimelineFeed(out, (line) => lines.push(line)).show({
    story: [entry('waiting', '1-0'), entry('waiting', '2-0'), entry('owed', '1-0')],
    deliveries,
  })
  const sentences = lines.map((line) => line.slice(line.indexOf('Waiting.')))
  assert.deepEqual(sentences, ['Waiting. It expires at 2026-11-18 14:10:00.000Z if no attempt succeeds by then.', 'Waiting.', 'Waiting.'])
})
