import assert from 'node:assert/strict'
import test from 'node:test'
import { CLASSIC, type RetryPolicy } from '../../model/configuration.ts'
import type { Verdict } from '../port/kind.ts'
import { verdictOfStatus, verdictsOf } from './verdict.ts'

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

test('a policy changes the verdict of the statuses that it names, and of no other', () => {
  const policy: RetryPolicy = { ...CLASSIC.retry, retryStatuses: [409, 302], failStatuses: [503, 429] }
  const verdictOf = verdictsOf(policy)
  assert.equal(verdictsOf(policy), verdictOf, 'compiled once')
  for (let status = 100; status < 1_000; status += 1) {
    const expected = [409, 302].includes(status) ? 'temporary' : [503, 429].includes(status) ? 'permanent' : verdictOfStatus(status)
    assert.equal(verdictOf(status), expected, String(status))
  }
})

test('a policy without statuses costs nothing', () => {
  assert.equal(verdictsOf(CLASSIC.retry), verdictOfStatus)
})
