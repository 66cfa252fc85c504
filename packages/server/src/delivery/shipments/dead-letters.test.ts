import assert from 'node:assert/strict'
import test from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import fc from 'fast-check'
import type { Verdict } from '../../destinations/port/kind.ts'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import { letterContent } from '../../store/delivery/dead-letters.ts'
import { type ClaimedShipment, type SegmentContent, type Settlement, SYSTEM_SOURCE } from '../../store/store.ts'
import {
  bodyOf,
  claimedOf,
  contentOf,
  destination,
  HOUR_MS,
  items,
  message,
  NOW_MS,
  results,
  SINGLE,
} from '../fixtures/claimed-shipments.ts'
import { expiry } from './expiry.ts'
import { Task } from './task.ts'
import type { Unit } from './unit.ts'

const withLetters = { ...destination, deadLetter: 'dst_dead' }

function attempt(claimed: ClaimedShipment, verdicts: readonly Verdict[], nowMs = NOW_MS): Settlement {
  const task = new Task([claimed], { type: 'webhook', batch: SINGLE })
  for (const verdict of verdicts) task.finish(task.start(NOW_MS) as Unit, results(verdict))
  return task.settlement(withLetters, nowMs, nowMs, () => 0.5)
}

const itemsOf = ({ letters = [] }: Settlement) => letters.flatMap((some) => some.items)
const idsOf = (settlement: Settlement): string[] => itemsOf(settlement).map(({ messageId }) => messageId)

test('a message that failed becomes a dead letter, as the receiver would have got it; one that was delivered or is retried does not', () => {
  const settlement = attempt(claimedOf(1, [items(3)]), ['success', 'permanent', 'temporary'])
  assert.deepEqual(
    settlement.letters?.map(({ destinationId, sourceId, atMs }) => [destinationId, sourceId, atMs]),
    [['dst_dead', 'src', NOW_MS]],
  )
  const [letter] = itemsOf(settlement)
  assert.deepEqual(idsOf(settlement), ['dead-letter-10-1'])
  assert.deepEqual(outboundMessage(contentOf([letter ?? null]), 0), {
    type: 'dead_letter',
    messageId: 'dead-letter-10-1',
    reason: 'http_400',
    destination: { id: 'dst', name: 'Hook' },
    attempts: 1,
    lastStatus: 400,
    message: outboundMessage(contentOf(items(3)), 1),
  })
  // By these it is found when its user is deleted. They are not sent.
  assert.equal(letter?.['userId'], 'user of m1')
  assert.deepEqual(
    settlement.records.map(({ deadLetter }) => deadLetter),
    [{ destinationId: 'dst_dead', prefix: 'dead-letter-10-', indexes: [1] }],
  )
})

test('without a dead-letter destination there are no letters and no notes', () => {
  const task = new Task([claimedOf(1, [items(1)])], { type: 'webhook', batch: SINGLE })
  task.finish(task.start(NOW_MS) as Unit, results('permanent'))
  const { letters, records } = task.settlement(destination, NOW_MS, NOW_MS, () => 0.5)
  assert.deepEqual([letters, records.map(({ deadLetter }) => deadLetter)], [undefined, [undefined]])
})

test('a delivery that expires becomes a dead letter, with its last status, or with none if it was not attempted again', () => {
  const waiting = { attempt: 3, firstAttemptAtMs: 1 }
  const attempted = attempt(claimedOf(1, [items(1)], waiting), ['temporary'], NOW_MS + 9 * HOUR_MS)
  assert.deepEqual(
    itemsOf(attempted).map(({ reason, attempts, lastStatus }) => [reason, attempts, lastStatus]),
    [['http_500', 4, 500]],
  )
  const overdue = expiry(withLetters, [claimedOf(1, [items(2), items(1)], waiting)], NOW_MS)
  assert.deepEqual(idsOf(overdue), ['dead-letter-10-0', 'dead-letter-10-1', 'dead-letter-11-0'])
  assert.deepEqual(
    itemsOf(overdue).map(({ reason, attempts, lastStatus }) => [reason, attempts, lastStatus]),
    Array.from({ length: 3 }, () => ['retry_window_over', 3, null]),
  )
  assert.deepEqual(expiry(destination, [claimedOf(1, [items(2)], waiting)], NOW_MS).letters, undefined)
})

test('a message that the settings reject before a request becomes a dead letter, one that they drop does not', () => {
  const task = new Task([claimedOf(1, [items(2)])], { type: 'webhook', batch: { ...SINGLE, size: 2 } })
  const unit = task.start(NOW_MS) as Unit
  const about = { destination: { type: 'webhook', urls: ['https://a.test/'], version: 3 } as never, startedAtMs: NOW_MS }
  const why = { error: 'It failed.', logs: null }
  task.endUnsent(
    unit,
    [
      { position: 0, why: { reason: 'transformation_failed', ...why } },
      { position: 1, why: { reason: 'dropped_by_transformation', ...why } },
    ],
    about,
  )
  const settlement = task.settlement(withLetters, NOW_MS, NOW_MS, () => 0.5)
  assert.deepEqual(
    itemsOf(settlement).map(({ messageId, reason, lastStatus }) => [messageId, reason, lastStatus]),
    [['dead-letter-10-0', 'transformation_failed', null]],
  )
})

