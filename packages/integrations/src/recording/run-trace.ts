// What one run of an action leaves behind: its requests and its log lines. The context that Node.js carries through promises and callbacks says to
// which run, and to which of its messages, a request belongs. Secrets are removed from everything that it returns.

import { AsyncLocalStorage } from 'node:async_hooks'
import type { RecordedRequest } from '../integration.ts'
import { answerText } from './answer-text.ts'
import type { OpenRequest } from './open-request.ts'
import { HIDDEN, hiddenHeaders, hiddenUrl, Scrubber } from './scrub.ts'

/** An action may make any number of requests; the attempt keeps this many. */
const MAX_REQUESTS = 50
const MAX_LOG_CHARS = 2_048
const MAX_ANSWER_BYTES = 4_096
const MAX_BODY_BYTES = 64 * 1024
/** The token service of AWS. Its answers are credentials, so none is kept. hide() alone is too late if the run ends before it has read the answer. */
const CREDENTIALS_HOST = /^sts(-fips)?\.([\w-]+\.)?(amazonaws\.com(\.cn)?|api\.aws)$/i

export interface RunContext {
  trace: RunTrace
  /** The messages that the code in this context works for. */
  positions: readonly number[]
}

export const runs = new AsyncLocalStorage<RunContext>()

export interface TraceOptions {
  signal: AbortSignal
  isPreview: boolean
  /** Whether headers and bodies are recorded. */
  isDetailed: boolean
  /** Whether new access tokens may be requested. */
  renewsTokens: boolean
  scrubber: Scrubber
}

export class RunTrace {
  readonly signal: AbortSignal
  readonly isPreview: boolean
  readonly isDetailed: boolean
  readonly renewsTokens: boolean
  readonly #scrubber: Scrubber
  /** The scrubber of the settings lives as long as the destination, so secrets of a single run are kept apart. */
  readonly #ownSecrets = new Scrubber()
  readonly #requests: OpenRequest[] = []
  readonly #abort = new Set<() => void>()
  #omitted = 0
  #logs = ''
  #isOver = false
  /** The code of the last connection that failed, of any protocol. */
  failedConnection: string | null = null

  constructor(options: TraceOptions) {
    this.signal = options.signal
    this.isPreview = options.isPreview
    this.isDetailed = options.isDetailed
    this.renewsTokens = options.renewsTokens
    this.#scrubber = options.scrubber
  }

  /** The request that decides if an error repeats what was answered: the last one for a message. */
  lastRequest(position: number): OpenRequest | undefined {
    for (let index = this.#requests.length - 1; index >= 0; index--) {
      if (this.#requests[index]?.positions.includes(position) === true) return this.#requests[index]
    }
    return undefined
  }

  /** `abort` ends the request when the deadline is over. Null if this run records no more. */
  open(positions: readonly number[], method: string, url: string, abort: () => void): OpenRequest | null {
    if (this.#isOver) return null
    this.#abort.add(abort)
    if (this.#requests.length === MAX_REQUESTS) {
      this.#omitted++
      return null
    }
    const request: OpenRequest = {
      positions,
      method,
      url,
      startedAtMs: Date.now(),
      startedAt: performance.now(),
      totalMs: null,
      status: null,
      retryAfter: null,
      error: null,
      answer: [],
      answerBytes: 0,
      answerEncoding: undefined,
      headers: null,
      body: [],
      bodyBytes: 0,
    }
    this.#requests.push(request)
    return request
  }

  log(line: string): void {
    // Cut only after the secrets are removed, so that no part of one stays at the end.
    if (!this.#isOver && this.#logs.length <= MAX_LOG_CHARS) this.#logs += `${this.scrub(line)}\n`
  }

  /** Hides a secret that the run was given by a service, such as temporary credentials. */
  hide(secret: string): void {
    this.#ownSecrets.add(secret)
  }

  scrub(text: string): string {
    return this.#ownSecrets.text(this.#scrubber.text(text))
  }

  /** Ends every request that is still open. */
  abortRequests(): void {
    for (const abort of this.#abort) abort()
  }

  /** Nothing is recorded after this. */
  finish(): { requests: RecordedRequest[]; logs: string | null } {
    this.#isOver = true
    const requests = this.#requests.map((request) => this.#recorded(request))
    // A connection that stays open keeps this object.
    this.#requests.length = 0
    this.#abort.clear()
    const note = this.#omitted === 0 ? '' : `${this.#omitted} more requests were made but not recorded.\n`
    const logs = `${note}${this.#logs.slice(0, MAX_LOG_CHARS)}`.trimEnd()
    return { requests, logs: logs === '' ? null : logs }
  }

  #recorded(request: OpenRequest): RecordedRequest {
    const answer = isCredentials(request) ? HIDDEN : answerText(request)
    return {
      positions: request.positions,
      method: request.method,
      url: this.scrub(hiddenUrl(request.url)),
      startedAtMs: request.startedAtMs,
      totalMs: Math.round((request.totalMs ?? performance.now() - request.startedAt) * 10) / 10,
      status: request.status,
      error: request.error,
      responseStart: answer === null ? null : startOf(this.scrub(answer), MAX_ANSWER_BYTES),
      headers: request.headers === null ? null : hiddenHeaders(request.headers, (text) => this.scrub(text)),
      body: this.isDetailed ? startOf(this.scrub(Buffer.concat(request.body).toString('utf8')), MAX_BODY_BYTES) : null,
    }
  }
}

function isCredentials({ url, status }: OpenRequest): boolean {
  // Parsing every URL would cost more than the rest of recording it.
  if (status === null || status >= 400 || !/sts/i.test(url)) return false
  return URL.canParse(url) && CREDENTIALS_HOST.test(new URL(url).hostname)
}

/** Without half of a character at the end. */
function startOf(text: string, bytes: number): string {
  if (text.length * 3 <= bytes) return text
  return new TextDecoder().decode(Buffer.from(text).subarray(0, bytes), { stream: true })
}
