import assert from 'node:assert/strict'
import test from 'node:test'
import type { Verdict } from '../../destinations/port/kind.ts'
import { type BatchSettings, CLASSIC, type ClaimedShipment, type Destination, type SegmentContent } from '../../store/store.ts'
import { bodyOf, claimedOf, contentOf, destination, HOUR_MS, items, NOW_MS, results, SINGLE, URLS } from '../fixtures/claimed-shipments.ts'
import { orderedOf } from '../fixtures/ordered-shipments.ts'
import { deletedAt, endedIds, idsOf, jsonOf, memberIds, settle } from '../fixtures/tasks.ts'
import type { Unsent } from '../link/protocol.ts'
import { expiry } from './expiry.ts'
import type { KeyOrder, OrderedMember } from './member.ts'
import { Task } from './task.ts'
import { deliveryIdOf, traceOf, type Unit } from './unit.ts'

test('messages that the settings do not let pass end with their reason, and the rest of the batch goes on', () => {
  const batch = { size: 10, bytes: 500_000, lingerMs: 0 }
  const task = new Task([claimedOf(1, [items(4)])], { type: 'webhook', batch })
  const unit = task.start(NOW_MS) as Unit
  const unsent: Unsent[] = [
    { position: 0, why: { reason: 'dropped_by_transformation', error: null, logs: 'printed' } },
    { position: 2, why: { reason: 'transformation_failed', error: 'line 3: no', logs: 'printed' } },
  ]
  const webhook = { ...CLASSIC, type: 'webhook', urls: URLS, version: 4 } as unknown as Destination
  task.endUnsent(unit, unsent, { destination: webhook, startedAtMs: NOW_MS })
  assert.deepEqual(memberIds(unit), ['10-1', '10-3'])
  task.finish(unit, results('success'))
  const settlement = settle(task)
  assert.deepEqual(endedIds(settlement, 'cancelled'), ['10-0'])
  assert.deepEqual(endedIds(settlement, 'failed'), ['10-2'])
  assert.deepEqual(endedIds(settlement, 'delivered'), ['10-1', '10-3'])
  assert.deepEqual(
    settlement.records[0]?.requests.map(({ indexes, reason, error, version, logs }) => [indexes, reason, error, version, logs]),
    [
      [[0], 'dropped_by_transformation', 'The transformation dropped the message. Nothing was sent.', 4, 'printed'],
      [[2], 'transformation_failed', 'line 3: no', 4, 'printed'],
      [[1, 3], null, null, 1, null],
    ],
  )
})

test('a shipment is sent message by message, and deliveries are recorded with their attempt', () => {
  const task = new Task([claimedOf(1, [items(2)])], { type: 'webhook', batch: SINGLE })
  for (const nth of [0, 1]) {
    const unit = task.start(NOW_MS) as Unit
    assert.deepEqual([memberIds(unit), unit.isBatch], [[`10-${nth}`], false])
    assert.ok(!task.isOver)
    task.finish(unit, results('success'))
  }
  const { done, remaining, records } = settle(task)
  assert.deepEqual([done.map(({ id }) => id), remaining, records.length], [[1], [], 1])
  const [record] = records
  assert.deepEqual(record?.finals, [{ state: 'delivered', reason: null, indexes: [0, 1] }])
  assert.deepEqual([record?.attempt, record?.requests.map(({ indexes }) => indexes)], [1, [[0], [1]]])
})

const nothing = (): void => {}
const NO_ORDER: KeyOrder = { delivered: nothing, stopped: nothing, withdrawn: nothing, leave: nothing, returned: nothing }

test('a batch that is retried has its messages in the same order, also if one of another request is between two of one request', () => {
  const shipments = [orderedOf(1, 7, [0], [5]), orderedOf(2, 6, [0], [8]), orderedOf(3, 7, [1], [8])]
  const task = new Task(shipments, { type: 'webhook', batch: { ...SINGLE, size: 10 } }, 1, NO_ORDER)
  task.finish(task.startTogether([...task.waiting], true, NOW_MS), results('temporary'))
  const { remaining } = settle(task)
  assert.deepEqual(
    remaining.map(({ parts }) => parts.map(({ origin, indexes }) => [origin, indexes])),
    [
      [
        [7, [0]],
        [6, [0]],
        [7, [1]],
      ],
    ],
  )
})

