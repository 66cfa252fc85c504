// What an answer means and how long to wait: pure functions of their arguments, so that every rule is a row in a test.
//
//   2xx              delivered, save what the answer lists as rejected
//   401 with OAuth   a new token, then once more
//   408 425 429 5xx  temporary (501 and 505 are not: they would be the same tomorrow)
//   anything else    refused

import { AnalyticsError } from '../errors.ts'
import type { Answer } from './transport.ts'

/** One message of a batch that the service did not take. */
export interface Rejection {
  index: number
  error: AnalyticsError
}

export type Verdict =
  | { kind: 'delivered'; rejected: Rejection[] }
  | { kind: 'unauthorized'; error: AnalyticsError }
  | { kind: 'temporary'; error: AnalyticsError; retryAfterMs: number | undefined }
  | { kind: 'refused'; error: AnalyticsError; rejected: Rejection[] }

/** A request failed for now, and will be made again. */
export interface RetryEvent {
  error: AnalyticsError
  /** Requests so far: of a batch, or for one access token. */
  attempts: number
  /** Milliseconds until the next. */
  waitMs: number
}

export const MAX_RETRY_AFTER_MS = 300_000
const MIN_RETRY_AFTER_MS = 1_000
const BACKOFF_MIN_MS = 300
const BACKOFF_MAX_MS = 30_000

export function judge(answer: Answer, now: number): Verdict {
  const { status } = answer
  if (status >= 200 && status < 300) return { kind: 'delivered', rejected: rejections(answer.text, status) }
  const error = errorOf(answer)
  if (status === 401) return { kind: 'unauthorized', error }
  if (isTemporary(status)) {
    const asked = status === 429 || status === 503 ? parseRetryAfter(answer.headers['retry-after'], now) : undefined
    // "At once" (a date that has passed, by a clock that may be off) is no pause: back off as after any other failure.
    return { kind: 'temporary', error, retryAfterMs: asked !== undefined && asked >= MIN_RETRY_AFTER_MS ? asked : undefined }
  }
  return { kind: 'refused', error, rejected: rejections(answer.text, status) }
}

export function isTemporary(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || (status >= 500 && status !== 501 && status !== 505)
}

/** Seconds or an HTTP date, as milliseconds from now, at most five minutes; undefined if it is neither. */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  // An HTTP date is always in GMT. One of its forms does not say so, and Date.parse would read that as local time.
  const date = text.endsWith('GMT') ? text : `${text} GMT`
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : /^[A-Za-z]{3}/.test(text) ? Date.parse(date) - now : Number.NaN
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS)
}

/**
 * Exponential, with the upper half random so that many clients do not return at once. `retry` counts from 0. Tripling,
 * so that the three retries of the default outlast a service that restarts.
 */
export function backoffMs(retry: number, random: number): number {
  const full = Math.min(BACKOFF_MIN_MS * 3 ** retry, BACKOFF_MAX_MS)
  return full / 2 + (full / 2) * random
}

function errorOf(answer: Answer): AnalyticsError {
  const { status, statusText } = answer
  const body = parseObject(answer.text)
  const said = typeof body?.['message'] === 'string' ? `: ${body['message'].slice(0, 300)}` : ''
  const code = typeof body?.['code'] === 'string' ? ` ${body['code'].slice(0, 100)}` : ''
  const reason = new Error(`[${status}] ${statusText}${code}${said}`)
  return new AnalyticsError('delivery_failure', `the tracking API answered ${reason.message}`, { reason, status })
}

function rejections(text: string, status: number): Rejection[] {
  // Nearly every answer is {"success":true}: do not parse it.
  if (!text.includes('"rejected"')) return []
  const list = parseObject(text)?.['rejected']
  if (!Array.isArray(list)) return []
  const rejected: Rejection[] = []
  for (const item of list as unknown[]) {
    if (typeof item !== 'object' || item === null) continue
    const { index, code, message } = item as { [key: string]: unknown }
    if (!Number.isInteger(index)) continue
    const name = typeof code === 'string' ? code : 'delivery_failure'
    const said = typeof message === 'string' ? message : 'rejected by the tracking API'
    rejected.push({ index: index as number, error: new AnalyticsError(name, said, { status }) })
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
