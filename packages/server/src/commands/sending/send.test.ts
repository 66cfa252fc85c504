import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from './send.ts'

test('send --wait waits until the next load of a warehouse has ended, unless it is far away', () => {
  const destinations = [{ id: 'hook' }, ...[30_000, 60_000, 3_600_000].map((everyMs) => ({ id: `lake-${everyMs}`, load: { everyMs } }))]
  const wait = (...ids: string[]) =>
    waitFor(
      ids.map((destinationId) => ({ destinationId })),
      destinations,
    )
  assert.deepEqual([wait(), wait('hook'), wait('lake-3600000')], [60_000, 60_000, 60_000])
  assert.deepEqual([wait('hook', 'lake-60000'), wait('lake-60000', 'lake-30000', 'lake-3600000')], [120_000, 120_000])
})
