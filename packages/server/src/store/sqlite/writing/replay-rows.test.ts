import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { PENDING_OR_DELIVERED } from '../../replays/replay-job-row.ts'
import { tempFolder } from '../fixtures/temp-store.ts'
import { openWriter } from '../schema/database.ts'

test('pending and delivered replays, and the newest one, are found without reading all failed ones', (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const database = openWriter(join(folder, 'test.db'))
  t.after(() => database.close())
  const plan = (rest: string): string =>
    JSON.stringify(
      database.prepare(`EXPLAIN QUERY PLAN SELECT origin FROM replays WHERE segment = 1 AND idx = 2 AND destination = 3 ${rest}`).all(),
    )
  assert.match(
    plan(`AND ${PENDING_OR_DELIVERED} AND origin > 4`),
    /replays_that_stand \(segment=\? AND idx=\? AND destination=\? AND origin>\?\)/,
  )
  const newest = plan('ORDER BY origin DESC LIMIT 1')
  assert.match(newest, /replays_by_segment \(segment=\? AND idx=\? AND destination=\?\)/)
  assert.doesNotMatch(newest, /TEMP B-TREE/)
})
