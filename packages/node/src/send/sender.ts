// Takes batches from the queue and sends them, with a limited number of concurrent requests, a timeout for each request, and
// retries after temporary failures. A batch that waits for a retry still counts as in flight, so that a service in trouble gets
// fewer requests, not more. Every batch is settled exactly once.

import { platform } from '#platform'
import { AnalyticsError, messageOf } from '../call/errors.ts'
import type { Answer, Transport } from '../http/transport.ts'
import { type Batch, jsonBytes, writeJson } from '../queue/batch.ts'
import type { CheckedSettings } from '../settings.ts'
import { USER_AGENT } from '../version.ts'
import type { TokenSource } from './oauth.ts'
import { backoffMs, judge, type Rejection, type ResponseVerdict, type RetryEvent, SHORTEST_BACKOFF_MS } from './verdict.ts'

export interface HttpRequestEvent {
  url: string
  method: string
  headers: Record<string, string>
  body: string
}

export interface HttpResponseEvent {
  url: string
  status: number
  statusText: string
  headers: Record<string, string>
  body: string
}

export interface BatchResult {
  attempts: number
  /** Why the whole batch failed; undefined if it was delivered. */
  error: AnalyticsError | undefined
  /** Messages of the batch that the service rejected individually. */
  rejected: Rejection[]
}

export interface SenderOptions {
  settings: CheckedSettings
  transport: Transport
  token: TokenSource | undefined
  /** Takes the next batch to send; `freeSlots` is the number of requests that can be started now. */
  take: (freeSlots: number) => Batch | undefined
  settle: (batch: Batch, result: BatchResult) => void
  /** Returns undefined if the event has no listener, so that bodies are not decoded in vain. */
  onRequest: () => ((event: HttpRequestEvent) => void) | undefined
  onResponse: () => ((event: HttpResponseEvent) => void) | undefined
  onRetry: (event: RetryEvent) => void
}

const HEAD = platform.encode('{"batch":[')
/**
 * Under a backlog, requests have about this size, and the memory of a finished one is used again for the next. V8 would free it late, and
 * a million messages would need 64 MB more. For smaller bodies, this would save too little.
 */
const LARGE_BODY_BYTES = { from: 32 * 1024, to: 80 * 1024 }

export class Sender {
  readonly #options: SenderOptions
  readonly #tail: string
  readonly #basicAuth: string
  readonly #timers = new Map<ReturnType<typeof setTimeout>, () => void>()
  #inFlight = 0
  #holds = 0
  #waking = false
  #stopped = false
  #closing = false
  /** Nothing is sent before this time, because the service asked for a pause. */
  #pausedUntil = 0
  /** Memory of finished requests, for large bodies. */
  #spare: Uint8Array[] = []

  constructor(options: SenderOptions) {
    this.#options = options
    const { writeKey } = options.settings
    this.#tail = `],"writeKey":${JSON.stringify(writeKey)}`
    this.#basicAuth = `Basic ${platform.base64(platform.encode(`${writeKey}:`), 'base64')}`
  }

  /** Maximum size of a request body without its messages. */
  static envelopeBytes(writeKey: string): number {
    return platform.byteLength(`{"batch":[],"writeKey":${JSON.stringify(writeKey)},"sentAt":"2026-11-14T09:00:00.000Z"}`)
  }

