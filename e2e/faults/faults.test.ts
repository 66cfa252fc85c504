// One minute of the fault ledger in every test run: some of the faults, on both stores. SWITCHYARD_LONG_TESTS=1 causes all of them, for ten minutes.
import type { StoreKind } from './system/system.ts'
// Also checks that the published page matches its data.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG } from '../system/long-tests.ts'
import { combine, describe, ledgerPage, writtenPage } from './ledger.ts'
import { type Row, runFaults } from './rounds/schedule.ts'
import { FAULTS } from './rows/faults.ts'

const SHORT: readonly (readonly [key: string, store: StoreKind])[] = [
  ['node-killed', 'sqlite'],
  ['postgres-killed', 'postgres'],
]
const MINUTES = IS_LONG ? 10 : 1
const PER_ROUND = 3
const SEED = 1

test(`faults for ${MINUTES === 1 ? 'one minute' : `${MINUTES} minutes`}: nothing acknowledged is lost, and the ledger balances`, async (t) => {
  const all = FAULTS.flatMap((fault) => (fault.unavailable?.() === undefined ? fault.stores.map((store) => ({ fault, store })) : []))
  const rows = IS_LONG ? all : all.filter(({ fault, store }) => SHORT.some(([key, on]) => key === fault.key && on === store))
  // Two rows at once, so that on a busy machine both of the short form are run within the minute.
  const done = await runFaults({
    rows,
    minutes: MINUTES,
    seed: SEED,
    perRound: PER_ROUND,
    mostFaults: IS_LONG ? 100 : PER_ROUND,
    jobs: 2,
    onRound: report,
  })
  for (const { fault, rounds } of done) assert.ok(combine(rounds).faults > 0 || IS_LONG, `${fault.key} was not caused`)

  function report({ fault, store }: Row, { seed, result }: { seed: number; result: Parameters<typeof combine>[0][number] }): void {
    t.diagnostic(describe({ key: fault.key, store, seed, ...combine([result]) }))
    assert.deepEqual(result.problems, [], `${fault.key} on ${store}, seed ${seed}`)
  }
})

test('the page of the fault ledger is up to date with its data', () => {
  assert.equal(writtenPage(), ledgerPage(), 'run: npm run faults -- --page')
})
