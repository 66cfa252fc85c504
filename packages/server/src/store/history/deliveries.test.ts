// What a page of deliveries reads. The test uses a row port that records its calls.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeStoredBody } from '../port/stored-messages.ts'
import { SQLITE_ROW_ORDER } from '../sqlite/schema/row-ids.ts'
import { listDeliveries } from './deliveries.ts'
import type { DeliveryRows } from './delivery-rows.ts'

test('a search by event in a backlog of large segments reads only the segments that fill the page', async () => {
  const batch = Array.from({ length: 690 }, (_, index) => ({
    type: 'track',
    messageId: `m-${index}`,
    event: index % 2 ? 'Bought' : 'Seen',
  }))
  const body = writeStoredBody({ batch })
  const head = (seq: number) => ({ seq, source: 1, receivedAtMs: 0, count: batch.length, absent: [] })
  const read: number[] = []
  const rows: Partial<DeliveryRows<number>> = {
    order: SQLITE_ROW_ORDER,
    firstPending: () => [0, 0, 0, 0],
    async *pending() {
      yield Array.from({ length: 100 }, (_, nth) => ({
        place: [1, 0, 0, nth],
        destination: 1,
        attempts: 0,
        replay: false,
        dueAtMs: 0,
        parts: [[1_000 + nth, nth, 0] as const],
      })) as never
    },
    heads: (ids) => ids.map(head),
    *segments(ids) {
      for (const seq of ids) {
        read.push(seq)
        yield {
          ...head(seq),
          sourceId: 'src_1',
          ip: null,
          browser: false,
          trace: null,
          violations: null,
          routes: '',
          keys: new Uint8Array(),
          body,
        }
      }
    },
    destinationIds: () => (num) => `dst_${num}`,
    replayLinks: (found) => found.map(() => ({ replayOf: null, replayJobId: null, replayedAtMs: null, resumed: null, replayedBy: null })),
  }
  const { data, next } = await listDeliveries(
    rows as DeliveryRows<number>,
    { state: 'pending', event: 'Bought' },
    { limit: 100, cursor: null },
  )
  assert.equal(data.length, 100)
  assert.ok(data.every(({ event }) => event === 'Bought'))
  assert.notEqual(next, null)
  assert.deepEqual([...new Set(read)], [0])
})
