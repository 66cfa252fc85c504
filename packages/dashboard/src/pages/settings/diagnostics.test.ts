import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actionText, subjectPath } from './audit-actions.ts'
import { byUrgency, checkName, summaryOf } from './diagnostics.ts'

test('checks are told the most urgent first, and in a sentence', () => {
  const checks = [{ state: 'good' }, { state: 'warning' }, { state: 'bad' }, { state: 'unknown' }] as const
  assert.deepEqual(
    byUrgency(checks).map(({ state }) => state),
    ['bad', 'warning', 'unknown', 'good'],
  )
  assert.equal(summaryOf(checks), 'Of 4 checks: 1 bad, 1 to look at, 1 that could not be made.')
  assert.equal(summaryOf([{ state: 'good' }, { state: 'good' }]), 'All 2 checks are good.')
  assert.deepEqual([checkName('disk'), checkName('fsync_off')], ['Room on the disk', 'Fsync off'])
})

test('actions are told in words, and lead to what there still is', () => {
  assert.deepEqual([actionText('source.update'), actionText('thing.turn')], ['changed the source', 'did thing.turn'])
  assert.deepEqual(
    [subjectPath('source.update', 'a/b'), subjectPath('source.delete', 'a'), subjectPath('token.create', 'a')],
    ['/sources/a%2Fb', null, null],
  )
})
