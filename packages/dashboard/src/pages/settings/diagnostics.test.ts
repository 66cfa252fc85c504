import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actionText, subjectPath } from './audit-actions.ts'
import { byUrgency, checkName, summaryOf } from './diagnostics.ts'

test('sorts checks by urgency and summarizes them', () => {
  const checks = [{ state: 'good' }, { state: 'warning' }, { state: 'bad' }, { state: 'unknown' }] as const
  assert.deepEqual(
    byUrgency(checks).map(({ state }) => state),
    ['bad', 'warning', 'unknown', 'good'],
  )
  assert.equal(summaryOf(checks), '4 checks: 1 failed, 1 warning, 1 unknown, 1 passed.')
  assert.equal(summaryOf([{ state: 'good' }, { state: 'good' }]), 'All 2 checks passed.')
  assert.deepEqual([checkName('disk'), checkName('fsync_off')], ['Disk space', 'Fsync off'])
})

test('describes actions and links to subjects that still exist', () => {
  assert.deepEqual([actionText('source.update'), actionText('thing.turn')], ['changed the source', 'thing.turn'])
  assert.deepEqual(
    [subjectPath('source.update', 'a/b'), subjectPath('source.delete', 'a'), subjectPath('token.create', 'a')],
    ['/sources/a%2Fb', null, null],
  )
})
