import assert from 'node:assert/strict'
import test from 'node:test'
import type { RowOrder } from '../encoding/sql.ts'
import type { CauseFilter, FailureCauses } from '../port/history.ts'
import { failureCauses } from './failure-causes.ts'

const row = (destinationId: string, failed: number, expired = 0) => ({
  destinationId,
  failed,
  expired,
  cancelled: 0,
  owed: failed + expired,
  delivered: 0,
  pending: 0,
})

/** Calls failureCauses with failures that all have the same cause. Returns the queries that the rows received, and the result. */
async function ask(ledger: ReturnType<typeof row>[], filter: CauseFilter): Promise<{ asked: [string, number][]; answer: FailureCauses }> {
  const asked: [string, number][] = []
  const answer = await failureCauses(
    {
      order: { oldest: 0, newest: 9 } as RowOrder<number>,
      ledger: () => ledger,
      causes({ destinationId, state }, _first, _last, _times, limit) {
        asked.push([`${destinationId} ${state}`, limit])
        const stored = ledger.find((each) => each.destinationId === destinationId)?.[state] ?? 0
        return [{ reason: 'timeout', count: Math.min(limit, stored), firstAtMs: 1, lastAtMs: 2, deliveryId: '8-0' }]
      },
    },
    filter,
  )
  return { asked, answer }
}

test('many failures of one destination do not hide those of the others', async () => {
  const { asked, answer } = await ask([row('flood', 5_000_000), row('quiet', 0), row('small', 7, 3)], {})
  assert.deepEqual(asked, [
    ['small expired', 33_333],
    ['small failed', 49_998],
    ['flood failed', 99_990],
  ])
  assert.equal(answer.counted, 100_000)
  assert.deepEqual(
    answer.causes.map(({ destinationId, count, isPartial }) => [destinationId, count, isPartial]),
    [
      ['flood', 99_990, true],
      ['small', 7, false],
      ['small', 3, false],
    ],
  )
})

test('only the destination and state of the filter are looked at', async () => {
  const ledger = [row('a', 1, 2), row('b', 3)]
  assert.deepEqual((await ask(ledger, { destinationId: 'a', state: 'expired' })).asked, [['a expired', 100_000]])
  assert.equal((await ask(ledger, { state: 'cancelled' })).asked.length, 0)
})
