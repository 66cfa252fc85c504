// Measures what the event catalogue costs: CPU time per message of parsing and checking a batch of 15 messages as ingest does, without HTTP and storing,
// and the same with counting. Counts are taken every 2,000 batches and merged into documents, which is more often than in a busy service.
// The rounds of all cases take turns, and the median is printed, so that other load on the machine affects all cases alike.
// Run: npm run bench:events

import { parseBody, parseRequest } from '../../packages/server/src/ingest/parsing/parse-request.ts'
import { addToCounts, addToProperties, eventKey } from '../../packages/server/src/observe/event-catalog/event-documents.ts'
import { EventTallies } from '../../packages/server/src/observe/event-catalog/event-tallies.ts'

const BATCH = 15
const ROUNDS = 15
const BATCHES_PER_ROUND = 2_000
/** For each case, how many different events there are. Zero: nothing is counted. */
const CASES: [title: string, events: number][] = [
  ['parsing alone', 0],
  ['and counting 6 events', 6],
  ['and counting 1,000 events', 1_000],
]

function bodies(events: number): Buffer[] {
  return Array.from({ length: Math.max(1, Math.ceil(events / BATCH)) }, (_, body) => {
    const batch = Array.from({ length: BATCH }, (_unused, at) => ({
      type: 'track',
      event: `Order Completed ${(body * BATCH + at) % Math.max(1, events)}`,
      userId: `u-${at}`,
      messageId: `m-${at}`,
      properties: {
        orderId: 'order_1',
        total: 12.5,
        currency: 'EUR',
        coupon: null,
        products: [{ sku: 'a', price: 1 }],
        note: 'x'.repeat(150),
      },
      context: { library: { name: 'x', version: '1.0.0' }, page: { url: 'https://shop.example/orders', title: 'A page with a title' } },
      timestamp: '2026-11-14T09:00:00.000Z',
    }))
    return Buffer.from(JSON.stringify({ batch }))
  })
}

function round(sent: readonly Buffer[], isCounting: boolean): number {
  const tallies = new EventTallies()
  const before = process.cpuUsage()
  for (let at = 0; at < BATCHES_PER_ROUND; at++) {
    const body = parseBody(sent[at % sent.length] as Buffer)
    const parsed = body.ok ? parseRequest('batch', body, null, () => '', null) : body
    if (!parsed.ok) throw new Error('the batch was rejected')
    const { items, sentAt, context, integrations } = parsed
    const content = { sourceId: 's', receivedAtMs: Date.now(), ip: null, browser: false, sentAt, context, integrations, trace: null, items }
    if (isCounting) tallies.add({ sourceId: 's', content, repeated: [] })
  }
  const written = tallies.take().map((delta) => {
    const key = eventKey(delta.sourceId, String(delta.type), delta.event)
    return key + JSON.stringify([addToCounts(undefined, delta), addToProperties(undefined, delta)])
  })
  const { user, system } = process.cpuUsage(before)
  if (isCounting !== written.length > 0) throw new Error('the wrong events were counted')
  return (user + system) / (BATCHES_PER_ROUND * BATCH)
}

const cases = CASES.map(([title, events]) => ({ title, isCounting: events > 0, sent: bodies(events), us: [] as number[] }))
for (const { sent, isCounting } of cases) round(sent, isCounting)
for (let at = 0; at < ROUNDS; at++) for (const { sent, isCounting, us } of cases) us.push(round(sent, isCounting))
const bytes = (cases[0]?.sent[0]?.length ?? 0) / BATCH
console.log(`CPU time per message of ${Math.round(bytes)} bytes, without HTTP and storing, median (min–max) of ${ROUNDS} rounds:`)
for (const { title, us } of cases) {
  us.sort((a, b) => a - b)
  console.log(`  ${us[ROUNDS >> 1]?.toFixed(2)} µs (${us[0]?.toFixed(2)}–${us.at(-1)?.toFixed(2)})  ${title}`)
}
