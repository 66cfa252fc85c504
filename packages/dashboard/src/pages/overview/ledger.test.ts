import assert from 'node:assert/strict'
import test from 'node:test'
import { type LedgerEntry, ledgerLines, ledgerSum, missingFrom } from './ledger.ts'

const ZERO = { owed: 0, delivered: 0, pending: 0, failed: 0, expired: 0, cancelled: 0 }

function entry(destinationId: string, given: Partial<LedgerEntry> = {}): LedgerEntry {
  return { destinationId, ...ZERO, quarantined: 0, ...given }
}

test('an entry balances if owed is the sum of the states', () => {
  assert.equal(missingFrom(ZERO), 0)
  assert.equal(missingFrom(entry('d', { owed: 15, delivered: 5, pending: 4, failed: 3, expired: 2, cancelled: 1 })), 0)
  assert.equal(missingFrom(entry('d', { owed: 16, delivered: 15 })), 1)
  assert.equal(missingFrom(entry('d', { owed: 14, delivered: 15 })), -1)
})

test('entries that do not balance come first, then those with most undelivered, deleted destinations last', () => {
  const entries = [
    entry('gone', { owed: 9, failed: 9 }),
    entry('quiet'),
    entry('busy', { owed: 100, delivered: 100 }),
    entry('failing', { owed: 10, delivered: 5, failed: 5 }),
    entry('wrong', { owed: 3 }),
  ]
  const known = ['quiet', 'busy', 'failing', 'wrong'].map((id) => ({
    id,
    name: `The ${id}`,
    enabled: id !== 'quiet',
    paused: id === 'busy',
  }))
  const lines = ledgerLines(entries, known)
  assert.deepEqual(
    lines.map(({ destinationId, name, missing, hold }) => [destinationId, name, missing, hold]),
    [
      ['wrong', 'The wrong', 3, null],
      ['failing', 'The failing', 0, null],
      ['busy', 'The busy', 0, 'paused'],
      ['quiet', 'The quiet', 0, 'disabled'],
      ['gone', null, 0, null],
    ],
  )
  assert.deepEqual(ledgerSum(entries), { ...ZERO, owed: 122, delivered: 105, failed: 14 })
})