test('a message whose user is deleted while it is in flight does not become a dead letter', () => {
  const task = new Task([claimedOf(1, [items(2)])], { type: 'webhook', batch: SINGLE })
  const units = [task.start(NOW_MS), task.start(NOW_MS)] as Unit[]
  task.delete((sourceId, segment, { userId }) => sourceId === 'src' && segment === 100 && userId === 'user of m0')
  for (const unit of units) task.finish(unit, results('permanent'))
  const settlement = task.settlement(withLetters, NOW_MS, NOW_MS, () => 0.5)
  assert.deepEqual(idsOf(settlement), ['dead-letter-10-1'])
  assert.deepEqual(settlement.records[0]?.finals, [{ state: 'failed', reason: 'http_400', indexes: [0, 1] }])
})

test('a purged message does not become a dead letter, and a damaged one becomes one without a message', () => {
  const purged = claimedOf(1, [[message('m0'), null]], { attempt: 1, firstAttemptAtMs: 1 })
  assert.deepEqual(idsOf(expiry(withLetters, [purged], NOW_MS)), ['dead-letter-10-0'])
  const damaged = claimedOf(1, [items(1)], { attempt: 1, firstAttemptAtMs: 1 })
  const unreadable: SegmentContent = { ...contentOf([]), isUnreadable: true }
  damaged.bodies = new Map([[100, Object.assign(bodyOf(unreadable), { contentOf: () => unreadable })]])
  assert.deepEqual(
    itemsOf(expiry(withLetters, [damaged], NOW_MS)).map((item) => item['message']),
    [null],
  )
})

test('a dead letter of a dead letter contains the first one, and a dead letter of a delete message belongs to no user', () => {
  const [first] = itemsOf(attempt(claimedOf(1, [items(1)]), ['permanent']))
  const [second] = itemsOf(attempt(claimedOf(2, [[first ?? null]]), ['permanent']))
  assert.equal(JSON.stringify(second?.['message']), JSON.stringify(outboundMessage(contentOf([first ?? null]), 0)))
  assert.equal(second?.['userId'], 'user of m0')
  const [deletion] = itemsOf(attempt(claimedOf(1, [[{ type: 'delete', userId: 'u' }]]), ['permanent']))
  assert.equal(deletion?.['userId'], undefined)
  assert.equal((deletion?.['message'] as { userId: string } | undefined)?.userId, 'u')
})

test('many large messages are split into segments of limited size', () => {
  const large = (at: number) => message(`m${at}`, { properties: { text: 'x'.repeat(30_000) } })
  const { letters = [] } = expiry(withLetters, [claimedOf(1, [Array.from({ length: 50 }, (_, at) => large(at))])], NOW_MS)
  assert.equal(letters.length, 4)
  for (const { items: some } of letters) assert.ok(JSON.stringify(some).length < 512_000)
  const small = expiry(withLetters, [claimedOf(1, [items(2_500)])], NOW_MS).letters ?? []
  assert.deepEqual(
    small.map((some) => some.items.length),
    [1_000, 1_000, 500],
  )
})

test('over any number of settlements, each delivery that failed or expired has one dead letter, in the settlement that ends it', () => {
  const verdict = fc.constantFrom<Verdict>('success', 'temporary', 'permanent')
  fc.assert(
    fc.property(fc.array(fc.tuple(verdict, fc.boolean()), { minLength: 1, maxLength: 20 }), fc.boolean(), (steps, expires) => {
      const task = new Task([claimedOf(1, [items(steps.length)], { attempt: 1, firstAttemptAtMs: expires ? 1 : NOW_MS })], {
        type: 'webhook',
        batch: SINGLE,
      })
      const units = steps.map(() => task.start(NOW_MS) as Unit)
      const settlements: Settlement[] = []
      const settle = (): void => void settlements.push(task.settlement(withLetters, NOW_MS, NOW_MS, () => 0.5))
      for (const [at, [result, settlesNow]] of steps.entries()) {
        task.finish(units[at] as Unit, results(result))
        if (settlesNow) settle()
      }
      if (task.hasChanges) settle()
      const expected = (settlement: Settlement): string[] =>
        settlement.records.flatMap(({ origin, finals }) =>
          finals
            .filter(({ state }) => state === 'failed' || state === 'expired')
            .flatMap(({ indexes }) => indexes.map((index) => `dead-letter-${String(origin)}-${index}`)),
        )
      for (const settlement of settlements) assert.deepEqual(new Set(idsOf(settlement)), new Set(expected(settlement)))
      const all = settlements.flatMap(idsOf)
      assert.equal(new Set(all).size, all.length)
      const ends = steps.filter(([result]) => result === 'permanent' || (expires && result === 'temporary')).length
      assert.equal(all.length, ends)
    }),
  )
})