test('ordered shipments of one request are given to the sender once and have one record, and each ends with its own messages', () => {
  const delivered: number[] = []
  const order: KeyOrder = { ...NO_ORDER, delivered: (members) => void delivered.push(...members.map(({ key }) => key)) }
  const task = new Task([orderedOf(1, 7, [0, 3], [5, 6]), orderedOf(2, 7, [1, 2], [7, 8])], { type: 'webhook', batch: SINGLE }, 1, order)
  assert.deepEqual(
    task.contents.map(({ indexes }) => indexes),
    [[0, 1, 2, 3]],
  )
  const [first, second, third, fourth] = task.waiting
  const deliver = (member: OrderedMember | undefined): void =>
    task.finish(task.startTogether([member as OrderedMember], false, NOW_MS), results('success'))
  for (const member of [first, second, third]) deliver(member)
  assert.deepEqual(delivered, [5, 6, 7])
  const early = task.settlement(destination, NOW_MS, NOW_MS, () => 0.5)
  assert.deepEqual(
    [early.done.map(({ id }) => id), early.kept.map(({ shipment, parts }) => [shipment.id, parts[0]?.indexes])],
    [[1], [[2, [2]]]],
  )
  assert.deepEqual(
    early.records.map(({ origin, finals, requests }) => [origin, finals.map(({ indexes }) => indexes), requests.length]),
    [[7, [[0, 3, 1]], 3]],
  )
  deliver(fourth)
  const late = settle(task)
  assert.deepEqual([late.done.map(({ id }) => id), late.kept, late.records[0]?.finals[0]?.indexes], [[2], [], [2]])
})

test('a task that was not started is released unchanged instead of settled', () => {
  const task = new Task([claimedOf(1, [items(2)])], { type: 'webhook', batch: SINGLE })
  task.stop()
  assert.deepEqual([task.isOver, task.hasChanges], [true, false])
})

test('an attempt that this node aborted does not count', () => {
  const task = new Task([claimedOf(1, [items(2)], { attempt: 3, firstAttemptAtMs: 7, dueAtMs: 9, progress: ['https://b.test/'] })], {
    type: 'webhook',
    batch: SINGLE,
  })
  const stopped = task.start(NOW_MS) as Unit
  task.stop()
  task.withdraw(stopped)
  assert.deepEqual([task.isOver, task.hasChanges], [true, false])

  const other = new Task([claimedOf(1, [items(2)], { attempt: 3, firstAttemptAtMs: 7, dueAtMs: 9, progress: ['https://b.test/'] })], {
    type: 'webhook',
    batch: SINGLE,
  })
  const [first, second] = [other.start(NOW_MS) as Unit, other.start(NOW_MS) as Unit]
  other.finish(first, results('success'))
  other.withdraw(second)
  const { remaining, records } = settle(other)
  assert.deepEqual(remaining, [
    {
      destinationId: 'dst',
      attempt: 3,
      firstAttemptAtMs: 7,
      dueAtMs: 9,
      unit: false,
      progress: ['https://b.test/'],
      replay: false,
      parts: [{ origin: 10, segment: 100, indexes: [1] }],
    },
  ])
  assert.deepEqual(
    records.map(({ attempt, requests }) => [attempt, requests.length]),
    [[4, 1]],
  )
})

test('only URLs with temporary failures are retried, and messages with the same URLs to retry are combined', () => {
  const task = new Task([claimedOf(1, [items(4)])], { type: 'webhook', batch: SINGLE })
  const verdicts: Verdict[][] = [
    ['temporary', 'permanent'],
    ['temporary', 'permanent'],
    ['temporary', 'temporary'],
    ['permanent', 'permanent'],
  ]
  for (const each of verdicts) task.finish(task.start(NOW_MS) as Unit, results(...each))
  const settlement = settle(task)
  assert.deepEqual(
    settlement.remaining.map(({ progress, parts, attempt, firstAttemptAtMs }) => [progress, idsOf(parts), attempt, firstAttemptAtMs]),
    [
      [[URLS[0]], ['10-0', '10-1'], 1, NOW_MS],
      [[URLS[0], URLS[1]], ['10-2'], 1, NOW_MS],
    ],
  )
  assert.deepEqual(endedIds(settlement, 'failed'), ['10-3'])
  assert.equal(settlement.records[0]?.requests.length, 8)
})

