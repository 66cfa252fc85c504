// What a failure of an action means. The library's errors are recognized by the names of their classes, because definitions may bring their own
// copy of the library. Everything here must work for any value that code can throw.

import { inspect } from 'node:util'
import type { FailureCode, StepResult } from './integration.ts'
import type { OpenRequest } from './recording/open-request.ts'
import type { RunTrace } from './recording/run-trace.ts'

const MAX_MESSAGE_CHARS = 1_000
const MAX_CAUSES = 5

export interface Failure {
  result: StepResult
  /** The tool did not accept the credentials, so a new access token may help. */
  isUnauthorized: boolean
}

/** `position` is one of the messages that failed. */
export function failureOf(error: unknown, trace: RunTrace, position: number): Failure {
  let failure: Failure
  try {
    failure = classified(error, trace, position)
  } catch {
    // A getter or a proxy that throws.
    failure = { result: failed('integration_failed', 'The integration threw a value that cannot be read.'), isUnauthorized: false }
  }
  const { result } = failure
  if (result.kind === 'success') return failure
  const message = trace.scrub(result.message).slice(0, MAX_MESSAGE_CHARS)
  return { ...failure, result: { ...result, message: trace.isPreview ? inPreview(message, trace, position) : message } }
}

function inPreview(message: string, trace: RunTrace, position: number): string {
  if (trace.failedConnection !== null) return `A preview opens no connections, so it cannot show what follows: ${message}`
  return trace.lastRequest(position) === undefined ? message : `The action needs the answer to its last request to go on: ${message}`
}

export function timedOut(): StepResult {
  return failed('timeout', 'The integration did not finish before the deadline.')
}

export function failed(code: FailureCode, message: string): StepResult {
  return { kind: 'failed', code, message }
}

function classified(error: unknown, trace: RunTrace, position: number): Failure {
  const names = classNames(error)
  const message = messageOf(error)
  const status = statusOf(error)
  const isUnauthorized = status === 401
  const last = trace.lastRequest(position)
  const result = ((): StepResult => {
    if (trace.signal.aborted) return timedOut()
    if (names.has('HTTPError') && status !== null)
      return { kind: 'status', status, retryAfter: retryAfterOf(error) ?? last?.retryAfter ?? null, message }
    if (['TimeoutError', 'RequestTimeoutError', 'RequestClientError', 'SelfTimeoutError', 'AbortError'].some((name) => names.has(name)))
      return failed('timeout', message)
    if (names.has('RetryableError')) return retryLater(message, last)
    if (names.has('InvalidAuthenticationError')) return failed('invalid_authentication', message)
    if (['PayloadValidationError', 'InvalidAudienceMembershipError', 'AggregateAjvError'].some((name) => names.has(name)))
      return failed('invalid_payload', message)
    // Many definitions report an outage of the tool as an IntegrationError. The answer, or the lack of one, then says which.
    if (status !== null && isRetried(status)) {
      if (last?.status === status && !isOnlyRetriedHere(status)) return { kind: 'status', status, retryAfter: last.retryAfter, message }
      const code = last === undefined ? trace.failedConnection : last.error
      if (code !== null) return { kind: 'network', code, message }
    }
    if (names.has('APIError') && status !== null && !isOnlyRetriedHere(status))
      return { kind: 'status', status, retryAfter: last?.retryAfter ?? null, message }
    if (names.has('IntegrationError'))
      return status !== null && isRetried(status) ? retryLater(message, last) : failed('integration_failed', message)
    const code = networkCode(error)
    if (code !== null) return { kind: 'network', code, message }
    // The AWS SDK.
    if (status !== null && last?.status === status) return { kind: 'status', status, retryAfter: last.retryAfter, message }
    return failed('integration_failed', message)
  })()
  return { result, isUnauthorized }
}

/** The library's own rule for the status of an IntegrationError. */
function isRetried(status: number): boolean {
  return status === 408 || status === 423 || status === 429 || (status >= 500 && status !== 501)
}

/** The library retries these, and the rules for HTTP answers do not. */
function isOnlyRetriedHere(status: number): boolean {
  return status === 423 || status === 505
}

function retryLater(message: string, last: OpenRequest | undefined): StepResult {
  const retryAfter = last?.retryAfter ?? null
  return { kind: 'failed', code: 'integration_retry', message, ...(retryAfter !== null && { retryAfter }) }
}

interface AnyError {
  message?: unknown
  code?: unknown
  status?: unknown
  name?: unknown
  cause?: unknown
  errors?: unknown
  response?: { status?: unknown; headers?: { get?: (name: string) => unknown } }
  $metadata?: { httpStatusCode?: unknown }
}