test('letters of a batch share its context: it is stored once, and each letter is sent with it', () => {
  const context = { app: { name: 'x'.repeat(30_000) }, direct: true, locale: 'de' }
  const batch: Partial<SegmentContent> = { context, integrations: { A: false, B: false }, ip: '203.0.113.7' }
  const own = { context: { locale: 'fr' }, integrations: { A: true } }
  const sent = [...items(899), message('m899', own), { type: 'delete', userId: 'u' }]
  const claimed = claimedOf(1, [sent], { attempt: 1, firstAttemptAtMs: 1 })
  claimed.bodies = new Map([[100, bodyOf({ ...contentOf(sent), ...batch })]])
  const { letters = [] } = expiry(withLetters, [claimed], NOW_MS)
  // Before compression, which would hide that the context is repeated.
  assert.ok(JSON.stringify(letters).length < 700_000, `${JSON.stringify(letters).length} bytes`)
  assert.equal(letters.length, 1)
  const stored = letters.map((some) => letterContent(some, [1, 2, 3, 4]))
  assert.ok(stored.reduce((sum, { body }) => sum + body.length, 0) < 700_000)
  const read = letters.flatMap(({ items: some, context: shared = null, integrations = null }) => {
    const content = { ...contentOf([...some]), context: shared, integrations }
    return some.map((_, index) => outboundMessage(content, index)['message'] as JsonObject)
  })
  const whole = { ...contentOf(sent), ...batch }
  assert.deepEqual(
    read.map(plain),
    sent.map((_, index) => plain(outboundMessage(whole, index))),
  )
})

test('a letter of a letter shares the context of the original message, and letters of other batches are not mixed with it', () => {
  const letterOf = (content: SegmentContent, segment: number): Settlement => {
    const claimed = claimedOf(segment, [content.items], { attempt: 1, firstAttemptAtMs: 1 })
    claimed.bodies = new Map([...claimed.bodies.keys()].map((id) => [id, bodyOf(content)]))
    return expiry(withLetters, [claimed], NOW_MS)
  }
  const original = { ...contentOf(items(1)), context: { app: 'x' } }
  const first = letterOf(original, 1).letters ?? []
  const again = letterOf({ ...contentOf([...(first[0]?.items ?? [])]), context: first[0]?.context ?? null }, 2).letters ?? []
  const [letter] = again
  const shown = outboundMessage({ ...contentOf([...(letter?.items ?? [])]), context: letter?.context ?? null }, 0)
  assert.deepEqual(plain((shown['message'] as JsonObject)['message']), plain(outboundMessage(original, 0)))
  const claimed = claimedOf(1, [items(1), items(1), items(1)], { attempt: 1, firstAttemptAtMs: 1 })
  const contents = [original, contentOf(items(1)), { ...contentOf(items(1)), context: { app: 'y' } }]
  claimed.bodies = new Map([...claimed.bodies.keys()].map((id, at) => [id, bodyOf(contents[at] ?? assert.fail())]))
  const { letters = [] } = expiry(withLetters, [claimed], NOW_MS)
  assert.deepEqual(
    letters.map(({ context, items: some }) => [context ?? null, some.length]),
    [
      [{ app: 'x' }, 1],
      [null, 1],
      [{ app: 'y' }, 1],
    ],
  )
})

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

test('an alert about the dead-letter destination does not become a dead letter, also after another destination, and the record says so', () => {
  const alert = (id: string, kind = 'destination'): JsonObject => ({ type: 'track', event: 'Alert', properties: { subject: { kind, id } } })
  const about = [alert('dst_dead'), alert('dst_other'), alert('dst_dead', 'source')]
  const letter = { type: 'dead_letter', message: { type: 'dead_letter', message: alert('dst_dead') } }
  const all = [...about, letter].map((item, at) => Object.assign(item, { messageId: `m${at}`, userId: 'system' }))
  const verdicts = all.map(() => 'permanent' as const)
  const claimed = claimedOf(1, [all])
  const ofSystem = { ...claimed, bodies: new Map([[100, bodyOf({ ...contentOf(all), sourceId: SYSTEM_SOURCE })]]) }
  const settlement = attempt(ofSystem, verdicts)
  assert.deepEqual(idsOf(settlement), ['dead-letter-10-1', 'dead-letter-10-2'])
  assert.deepEqual(
    settlement.records.map(({ deadLetter }) => deadLetter),
    [{ destinationId: 'dst_dead', prefix: 'dead-letter-10-', indexes: [1, 2], withheld: [0, 3] }],
  )
  // Messages of other sources may have such properties by chance.
  assert.equal(idsOf(attempt(claimedOf(1, [all]), verdicts)).length, all.length)
})
