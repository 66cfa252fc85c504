// What a page of deliveries reads. The tests use a row port that records its calls.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredPart } from '../encoding/stored-parts.ts'
import type { DeliveryFilter } from '../port/history.ts'
import { SQLITE_ROW_ORDER } from '../sqlite/schema/row-ids.ts'
import { listDeliveries } from './deliveries.ts'
import type { DeliveryRows, PendingRow } from './delivery-rows.ts'

const ATTEMPTS = 300
const SHIPMENTS = 100
const PARTS = 1_000

interface Asked {
  docs: (readonly number[])[]
  heads: number[]
}

/** Attempts that each ended two deliveries, or retried shipments with many parts. Their messages are no longer stored. */
function rowsWith(docBytes: number, shipments = 0): { rows: DeliveryRows<number>; asked: Asked } {
  const asked: Asked = { docs: [], heads: [] }
  const doc = JSON.stringify({ u: [], r: [], f: [['failed', 'http_404', [0, 1]]] })
  const rows: Partial<DeliveryRows<number>> = {
    order: SQLITE_ROW_ORDER,
    destinationIds: () => (num) => `dst_${num}`,
    heads(names) {
      asked.heads.push(names.length)
      return names.map((seq) => ({ seq, source: 1, receivedAtMs: 0, count: 1, absent: [] }))
    },
    segments: () => [],
    firstPending: () => [0],
    async *pending(_destination, [from]) {
      const all = Array.from({ length: shipments }, (_, at): PendingRow<number> => {
        const parts = Array.from({ length: PARTS }, (__, part): StoredPart<number> => [at * PARTS + part + 1, at * PARTS + part + 1, 0])
        return { place: [at], destination: 1, attempts: 1, replay: false, dueAtMs: 0, parts }
      })
      yield all.slice(from as number)
    },
    attempts: (_destination, _deliveredOnly, _first, last, limit) =>
      Array.from({ length: ATTEMPTS }, (_, at) => ATTEMPTS - at)
        .filter((id) => id <= last)
        .slice(0, limit)
        .map((id) => ({ id, origin: id, segment: id, destination: 1, atMs: 0, attempts: 1, replay: false, bytes: docBytes })),
    docs(attempts) {
      asked.docs.push(attempts)
      return attempts.map((id) => ({ id, doc }))
    },
    replayLinks: (deliveries) => deliveries.map(() => ({ replayOf: null, replayJobId: null, replayedAtMs: null, replayedBy: null })),
  }
  return { rows: rows as DeliveryRows<number>, asked }
}

async function pages(rows: DeliveryRows<number>, filter: DeliveryFilter, limit: number): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof listDeliveries>> = await listDeliveries(rows, filter, { limit, cursor })
    ids.push(...page.data.map(({ id }) => id))
    cursor = page.next
  } while (cursor !== null)
  return ids
}

test('a page of attempts reads large docs one at a time, and no more of them than it shows', async () => {
  const { rows, asked } = rowsWith(10 * 1024 * 1024)
  const { data, next } = await listDeliveries(rows, {}, { limit: 5, cursor: null })
  assert.deepEqual(
    data.map(({ id }) => id),
    ['300-0', '300-1', '299-0', '299-1', '298-0'],
  )
  assert.equal(next, '["s",298,1]')
  assert.deepEqual(asked.docs, [[300], [299], [298]])
})

test('a page of attempts reads small docs many at a time', async () => {
  const { rows, asked } = rowsWith(300)
  await listDeliveries(rows, {}, { limit: 50, cursor: null })
  assert.deepEqual(
    asked.docs.map(({ length }) => length),
    [100],
  )
})

test('pages of attempts with docs of any size show every delivery once', async () => {
  const all = Array.from({ length: ATTEMPTS }, (_, at) => [`${ATTEMPTS - at}-0`, `${ATTEMPTS - at}-1`]).flat()
  for (const bytes of [300, 700_000, 2_000_000]) assert.deepEqual(await pages(rowsWith(bytes).rows, {}, 7), all)
})

test('a page of shipments with many parts asks only for the segments of the shipments that it shows', async () => {
  const { rows, asked } = rowsWith(300, SHIPMENTS)
  const { data } = await listDeliveries(rows, { state: 'pending' }, { limit: 50, cursor: null })
  assert.equal(data.length, 50)
  assert.deepEqual(asked.heads, [2 * PARTS])
})