test('the window of a message begins with its first attempt, even if retries are combined, and stays the same for later attempts', () => {
  for (const [retryWindowMs, startedAfterMs, expected] of [
    [4 * HOUR_MS, [0, 400, 900, 60_000, 60_200], { 900: ['10-0', '10-1', '10-2'], 60_200: ['10-3', '10-4'] }],
    [5_000, [0, 50, 60, 3_000, 24_000], { 50: ['10-0', '10-1'], 60: ['10-2'], 3_000: ['10-3'], 24_000: ['10-4'] }],
  ] as const) {
    const task = new Task([claimedOf(1, [items(5)])], { type: 'webhook', batch: SINGLE })
    const units = startedAfterMs.map((afterMs) => task.start(NOW_MS + afterMs) as Unit)
    // The answers arrive in a different order.
    for (const at of [3, 0, 2, 1, 4]) task.finish(units[at] as Unit, results('temporary'))
    const { remaining } = task.settlement({ ...destination, retryWindowMs }, NOW_MS, NOW_MS, () => 0.5)
    const byWindow = remaining.map(({ firstAttemptAtMs, parts }) => [(firstAttemptAtMs as number) - NOW_MS, idsOf(parts).sort()])
    assert.deepEqual(Object.fromEntries(byWindow), expected)
  }

  const later = new Task([claimedOf(1, [items(1)], { attempt: 4, firstAttemptAtMs: NOW_MS - HOUR_MS })], { type: 'webhook', batch: SINGLE })
  later.finish(later.start(NOW_MS) as Unit, results('temporary'))
  assert.deepEqual(
    settle(later).remaining.map(({ attempt, firstAttemptAtMs }) => [attempt, firstAttemptAtMs]),
    [[5, NOW_MS - HOUR_MS]],
  )

  const last = new Task([claimedOf(1, [items(1)], { attempt: 9, firstAttemptAtMs: NOW_MS - 4 * HOUR_MS })], {
    type: 'webhook',
    batch: SINGLE,
  })
  last.finish(last.start(NOW_MS) as Unit, results('temporary'))
  const { remaining, records } = settle(last)
  assert.deepEqual([remaining, records[0]?.finals], [[], [{ state: 'expired', reason: 'http_500', indexes: [0] }]])
})

test('known outcomes are settled while the rest is in progress, and each delivery is settled once', () => {
  const task = new Task([claimedOf(1, [items(3), items(2)])], { type: 'webhook', batch: SINGLE })
  const [first, second, third] = [1, 2, 3].map(() => task.start(NOW_MS) as Unit) as [Unit, Unit, Unit]
  task.finish(first, results('success'))
  task.finish(second, results('temporary'))
  assert.deepEqual([task.isOver, task.hasChanges, task.unrecorded], [false, true, 2])
  const partial = task.settlement(destination, NOW_MS, NOW_MS, () => 0.5)
  assert.deepEqual(
    [partial.done, partial.kept.map(({ shipment, parts }) => [shipment.id, idsOf(parts)])],
    [[], [[1, ['10-2', '11-0', '11-1']]]],
  )
  assert.deepEqual([endedIds(partial), partial.remaining.map(({ parts }) => idsOf(parts))], [['10-0'], [['10-1']]])
  assert.deepEqual([task.hasChanges, task.unrecorded, idsOf(task.shipments[0]?.shipment.parts ?? [])], [false, 0, ['10-2', '11-0', '11-1']])

  // Stopped now, what is left goes back as the store has it; as it is, another outcome is a settlement of what is left.
  task.finish(third, results('success'))
  task.stop()
  const last = settle(task)
  assert.deepEqual([last.done.map(({ parts }) => idsOf(parts)), last.kept], [[['10-2', '11-0', '11-1']], []])
  assert.deepEqual([endedIds(last), last.remaining.map(({ parts }) => idsOf(parts))], [['10-2'], [['11-0', '11-1']]])
  assert.deepEqual(task.shipments, [])
})

