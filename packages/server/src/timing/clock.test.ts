import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { LONGEST_PAUSE_MS, scheduleStart } from './clock.ts'

suite('where schedule time continues', () => {
  const mark = { scheduleMs: 1_000_000, wallMs: 5_000_000 }

  test('at the wall clock in a new store', () => {
    assert.equal(scheduleStart(null, 7_000), 7_000)
  })

  test('later by the time that passed', () => {
    assert.equal(scheduleStart(mark, 5_000_000), 1_000_000)
    assert.equal(scheduleStart(mark, 5_060_000), 1_060_000)
  })

  test('at most an hour later, however long nothing ran and however far the clock jumped', () => {
    assert.equal(scheduleStart(mark, 5_000_000 + LONGEST_PAUSE_MS), 1_000_000 + LONGEST_PAUSE_MS)
    assert.equal(scheduleStart(mark, 5_000_000 + 30 * 24 * LONGEST_PAUSE_MS), 1_000_000 + LONGEST_PAUSE_MS)
  })

  test('not earlier if the clock was set back', () => {
    assert.equal(scheduleStart(mark, 4_000_000), 1_000_000)
  })
  test('not ahead of the wall clock, if an older version, which does not save wall time, has run since', () => {
    assert.equal(scheduleStart({ scheduleMs: 90_000_000, wallMs: 5_000_000 }, 90_001_000), 90_001_000)
  })

  test('later by the time that passed, if the clock was set back before', () => {
    assert.equal(scheduleStart({ scheduleMs: 90_000_000, wallMs: 5_000_000 }, 5_060_000), 90_060_000)
  })
})
