// Random operations on tasks: every delivery ends in exactly one place.

import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Verdict } from '../../destinations/port/kind.ts'
import { assertBalanced } from '../../store/encoding/settlement.ts'
import { type Settlement } from '../../store/store.ts'
import { claimedOf, destination, HOUR_MS, message, NOW_MS, results, SINGLE, URLS } from '../fixtures/claimed-shipments.ts'
import { deletedAt, endedIds, idsOf, jsonOf, memberIds, settle } from '../fixtures/tasks.ts'
import { Task } from './task.ts'
import { type Unit } from './unit.ts'

const anyItem = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.nat({ max: 5 }), fc.nat({ max: 300 }))
      .map(([at, length]) => message(`m${at}`, { properties: { pad: 'x'.repeat(length) } })),
  },
  { weight: 1, arbitrary: fc.constant({ type: 'delete', userId: 'u', timestamp: '2026-11-14T09:00:00.000Z' }) },
  { weight: 1, arbitrary: fc.constant(null) },
)

const anyParts = fc.array(fc.array(anyItem, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 3 })
const anyFresh = fc.array(anyParts, { minLength: 1, maxLength: 4 }).map((all) => all.map((parts, at) => claimedOf(at + 1, parts)))

const anyRetry = fc
  .record({
    parts: anyParts,
    attempt: fc.integer({ min: 1, max: 20 }),
    ageMs: fc.integer({ min: 0, max: 5 * HOUR_MS }),
    unit: fc.boolean(),
    replay: fc.boolean(),
    progress: fc.option(fc.subarray(URLS, { minLength: 1 })),
  })
  .map(({ parts, ageMs, ...given }) => [claimedOf(1, parts, { ...given, firstAttemptAtMs: NOW_MS - ageMs, dueAtMs: NOW_MS - 5 })])

const anyBatch = fc.oneof(
  fc.constant(SINGLE),
  fc.record({ size: fc.integer({ min: 2, max: 8 }), bytes: fc.integer({ min: 200, max: 3_000 }), lingerMs: fc.constant(0) }),
)

const anyVerdicts = fc.array(fc.constantFrom<Verdict>('success', 'temporary', 'permanent'), { minLength: 1, maxLength: 3 })
const anyStep = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ do: 'start' } as const) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('finish' as const), which: fc.nat(), verdicts: anyVerdicts }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('withdraw' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deliver' as const), which: fc.nat(), verdicts: anyVerdicts }) },
  { weight: 1, arbitrary: fc.constant({ do: 'settle' } as const) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('purge' as const),
      segment: fc.integer({ min: 100, max: 402 }),
      indexes: fc.uniqueArray(fc.nat({ max: 5 })),
    }),
  },
)

