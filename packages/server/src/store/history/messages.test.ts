// What a page of messages reads. The test uses a row port that records its calls.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeStoredBody } from '../port/stored-messages.ts'
import { rowAndIndex, SQLITE_ROW_ORDER } from '../sqlite/schema/row-ids.ts'
import type { MessageRows } from './message-rows.ts'
import { listMessages } from './messages.ts'

test('the destinations of a segment are looked up once for all of its messages', async () => {
  const batch = Array.from({ length: 500 }, (_, index) => ({ type: 'track', messageId: `m-${index}` }))
  const indexes = [...batch.keys()]
  const routes = JSON.stringify({ s: Array.from({ length: 20 }, (_, at) => [at + 1, 1_000 + at, indexes, 500]) })
  const head = { seq: 5, source: 1, receivedAtMs: 0, count: batch.length, absent: [] }
  const asked: number[] = []
  const rows: Partial<MessageRows<number>> = {
    order: SQLITE_ROW_ORDER,
    newest: (_withKeys, _first, last) => (last < head.seq ? [] : [head]),
    segments: () => [
      {
        ...head,
        sourceId: 'src_1',
        ip: null,
        browser: false,
        trace: null,
        violations: null,
        routes,
        keys: new Uint8Array(),
        body: writeStoredBody({ batch, sentAt: null, context: null, integrations: null }),
      },
    ],
    replays: () => [],
    parseId: rowAndIndex,
    endings: () => [],
    endingDocs: () => [],
    destinationIds(nums) {
      asked.push(nums.length)
      return (num) => `dst_${num}`
    },
  }
  const { data } = await listMessages(rows as MessageRows<number>, {}, { limit: 1_000, cursor: null })
  assert.equal(data.length, 500)
  assert.deepEqual(asked, [20])
  assert.deepEqual(data[0]?.deliveries[0], { id: '1000-499', destinationId: 'dst_1', state: 'pending', reason: null })
})
