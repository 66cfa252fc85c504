import assert from 'node:assert/strict'
import test from 'node:test'
import type { AttemptRecord, DeadLetterNote, IsDeleted } from './delivery.ts'
import { withoutDeleted } from './without-deleted.ts'

const isGone: IsDeleted = (_source, _segment, { userId }) => userId === 'gone'

function notesLeft(deadLetter: DeadLetterNote, items: { messageId: string; userId: string }[]): DeadLetterNote | undefined {
  const record: AttemptRecord = { origin: 1, segment: 1, attempt: 1, replay: false, atMs: 0, requests: [], finals: [], deadLetter }
  const letters = [{ destinationId: 'dst_1', sourceId: 'src_1', atMs: 0, trace: null, bytes: 100, items }]
  const settlement = { destinationId: 'dst_2', done: [], kept: [], remaining: [], records: [record], letters }
  return withoutDeleted(settlement, isGone).records[0]?.deadLetter
}

test('the note about a withheld letter stays when the other letters of its record are dropped with their users', () => {
  const note = { destinationId: 'dst_1', prefix: 'dead-letter-1-', indexes: [0], withheld: [1] }
  assert.deepEqual(notesLeft(note, [{ messageId: 'dead-letter-1-0', userId: 'gone' }]), { ...note, indexes: [] })
  assert.deepEqual(notesLeft(note, [{ messageId: 'dead-letter-1-0', userId: 'stays' }]), note)
})

test('a note is dropped when its last letter is dropped with its user', () => {
  const note = { destinationId: 'dst_1', prefix: 'dead-letter-1-', indexes: [0] }
  assert.equal(notesLeft(note, [{ messageId: 'dead-letter-1-0', userId: 'gone' }]), undefined)
})