test('after random operations, every delivery is in exactly one place, and retried or unchanged as expected', () => {
  fc.assert(
    fc.property(fc.oneof(anyFresh, anyRetry), anyBatch, fc.array(anyStep, { maxLength: 60 }), (shipments, batch, steps) => {
      const task = new Task(shipments, { type: 'webhook', batch })
      for (const { members, isBatch } of task.units) {
        const isDelete = members.some((member) => (JSON.parse(jsonOf(member)) as { type: string }).type === 'delete')
        if (shipments.some(({ shipment }) => shipment.unit)) continue
        if (batch.size === 1 || isDelete) assert.equal(members.length, 1)
        assert.equal(isBatch, batch.size > 1)
        assert.ok(members.length <= batch.size)
        if (members.length > 1) assert.ok(Buffer.byteLength(`[${members.map(jsonOf).join(',')}]`) <= batch.bytes)
      }
      const running: Unit[] = []
      const trailing: [Unit, Verdict[]][] = []
      const settlements: Settlement[] = []
      const retried: { ids: string[]; urls: string[]; isBatch: boolean; attempt: number; firstAttemptAtMs: number | null }[] = []
      const untouched: Unit[] = []
      const takeRunning = (which: number): Unit | undefined => running.splice(which % Math.max(running.length, 1), 1)[0]
      const finish = (unit: Unit, verdicts: Verdict[]): void => {
        task.finish(unit, results(...verdicts))
        if (verdicts.includes('success') || !verdicts.includes('temporary')) return
        const { attempt, firstAttemptAtMs } = (unit.members[0] as Unit['members'][0]).shipment
        const urls = URLS.filter((_, at) => verdicts[at] === 'temporary')
        retried.push({ ids: memberIds(unit), urls, isBatch: unit.isBatch, attempt: attempt + 1, firstAttemptAtMs })
      }
      for (const step of steps) {
        if (step.do === 'start') {
          const unit = task.start(NOW_MS)
          if (unit) running.push(unit)
        } else if (step.do === 'purge') task.delete(deletedAt(step.segment, step.indexes))
        else if (step.do === 'settle') {
          if (!task.isOver) settlements.push(task.settlement(destination, NOW_MS, NOW_MS, () => 0.5))
        } else {
          const unit = takeRunning(step.which)
          if (unit === undefined) continue
          if (step.do === 'finish') finish(unit, step.verdicts)
          else if (step.do === 'deliver') {
            task.deliver(unit, results('success'))
            trailing.push([unit, step.verdicts])
          } else {
            task.withdraw(unit)
            untouched.push(unit)
          }
        }
      }
      untouched.push(...task.units)
      task.stop()
      for (const unit of running) finish(unit, ['temporary'])
      for (const [unit, verdicts] of trailing) task.finish(unit, results('success', ...verdicts))
      settlements.push(settle(task))

      // Each settlement accounts for all deliveries, starting from those that the previous one left.
      const held = new Map(shipments.map(({ shipment }) => [shipment.id, idsOf(shipment.parts)]))
      for (const each of settlements) {
        assertBalanced(each)
        for (const { id, parts } of each.done) assert.deepEqual(idsOf(parts), held.get(id))
        for (const { shipment } of each.kept) assert.deepEqual(idsOf(shipment.parts), held.get(shipment.id))
        for (const { id } of each.done) held.delete(id)
        for (const { shipment, parts } of each.kept) held.set(shipment.id, idsOf(parts))
      }
      assert.equal(held.size, 0)
      const settlement = {
        ...(settlements[0] as Settlement),
        remaining: settlements.flatMap(({ remaining }) => remaining),
        records: settlements.flatMap(({ records }) => records),
      }
      const owed = shipments.flatMap(({ shipment }) => idsOf(shipment.parts)).sort()
      const left = settlement.remaining.flatMap(({ parts }) => idsOf(parts))
      assert.deepEqual([...endedIds(settlement), ...left].sort(), owed)

      const expired = new Set(endedIds(settlement, 'expired'))
      for (const { ids, urls, isBatch, attempt, firstAttemptAtMs } of retried) {
        if (ids.some((id) => expired.has(id))) {
          assert.ok(ids.every((id) => expired.has(id)))
          continue
        }
        const draft = settlement.remaining.find(({ parts }) => idsOf(parts).includes(ids[0] as string))
        assert.ok(draft !== undefined)
        assert.deepEqual([draft.progress, draft.unit, draft.attempt], [urls, isBatch, attempt])
        assert.equal(draft.firstAttemptAtMs, firstAttemptAtMs ?? NOW_MS)
        assert.ok(draft.dueAtMs > NOW_MS && draft.dueAtMs <= draft.firstAttemptAtMs + destination.retryWindowMs)
        if (isBatch) assert.deepEqual(idsOf(draft.parts).sort(), [...ids].sort())
      }
      for (const { members } of untouched) {
        for (const member of members) {
          const id = memberIds({ members: [member], isBatch: false, startedAtMs: 0, recorded: 0, isLate: false })[0] as string
          const { attempt, firstAttemptAtMs, dueAtMs, unit, progress, replay } = member.shipment
          const draft = settlement.remaining.find(({ parts }) => idsOf(parts).includes(id))
          assert.ok(draft !== undefined)
          assert.deepEqual(
            [draft.attempt, draft.firstAttemptAtMs, draft.dueAtMs, draft.unit, draft.progress, draft.replay],
            [attempt, firstAttemptAtMs, dueAtMs, unit, progress, replay],
          )
        }
      }
    }),
    { numRuns: 400 },
  )
})
