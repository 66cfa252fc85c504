// Checks what a host reports before the books depend on it. The code of integrations runs in the same process as the code that reports, so it can forge
// a report or damage it. A message must not be lost, or be counted twice, because of what a host says about it.

import { kindOf } from '../../destinations/kinds.ts'
import { MAX_KEY_CHARS, MAX_TTL_MS, MAX_VALUE_CHARS } from '../../store/port/integration-state.ts'
import type { Outcome, RanMessage, RanRequest, RanState } from '../link/outcome.ts'
import type { Work } from '../link/work.ts'
import type { ReportCheck } from './replaceable-sender.ts'

/** Far longer than any text that a host keeps of a request. */
const MAX_TEXT = 256 * 1024
/** Of one subscription; see the recording of the runner. */
const MAX_REQUESTS = 50
const MAX_HEADERS = 1_000
/** What one run leaves for one message; the library's integrations leave one. */
const MAX_STATE_ENTRIES = 20
const REASON = /^[a-z][a-z0-9_]{0,63}$/
const VERDICTS: ReadonlySet<unknown> = new Set(['success', 'temporary', 'permanent'])

export const reportCheck: ReportCheck = {
  outcome({ urls, destination }: Work, left, url, outcome, waitedMs) {
    mustBe(urls.includes(url) && isTime(waitedMs))
    checkOutcome(outcome)
    if (outcome.ran === undefined) return
    const { messages, requests } = outcome.ran
    // One result for each message: a message without one would be neither delivered nor retried.
    mustBe(Array.isArray(messages) && messages.length === left)
    messages.forEach(checkMessage)
    // The requests of each subscription, and what stands for those that made none. A deletion counts as one more.
    mustBe(
      Array.isArray(requests) && requests.length <= (MAX_REQUESTS + left) * ((kindOf(destination).steps(destination)?.length ?? 0) + 2),
    )
    for (const request of requests) checkRequest(request, left)
    checkState(outcome.ran.state ?? [], left)
  },

  unsent(_work, left, unsent, isOver) {
    mustBe(Array.isArray(unsent) && unsent.length <= left && isOver === (unsent.length === left))
    checkPositions(
      unsent.map(({ position }) => position),
      left,
    )
    for (const { why } of unsent) mustBe(why === 'deleted' || why === 'unreadable' || why === 'left_out')
    // If all messages of a unit were left out, it would be started over and over.
    mustBe(unsent.filter(({ why }) => why === 'left_out').length < left)
  },
}

function checkMessage({ verdict, reason, retryAfterMs, succeeded }: RanMessage): void {
  mustBe(VERDICTS.has(verdict) && (verdict === 'success' || reason !== null))
  mustBe(isReason(reason) && isTimeOrNull(retryAfterMs))
  mustBe(Array.isArray(succeeded) && succeeded.every((id) => typeof id === 'string' && id.length < 100))
}

/** Entries are stored, so they are small, and name only messages of the unit. */
function checkState(state: readonly RanState[], left: number): void {
  mustBe(Array.isArray(state) && state.length <= MAX_STATE_ENTRIES * (left + 1))
  for (const { position, subscriptionId, key, value, setAtMs, expiresAtMs } of state) {
    checkPositions(position === null ? [] : [position], left)
    mustBe(typeof subscriptionId === 'string' && subscriptionId.length < 100 && isTime(setAtMs) && isTime(expiresAtMs))
    mustBe(typeof key === 'string' && key.length <= MAX_KEY_CHARS && typeof value === 'string' && value.length <= MAX_VALUE_CHARS)
    mustBe(expiresAtMs <= setAtMs + MAX_TTL_MS)
  }
}

function checkRequest({ positions, subscription, method, url, startedAtMs, outcome, sent }: RanRequest, left: number): void {
  mustBe(Array.isArray(positions) && positions.length > 0)
  checkPositions(positions, left)
  mustBe(isTextOrNull(subscription) && isTextOrNull(method) && isText(url) && isTime(startedAtMs))
  checkOutcome(outcome)
  if (sent === null) return
  const headers = Object.entries(sent.headers)
  mustBe(isText(sent.body) && headers.length <= MAX_HEADERS && headers.every((header) => header.every(isText)))
}

function checkOutcome({ verdict, status, reason, error, address, timings, retryAfterMs, responseStart, logs = '' }: Outcome): void {
  mustBe(VERDICTS.has(verdict) && isReason(reason) && (verdict === 'success' || reason !== null))
  mustBe(status === null || (Number.isInteger(status) && status >= 0 && status < 1_000))
  mustBe([error, address, responseStart, logs].every(isTextOrNull) && isTimeOrNull(retryAfterMs))
  const { dnsMs, connectMs, tlsMs, firstByteMs, totalMs } = timings
  mustBe([dnsMs, connectMs, tlsMs, firstByteMs].every(isTimeOrNull) && isTime(totalMs))
}

function checkPositions(positions: readonly number[], left: number): void {
  mustBe(positions.every((position) => Number.isInteger(position) && position >= 0 && position < left))
  mustBe(new Set(positions).size === positions.length)
}

/** Not longer than a date can be. */
function isTime(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= 8.64e15
}

function isTimeOrNull(value: unknown): boolean {
  return value === null || isTime(value)
}

function isReason(value: unknown): boolean {
  return value === null || (typeof value === 'string' && REASON.test(value))
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value.length <= MAX_TEXT
}

function isTextOrNull(value: unknown): boolean {
  return value === null || isText(value)
}

function mustBe(isTrue: boolean): void {
  if (!isTrue) throw new TypeError('the report of a host is not valid')
}