test('a message is delivered once one URL has accepted it, and later answers of other URLs are recorded with the attempt', () => {
  const task = new Task([claimedOf(1, [items(1)], { replay: true })], { type: 'webhook', batch: SINGLE })
  const unit = task.start(NOW_MS) as Unit
  const all = results('permanent', 'success', 'temporary')
  task.deliver(unit, all.slice(0, 2))
  assert.deepEqual([task.isOver, task.unrecorded], [false, 1])
  const partial = task.settlement(destination, NOW_MS, NOW_MS, () => 0.5)
  assert.deepEqual([partial.done.length, partial.kept, endedIds(partial, 'delivered')], [1, [], ['10-0']])
  task.finish(unit, all)
  assert.deepEqual([task.isOver, task.hasChanges, task.unrecorded], [true, true, 0])
  const late = settle(task)
  assert.deepEqual([late.done, late.kept, late.remaining, endedIds(late)], [[], [], [], []])
  assert.deepEqual(
    [partial, late].map(({ records }) => records.map(({ attempt, replay, requests }) => [attempt, replay, requests.map(({ url }) => url)])),
    [[[1, true, URLS.slice(0, 2)]], [[1, true, URLS.slice(2)]]],
  )
})

test('a task that was lost sends nothing more', () => {
  const task = new Task([claimedOf(1, [items(3)])], { type: 'webhook', batch: SINGLE })
  const unit = task.start(NOW_MS) as Unit
  task.lose()
  assert.deepEqual([task.start(NOW_MS), task.isOver, task.isLost], [undefined, false, true])
  task.finish(unit, results('success'))
  assert.ok(task.isOver)
})

test('a purged message is not sent and ends as cancelled, apart from those that were attempted', () => {
  const task = new Task([claimedOf(1, [[...items(3), null]])], { type: 'webhook', batch: SINGLE })
  task.finish(task.start(NOW_MS) as Unit, results('success'))
  task.delete(deletedAt(999, [1]))
  task.delete(deletedAt(100, [0, 2]))
  task.finish(task.start(NOW_MS) as Unit, results('success'))
  assert.equal(task.start(NOW_MS), undefined)
  const { records } = settle(task)
  assert.deepEqual(
    records.map(({ attempt, finals }) => [attempt, finals]),
    [
      [1, [{ state: 'delivered', reason: null, indexes: [0, 1] }]],
      [0, [{ state: 'cancelled', reason: 'message_deleted', indexes: [3, 2] }]],
    ],
  )
})

test('messages that the store cannot read fail with a reason, and the others are sent', () => {
  const claimed = claimedOf(1, [items(1), items(2)])
  const bodies = new Map(claimed.bodies).set(101, bodyOf({ ...contentOf([]), isUnreadable: true }))
  const task = new Task([{ ...claimed, bodies }], { type: 'webhook', batch: SINGLE })
  task.finish(task.start(NOW_MS) as Unit, results('success'))
  assert.equal(task.start(NOW_MS), undefined)
  assert.deepEqual(
    settle(task).records.map(({ segment, attempt, requests, finals }) => [segment, attempt, requests.length, finals]),
    [
      [100, 1, 1, [{ state: 'delivered', reason: null, indexes: [0] }]],
      [101, 0, 0, [{ state: 'failed', reason: 'message_unreadable', indexes: [0, 1] }]],
    ],
  )
})

test('a shipment with nothing left to send is over immediately', () => {
  const gone = claimedOf(1, [[null, null]])
  const task = new Task([gone, { ...gone, shipment: { ...gone.shipment, id: 2 }, bodies: new Map() }], { type: 'webhook', batch: SINGLE })
  assert.deepEqual([task.isOver, task.hasChanges], [true, true])
  assert.equal(endedIds(settle(task), 'cancelled').length, 4)
})