  /** Starts sending if there is a batch. Deferred until the caller's current code has finished, so that calls do not block. */
  wake(): void {
    if (this.#waking) return
    this.#waking = true
    queueMicrotask(() => {
      this.#waking = false
      this.#pump()
    })
  }

  /** Stops sending while plugins load, until resume() was called as often as hold(). */
  hold(): void {
    this.#holds++
  }

  resume(): void {
    this.#holds--
    this.wake()
  }

  /** From now on, a batch waits out one pause that the service asks for; more of them count as retries, so that closing ends. */
  closing(): void {
    this.#closing = true
  }

  /** Stops sending: waits end, and queued batches are settled as not sent. Requests in flight end when the transports are closed. */
  stop(): void {
    this.#stopped = true
    for (const [timer, resolve] of this.#timers) {
      clearTimeout(timer)
      resolve()
    }
    this.#timers.clear()
    for (let batch = this.#options.take(1); batch; batch = this.#options.take(1)) this.#options.settle(batch, notSent(0))
  }

  /** Waits. Resolves to false if the sender was stopped meanwhile. */
  pause(ms: number): Promise<boolean> {
    if (this.#stopped) return Promise.resolve(false)
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer)
        resolve(true)
      }, ms)
      this.#timers.set(timer, () => resolve(false))
    })
  }

  #pump(): void {
    const { maxInFlight } = this.#options.settings
    while (!this.#stopped && this.#holds === 0 && this.#inFlight < maxInFlight) {
      const batch = this.#options.take(maxInFlight - this.#inFlight)
      if (!batch) return
      this.#inFlight++
      void this.#deliver(batch)
        .catch(unexpectedFailure)
        .then((result) => {
          this.#inFlight--
          // Before settling, so that the slot is freed even if that throws.
          this.wake()
          this.#options.settle(batch, result)
        })
    }
  }

  async #deliver(batch: Batch): Promise<BatchResult> {
    const { maxRetries, maxBackoffMs, maxRateLimitMs } = this.#options.settings
    const startedAt = performance.now()
    let retries = 0
    let tokenRenewed = false
    let pausedWhileClosing = false
    /** The time at which the batch has used up maxRateLimitDuration. */
    let pauseLimitAt: number | undefined
    let lastError: AnalyticsError | undefined
    for (let attempts = 1; ; attempts++) {
      if (this.#pausedUntil > performance.now()) {
        pauseLimitAt ??= performance.now() + maxRateLimitMs
        if (!(await this.#waitOutPause(pauseLimitAt))) {
          return { attempts: attempts - 1, error: lastError ?? pausedTooLong(maxRateLimitMs), rejected: [] }
        }
      }
      if (this.#stopped) return notSent(attempts - 1)
      const { verdict, token } = await this.#attempt(batch, attempts)
      if (this.#stopped && verdict.kind !== 'delivered') return notSent(attempts)
      switch (verdict.kind) {
        case 'delivered':
          return { attempts, error: undefined, rejected: verdict.rejected }
        case 'rejected':
          return { attempts, error: verdict.error, rejected: verdict.rejected }
        case 'unauthorized':
          if (token === undefined || tokenRenewed) return { attempts, error: verdict.error, rejected: [] }
          this.#options.token?.discard(token)
          tokenRenewed = true
          break
        case 'temporary': {
          const now = performance.now()
          const { error, retryAfterMs } = verdict
          lastError = error
          if (retryAfterMs !== undefined) {
            this.#pausedUntil = Math.max(this.#pausedUntil, now + retryAfterMs)
            pauseLimitAt ??= now + maxRateLimitMs
          }
          // A pause that the service asks for is not a failure of the batch and does not count as a retry.
          const isFree = retryAfterMs !== undefined && !(this.#closing && pausedWhileClosing)
          if (retryAfterMs !== undefined && this.#closing) pausedWhileClosing = true
          const leftMs = startedAt + maxBackoffMs - now
          // The last delay is shortened, but not so far that the retry follows at once.
          if (!isFree && (retries >= maxRetries || leftMs < SHORTEST_BACKOFF_MS)) return { attempts, error, rejected: [] }
          if (!isFree) retries++
          if (retryAfterMs !== undefined) {
            // If the pause is longer than the batch may wait, there will be no retry.
            if (this.#pausedUntil <= (pauseLimitAt ?? Infinity)) this.#options.onRetry({ error, attempts, waitMs: retryAfterMs })
            break
          }
          const waitMs = Math.min(backoffMs(retries - 1, Math.random()), leftMs)
          this.#options.onRetry({ error, attempts, waitMs })
          await this.pause(waitMs)
        }
      }
    }
  }

  /** Includes the time of this attempt, with which the service corrects the client's clock, except for historical imports. */
  #body(batch: Batch): { memory: Uint8Array; body: Uint8Array } {
    const sentAt = this.#options.settings.historical ? '' : `,"sentAt":"${new Date().toISOString()}"`
    const tail = platform.encode(`${this.#tail}${sentAt}}`)
    // The tail takes the place of the comma after the last message.
    const tailAt = HEAD.length + jsonBytes(batch) - 1
    const size = tailAt + tail.length
    const isLarge = size >= LARGE_BODY_BYTES.from && size <= LARGE_BODY_BYTES.to
    const memory = isLarge ? (this.#spare.pop() ?? platform.allocate(LARGE_BODY_BYTES.to)) : platform.allocate(size)
    memory.set(HEAD)
    writeJson(batch, memory, HEAD.length)
    memory.set(tail, tailAt)
    return { memory, body: memory.subarray(0, size) }
  }

  /** Waits for the end of the pause. Resolves to false if the limit is reached first. */
  async #waitOutPause(limitAt: number): Promise<boolean> {
    while (!this.#stopped) {
      const now = performance.now()
      if (this.#pausedUntil <= now) return true
      if (limitAt <= now) return false
      await this.pause(Math.min(this.#pausedUntil, limitAt) - now)
    }
    return true
  }

  async #attempt(batch: Batch, attempts: number): Promise<{ verdict: ResponseVerdict; token: string | undefined }> {
    const { settings, transport, onRequest, onResponse } = this.#options
    let token: string | undefined
    try {
      token = await this.#options.token?.get()
    } catch (error) {
      // The token request has failed after its own retries, so the batch is not retried.
      const failure = error instanceof AnalyticsError ? error : new AnalyticsError('oauth_failure', messageOf(error), { reason: error })
      return { verdict: { kind: 'rejected', error: failure, rejected: [] }, token: undefined }
    }
    const headers: Record<string, string> = {
      'Content-Type': 'application/json',
      'User-Agent': USER_AGENT,
      Authorization: token === undefined ? this.#basicAuth : `Bearer ${token}`,
    }
    if (attempts > 1) headers['X-Retry-Count'] = String(attempts - 1)
    const { memory, body: plain } = this.#body(batch)
    const bodyText = (): string => platform.decode(plain)
    onRequest()?.({ url: settings.url, method: 'POST', headers, body: bodyText() })
    let answer: Answer
    try {
      if (settings.gzip) headers['Content-Encoding'] = 'gzip'
      const body = settings.gzip ? await platform.gzip(plain) : plain
      answer = await transport.send({ url: settings.url, headers, body, bodyText, timeoutMs: settings.requestTimeoutMs })
      if (answer.isBodyFree && memory.length === LARGE_BODY_BYTES.to) this.#spare.push(memory)
    } catch (error) {
      const failure = new AnalyticsError('delivery_failure', `the request to the tracking API failed: ${withCause(error)}`, {
        reason: error,
      })
      return { verdict: { kind: 'temporary', error: failure, retryAfterMs: undefined }, token }
    }
    const { status, statusText, text } = answer
    onResponse()?.({ url: settings.url, status, statusText, headers: answer.headers, body: text })
    return { verdict: judge(answer, Date.now()), token }
  }
}

/** The message of a fetch error says only that it failed; the reason is in its cause. */
function withCause(error: unknown): string {
  const cause = (error as { cause?: { message?: unknown; code?: unknown } } | null | undefined)?.cause
  const why = cause?.message || cause?.code
  return typeof why === 'string' ? `${messageOf(error)}: ${why}` : messageOf(error)
}

/** Reports an unexpected error, caused by a bug here or in a custom HTTP client, as a failure of the batch. */
function unexpectedFailure(error: unknown): BatchResult {
  return {
    attempts: 1,
    error: new AnalyticsError('delivery_failure', `sending failed: ${messageOf(error)}`, { reason: error }),
    rejected: [],
  }
}

/** The error of a batch that was never sent, because the service asked for a pause in its response to another batch. */
function pausedTooLong(limitMs: number): AnalyticsError {
  const message = `the tracking API asked for a longer pause (Retry-After) than maxRateLimitDuration allows (${limitMs / 1000} s)`
  return new AnalyticsError('delivery_failure', message)
}

function notSent(attempts: number): BatchResult {
  return {
    attempts,
    error: new AnalyticsError('close_timeout', 'the client was closed before the message could be delivered'),
    rejected: [],
  }
}