/** Of its class and of those that it extends, and the name that it gives itself. */
function classNames(error: unknown): Set<unknown> {
  const names = new Set<unknown>()
  if (error === null || typeof error !== 'object') return names
  names.add((error as AnyError).name)
  for (let prototype = Object.getPrototypeOf(error); prototype !== null; prototype = Object.getPrototypeOf(prototype)) {
    if (typeof prototype.constructor === 'function') names.add(prototype.constructor.name)
  }
  return names
}

function messageOf(error: unknown): string {
  const message = error !== null && typeof error === 'object' ? (error as AnyError).message : error
  if (typeof message === 'string' && message !== '') return message
  const name = error !== null && typeof error === 'object' ? (error as AnyError).name : null
  return typeof name === 'string' && name !== '' ? name : `The integration threw ${inspect(error, { depth: 0 })}, which is not an error.`
}

function statusOf(error: unknown): number | null {
  const { status, response, $metadata } = (error ?? {}) as AnyError
  for (const value of [response?.status, status, $metadata?.httpStatusCode])
    if (typeof value === 'number' && value >= 100 && value < 600) return value
  return null
}

function retryAfterOf(error: unknown): string | null {
  const headers = ((error ?? {}) as AnyError).response?.headers
  const value = typeof headers?.get === 'function' ? headers.get('retry-after') : null
  return typeof value === 'string' ? value.slice(0, 100) : null
}

const NETWORK_CODE =
  /^(E(ADDR|AI_|CONN|HOST|NET|NOTFOUND|PIPE|PROTO|SOCKET|TIMEDOUT)\w*|UND_ERR_\w+|ERR_(ADDRESS_REFUSED|PREVIEW_DIAL|STREAM_PREMATURE_CLOSE|(TLS|SSL|HTTP2|SOCKET)_\w+)|CERT_\w+|Z_\w+_ERROR|HPE_\w+|\w*_(CERT|CERTIFICATE|SIGNATURE)(_\w+)?)$/

/** Of the error, what caused it, or one of the errors that it collects. */
function networkCode(error: unknown, depth = 0): string | null {
  if (error === null || typeof error !== 'object' || depth > MAX_CAUSES) return null
  const { code, cause, errors } = error as AnyError
  if (typeof code === 'string' && NETWORK_CODE.test(code)) return code
  const inner = [cause, ...(Array.isArray(errors) ? errors.slice(0, MAX_CAUSES) : [])]
  for (const each of inner) {
    const found = networkCode(each, depth + 1)
    if (found !== null) return found
  }
  return null
}

/** What the library says about one message of a batch. */
export interface MultiStatus {
  status?: unknown
  errortype?: unknown
  errormessage?: unknown
  body?: unknown
}

/**
 * Some actions report what happened to a single message as they do for a batch, instead of throwing an error. The library does not look at it. Null if
 * the message was accepted.
 */
export function reportedFailure(outputs: unknown, trace: RunTrace, position: number): Failure | null {
  const output: unknown = Array.isArray(outputs) ? (outputs.at(-1) as { data?: unknown } | undefined)?.data : undefined
  if (!classNames(output).has('MultiStatusResponse')) return null
  const response = (output as { getResponseAtIndex(index: number): { value(): MultiStatus } | undefined }).getResponseAtIndex(0)
  return response === undefined ? null : batchFailure(response.value(), trace, position)
}

export function batchFailure(entry: MultiStatus | undefined, trace: RunTrace, position: number): Failure | null {
  const status = entry?.status
  if (typeof status !== 'number')
    return failureOf(new Error('The integration did not report what happened to this message of the batch.'), trace, position)
  if (status >= 200 && status < 300) return null
  const message = typeof entry?.errormessage === 'string' ? entry.errormessage : typeof entry?.body === 'string' ? entry.body : ''
  const type = typeof entry?.errortype === 'string' ? entry.errortype : ''
  const name = BATCH_ERRORS[`${status} ${type}`] ?? BATCH_ERRORS[type] ?? (isOnlyRetriedHere(status) ? 'RetryableError' : 'HTTPError')
  const response = { status }
  return failureOf(
    Object.assign(new Error(message === '' ? `The tool answered ${status} for this message.` : message), { name, response }),
    trace,
    position,
  )
}

/** By the types of errors in a multi-status answer: errors that are thrown for the same reason. */
const BATCH_ERRORS: Readonly<Record<string, string>> = {
  '400 PAYLOAD_VALIDATION_FAILED': 'PayloadValidationError',
  INVALID_AUTHENTICATION: 'InvalidAuthenticationError',
  RETRYABLE_ERROR: 'RetryableError',
  SELF_TIMEOUT: 'SelfTimeoutError',
}
