import assert from 'node:assert/strict'
import test from 'node:test'
import { CauseTally, sharesOf } from './causes.ts'

const row = (destinationId: string, failed: number, expired = 0) => ({
  destinationId,
  failed,
  expired,
  cancelled: 0,
  owed: failed + expired,
  delivered: 0,
  pending: 0,
})

test('a flood at one destination hides nothing of the others', () => {
  const shares = sharesOf([row('flood', 5_000_000), row('quiet', 0), row('small', 7, 3)], {})
  assert.deepEqual(
    shares.map(({ destinationId, state }) => `${destinationId} ${state}`),
    ['small expired', 'small failed', 'flood failed'],
  )
  const tally = new CauseTally(shares)
  const limits = shares.map((share, at) => {
    const limit = tally.limit()
    tally.add(share, [
      { reason: 'timeout', count: Math.min(limit, [3, 7, 5_000_000][at] as number), first: 1, last: 2, origin: 8, idx: at },
    ])
    return limit
  })
  assert.deepEqual(limits, [33_333, 49_998, 99_990])
  const { causes, looked } = tally.result()
  assert.equal(looked, 100_000)
  assert.deepEqual(
    causes.map(({ destinationId, count, isPartial }) => [destinationId, count, isPartial]),
    [
      ['flood', 99_990, true],
      ['small', 7, false],
      ['small', 3, false],
    ],
  )
})

test('only what is asked for is looked at', () => {
  const ledger = [row('a', 1, 2), row('b', 3)]
  assert.deepEqual(
    sharesOf(ledger, { destinationId: 'a', state: 'expired' }).map(({ destinationId, state }) => [destinationId, state]),
    [['a', 'expired']],
  )
  assert.equal(sharesOf(ledger, { state: 'cancelled' }).length, 0)
})
