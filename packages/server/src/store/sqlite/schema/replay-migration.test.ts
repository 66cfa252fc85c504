import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { tempFolder } from '../fixtures/temp-store.ts'
import { openWriter } from './database.ts'
import { MIGRATIONS } from './migrations.ts'

test('replays in a file from before replay jobs keep their ids and final states', (t) => {
  const folder = tempFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'old.db')
  const old = new DatabaseSync(path)
  old.exec(`${MIGRATIONS[0]}; PRAGMA user_version = 1`)
  const replay = old.prepare('INSERT INTO replays (origin, destination, segment, idx, replay_of, at) VALUES (?, 1, 5, ?, ?, 7)')
  const attempt = old.prepare(
    'INSERT INTO attempts (origin, destination, segment, at, attempt, replay, delivered, failed, expired, cancelled, doc) VALUES (?, 1, 5, 7, 1, 1, ?, ?, ?, ?, ?)',
  )
  const ends = { delivered: [1, 0, 0, 0], failed: [0, 1, 0, 0], expired: [0, 0, 1, 0], cancelled: [0, 0, 0, 1], retrying: [0, 0, 0, 0] }
  let origin = 10
  for (const end of Object.values(ends)) {
    replay.run(++origin, origin - 10, `9-${origin}`)
    // After an attempt that will be retried.
    attempt.run(origin, 0, 0, 0, 0, '{}')
    attempt.run(origin, ...(end as [number, number, number, number]), '{}')
  }
  replay.run(++origin, 6, '9-16')
  old.close()

  const database = openWriter(path)
  t.after(() => database.close())
  const rows = database.prepare('SELECT origin, idx, destination, segment, replay_of, at, job, state FROM replays ORDER BY origin').all()
  assert.deepEqual(
    rows.map((row) => Object.assign({}, row)),
    [...Object.keys(ends), null].map((state, at) => ({
      origin: 11 + at,
      idx: 1 + at,
      destination: 1,
      segment: 5,
      replay_of: `9-${11 + at}`,
      at: 7,
      job: null,
      state,
    })),
  )
  const plan = database.prepare('EXPLAIN QUERY PLAN SELECT 1 FROM replays WHERE segment = 5 AND idx = 1').all()
  assert.match(JSON.stringify(plan), /replays_by_segment/)
})
