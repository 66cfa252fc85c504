// The requests that integrations make through the whole service are those that the library makes when it is called directly. With
// SWITCHYARD_LONG_TESTS=1 all integrations that are available; otherwise a sample. `npm run coverage:integrations` prints how many are covered.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IS_LONG } from '../system/long-tests.ts'
import { integrationCases } from './cases.ts'
import { compareRequests } from './compare-requests.ts'
import { checkSeen } from './seen/seen-actions.ts'

/** Every how many integrations, in the order of their names. */
const STEP = IS_LONG ? 1 : 7

test('events that match each preset: the service makes the requests that the library makes', async (t) => {
  const available = await integrationCases()
  const comparisons = await compareRequests(available.filter((_, index) => index % STEP === 0))
  assert.deepEqual(
    comparisons.filter(({ differences }) => differences.length > 0),
    [],
  )
  const covered = comparisons.filter(({ notCovered }) => notCovered === null)
  t.diagnostic(`${covered.length} of ${comparisons.length} integrations covered`)
  assert.ok(covered.length >= comparisons.length * 0.7)
  checkSeen('library', new Map(comparisons.map(({ slug, actions }) => [slug, actions])))
})
