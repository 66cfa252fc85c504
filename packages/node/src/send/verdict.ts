// Interprets responses and computes delays. Pure functions, so that every rule is a row in a test.
//
//   2xx              delivered, except for messages that the response lists as rejected
//   401 with OAuth   get a new token and send once more
//   408 425 429 5xx  temporary (except 501 and 505, which a retry does not change)
//   anything else    rejected

import { AnalyticsError } from '../call/errors.ts'
import type { Answer } from '../http/transport.ts'

/** A message of a batch that the service rejected. */
export interface Rejection {
  index: number
  error: AnalyticsError
}

export type ResponseVerdict =
  | { kind: 'delivered'; rejected: Rejection[] }
  | { kind: 'unauthorized'; error: AnalyticsError }
  | { kind: 'temporary'; error: AnalyticsError; retryAfterMs: number | undefined }
  | { kind: 'rejected'; error: AnalyticsError; rejected: Rejection[] }

/** Emitted as `retry` when a request has failed and will be retried. */
export interface RetryEvent {
  error: AnalyticsError
  /** Number of requests made so far for this batch or access token. */
  attempts: number
  /** Milliseconds until the next request. */
  waitMs: number
}

export const MAX_RETRY_AFTER_MS = 300_000
const MIN_RETRY_AFTER_MS = 1_000
const BACKOFF_MIN_MS = 300
/** No delay before a retry is shorter than this. */
export const SHORTEST_BACKOFF_MS = BACKOFF_MIN_MS / 2
const BACKOFF_MAX_MS = 30_000

export function judge(answer: Answer, now: number): ResponseVerdict {
  const { status } = answer
  if (status >= 200 && status < 300) return { kind: 'delivered', rejected: rejections(answer.text, status) }
  const error = errorOf(answer)
  if (status === 401) return { kind: 'unauthorized', error }
  if (isTemporary(status)) {
    const retryAfterMs = status === 429 || status === 503 ? parseRetryAfter(answer.headers['retry-after'], now) : undefined
    return { kind: 'temporary', error, retryAfterMs }
  }
  return { kind: 'rejected', error, rejected: rejections(answer.text, status) }
}

export function isTemporary(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || (status >= 500 && status !== 501 && status !== 505)
}

/**
 * Parses the value of Retry-After: seconds, or an HTTP date. Returns the delay in milliseconds, or undefined if the value is neither. The delay is at
 * least one second, so that 0 or a date in the past (clocks may be wrong) does not cause a tight loop, and at most five minutes.
 */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  // An HTTP date is always in GMT. One of its formats does not contain the zone, and Date.parse would read it as local time.
  const date = text.endsWith('GMT') ? text : `${text} GMT`
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : /^[A-Za-z]{3}/.test(text) ? Date.parse(date) - now : Number.NaN
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, MIN_RETRY_AFTER_MS), MAX_RETRY_AFTER_MS)
}

/**
 * Exponential backoff. The upper half of the delay is random, so that many clients do not return at once. `retry` counts from 0.
 * The delay triples each time, so that the default of three retries outlasts a restart of the service.
 */
export function backoffMs(retry: number, random: number): number {
  const full = Math.min(BACKOFF_MIN_MS * 3 ** retry, BACKOFF_MAX_MS)
  return full / 2 + (full / 2) * random
}

function errorOf(answer: Answer): AnalyticsError {
  const { status, statusText } = answer
  const body = parseObject(answer.text)
  const code = typeof body?.['code'] === 'string' ? body['code'].slice(0, 100) : ''
  const detail = typeof body?.['message'] === 'string' ? body['message'].slice(0, 300) : ''
  const head = statusLine(status, statusText, code)
  const reason = new Error(detail.trim() === '' ? head : `${head}: ${detail.trim()}`)
  return new AnalyticsError('delivery_failure', `the tracking API answered ${reason.message}`, { reason, status })
}

/** `[400] Bad Request invalid_json`, without a space for a part that is missing. */
export function statusLine(status: number, ...rest: string[]): string {
  return [`[${status}]`, ...rest.map((part) => part.trim())].filter((part) => part !== '').join(' ')
}

function rejections(text: string, status: number): Rejection[] {
  // Nearly every response is {"success":true}, which need not be parsed.
  if (!text.includes('"rejected"')) return []
  const list = parseObject(text)?.['rejected']
  if (!Array.isArray(list)) return []
  const rejected: Rejection[] = []
  for (const item of list as unknown[]) {
    if (typeof item !== 'object' || item === null) continue
    const { index, code, message } = item as { [key: string]: unknown }
    if (!Number.isInteger(index)) continue
    const name = typeof code === 'string' ? code : 'delivery_failure'
    const detail = typeof message === 'string' ? message : 'rejected by the tracking API'
    rejected.push({ index: index as number, error: new AnalyticsError(name, detail, { status }) })
  }
  return rejected
}

function parseObject(text: string): { [key: string]: unknown } | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return JSON.parse(text) as { [key: string]: unknown }
  } catch {
    return undefined
  }
}
