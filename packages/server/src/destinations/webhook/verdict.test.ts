import assert from 'node:assert/strict'
import test from 'node:test'
import type { Verdict } from '../kind.ts'
import { verdictOfStatus } from './verdict.ts'

test('every status from 100 to 999 has its verdict', () => {
  const temporary = new Set([408, 425, 429])
  for (let status = 100; status < 1_000; status += 1) {
    let expected: Verdict = 'permanent'
    if (status >= 200 && status <= 299) expected = 'success'
    else if (status >= 500 && status <= 599 && status !== 501 && status !== 505) expected = 'temporary'
    else if (temporary.has(status)) expected = 'temporary'
    assert.equal(verdictOfStatus(status), expected, String(status))
  }
})