test('the context and integrations of a request count for each of its messages when batches are split', () => {
  const whole = { ...contentOf(items(4)), context: { app: 'x'.repeat(1_000) }, integrations: { A: { key: 'y'.repeat(1_000) } } }
  const claimed = claimedOf(1, [whole.items])
  claimed.bodies = new Map([[100, bodyOf(whole)]])
  const { units } = new Task([claimed], { type: 'webhook', batch: { size: 100, bytes: 5_000, lingerMs: 0 } })
  assert.deepEqual(
    units.map(({ members }) => members.length),
    [2, 2],
  )
})

test('batches are split by count and bytes, and a delete message is always sent alone', () => {
  const remove = { type: 'delete', userId: 'u', timestamp: '2026-11-14T09:00:00.000Z' }
  const task = new Task([claimedOf(1, [[...items(5), remove, ...items(2)]])], {
    type: 'webhook',
    batch: { size: 3, bytes: 500_000, lingerMs: 0 },
  })
  assert.deepEqual(
    task.units.map(({ members, isBatch }) => [members.length, isBatch]),
    [3, 2, 1, 2].map((length) => [length, true]),
  )
  const [first] = new Task([claimedOf(1, [items(1)])], { type: 'webhook', batch: { size: 3, bytes: 500_000, lingerMs: 0 } }).units
  const oneBytes = Buffer.byteLength(jsonOf((first as Unit).members[0] as Unit['members'][0]))
  for (const [bytes, lengths] of [
    [2 * oneBytes + 3, [2, 2]],
    [2 * oneBytes + 2, [1, 1, 1, 1]],
    [10, [1, 1, 1, 1]],
  ] as const) {
    const limited = new Task([claimedOf(1, [items(4)])], { type: 'webhook', batch: { size: 100, bytes, lingerMs: 0 } })
    assert.deepEqual(
      limited.units.map(({ members }) => members.length),
      lengths,
    )
  }
})

test('a message that cannot be serialized is a unit of its own, so it does not break a batch', () => {
  const broken = contentOf(items(3))
  Object.defineProperty(broken.items[1] as object, 'type', { value: { toJSON: () => assert.fail('unwritable') }, enumerable: true })
  const claimed = claimedOf(1, [items(3)])
  const task = new Task([{ ...claimed, bodies: new Map([[100, bodyOf(broken, [])]]) }], {
    type: 'webhook',
    batch: { size: 10, bytes: 500_000, lingerMs: 0 },
  })
  assert.deepEqual(
    task.units.map(({ members }) => members.map(({ index }) => index)),
    [[0], [1], [2]],
  )
})

test('a batch of several shipments is retried as the same batch', () => {
  const batch = { size: 4, bytes: 500_000, lingerMs: 0 }
  const task = new Task([claimedOf(1, [items(3)]), claimedOf(2, [items(3)])], { type: 'webhook', batch })
  task.finish(task.start(NOW_MS) as Unit, results('temporary'))
  task.stop()
  const { remaining } = settle(task)
  assert.deepEqual(
    remaining.map(({ unit, attempt, parts }) => [unit, attempt, idsOf(parts)]),
    [
      [true, 1, ['10-0', '10-1', '10-2', '20-0']],
      [false, 0, ['20-1', '20-2']],
    ],
  )
  const [draft] = remaining
  const bodies = new Map([...claimedOf(1, [items(3)]).bodies, ...claimedOf(2, [items(3)]).bodies])
  const again = new Task([{ shipment: { ...(draft as (typeof remaining)[0]), id: 3, claim: 2 }, bodies, bytes: 1 }], {
    type: 'webhook',
    batch: SINGLE,
  })
  assert.deepEqual([again.retry, again.units.map(memberIds)], [true, [['10-0', '10-1', '10-2', '20-0']]])
})

test('the id of a unit is that of its first delivery, whichever part that belongs to', () => {
  const claimed = claimedOf(1, [[null], items(2)], { unit: true, attempt: 1, firstAttemptAtMs: 1 })
  assert.equal(deliveryIdOf((new Task([claimed], { type: 'webhook', batch: SINGLE }).units[0] as Unit).members), '11-0')
})

