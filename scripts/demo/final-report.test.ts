import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from './final-report.ts'

const missing = [
  ['m-1', 'deleted-user'],
  ['m-2', 'u'],
  ['m-3', undefined],
  ['m-4', 'u'],
] as const
const forgotten = new Set(['deleted-user'])

test('messages that are in quarantine, or were deleted from it, are not lost', () => {
  const held = new Set(['m-2', 'm-3'])
  const kept = ['1 belong to users whose deletion was requested', '2 are in quarantine']
  assert.deepEqual(explain(missing, { forgotten, held, deleted: 0 }), { lost: 1, kept })
  assert.deepEqual(explain(missing, { forgotten, held, deleted: 5 }), { lost: 0, kept: [...kept, '1 were deleted from quarantine'] })
  assert.deepEqual(explain(missing, { forgotten: new Set(), held: new Set(), deleted: 0 }), { lost: 4, kept: [] })
})