test('deliveries whose window ends while they are waiting expire', () => {
  const { done, remaining, records } = expiry(
    destination,
    [claimedOf(1, [items(2), items(1)], { attempt: 3, firstAttemptAtMs: 1 })],
    NOW_MS,
  )
  assert.deepEqual([done.length, remaining], [1, []])
  assert.deepEqual(
    records.map(({ origin, attempt, finals }) => [origin, attempt, finals]),
    [
      [10, 3, [{ state: 'expired', reason: 'retry_window_over', indexes: [0, 1] }]],
      [11, 3, [{ state: 'expired', reason: 'retry_window_over', indexes: [0] }]],
    ],
  )
})

test('the messages of a batch of several shipments are listed in one record, and the other records refer to it', () => {
  const batch = { size: 10, bytes: 500_000, lingerMs: 0 }
  const task = new Task([claimedOf(1, [items(2)]), claimedOf(2, [items(1)]), claimedOf(3, [items(1)])], { type: 'webhook', batch })
  const unit = task.start(NOW_MS) as Unit
  task.finish(unit, results('success', 'success'))
  const parts = [
    { origin: 10, segment: 100, indexes: [0, 1] },
    { origin: 20, segment: 200, indexes: [0] },
    { origin: 30, segment: 300, indexes: [0] },
  ]
  assert.deepEqual(
    settle(task).records.map(({ requests }) => requests.map(({ gathered }) => gathered)),
    [parts, null, null].map((own) => [
      { lead: 10, parts: own },
      { lead: 10, parts: own },
    ]),
  )
})

test('a request with messages of one part lists no other parts', () => {
  const batch = { size: 10, bytes: 500_000, lingerMs: 0 }
  for (const settings of [batch, SINGLE]) {
    const task = new Task([claimedOf(1, [items(3)])], { type: 'webhook', batch: settings })
    for (let unit = task.start(NOW_MS); unit !== undefined; unit = task.start(NOW_MS)) task.finish(unit, results('success'))
    assert.ok(settle(task).records.every(({ requests }) => requests.every((request) => !('gathered' in request))))
  }
})

test('a request has the trace of its messages if they share one, and none otherwise', () => {
  const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: null }
  const traced = (id: number, of: SegmentContent['trace']): ClaimedShipment => {
    const claimed = claimedOf(id, [items(2)])
    return {
      ...claimed,
      bodies: new Map([...claimed.bodies].map(([segment, { content }]) => [segment, bodyOf({ ...content, trace: of })])),
    }
  }
  const unitOf = (size: number, ...shipments: ClaimedShipment[]): Unit =>
    new Task(shipments, { type: 'webhook', batch: { size, bytes: 500_000, lingerMs: 0 } }).start(NOW_MS) as Unit
  assert.deepEqual(traceOf(unitOf(1, traced(1, trace))), trace)
  assert.deepEqual(traceOf(unitOf(9, traced(1, trace))), trace)
  assert.deepEqual(traceOf(unitOf(9, traced(1, trace), traced(2, { ...trace }))), trace)
  assert.equal(traceOf(unitOf(9, traced(1, trace), traced(2, null))), null)
  assert.equal(traceOf(unitOf(9, traced(1, trace), traced(2, { ...trace, tracestate: 'a=1' }))), null)
  assert.equal(traceOf(unitOf(1, traced(1, null))), null)
})

test('the messages of a large part are divided among the senders of a spread destination, alternately', () => {
  const pieces = (count: number, batch: BatchSettings, senders: number): (readonly number[])[] =>
    new Task([claimedOf(1, [items(count)])], { type: 'webhook', batch }, senders).contents.map(({ indexes }) => indexes)
  assert.deepEqual(
    pieces(40, SINGLE, 3).map((indexes) => [indexes.length, indexes[0], indexes[1]]),
    [
      [14, 0, 3],
      [13, 1, 4],
      [13, 2, 5],
    ],
  )
  // Not in small pieces, and not for batches.
  assert.deepEqual([pieces(17, SINGLE, 3).length, pieces(15, SINGLE, 3).length, pieces(40, { ...SINGLE, size: 2 }, 3).length], [2, 1, 1])
  const { units } = new Task([claimedOf(1, [items(40)])], { type: 'webhook', batch: SINGLE }, 3)
  assert.deepEqual(
    units.map(({ members: [member] }) => [member?.index, member?.content.indexes.includes(member.index)]),
    Array.from({ length: 40 }, (_, index) => [index, true]),
  )
})
