// The settings, their defaults and their limits. They are checked once, in the constructor, which is the only place where
// this library throws. A number below its minimum is adjusted with a warning (the public client adjusts it without one);
// only a value that cannot be interpreted is rejected.

import { MAX_BATCH_MESSAGES } from '@switchyard/protocol'
import { platform } from '#platform'
import { AnalyticsError } from './call/errors.ts'
import type { HTTPClient, HTTPFetchFn } from './http/http-client.ts'
import type { SpoolLimits, SpoolOptions } from './spool.ts'
import { MAX_TIMER_MS } from './timer-limit.ts'

export interface OAuthSettings {
  /** ID of the OAuth application. */
  clientId: string
  /** Private key in PEM format (PKCS#8). Its public key must be uploaded to the authorization server. */
  clientKey: string
  /** ID of the uploaded public key. */
  keyId: string
  /** Base URL of the authorization server. Default: `host` + `/oauth2`. */
  authServer?: string | undefined
  /** OAuth scope to request. Default: `tracking_api:write`. */
  scope?: string | undefined
  /** Maximum number of retries of a token request. Default: the client's `maxRetries`. */
  maxRetries?: number | undefined
  /** HTTP client for token requests. Default: the client's `httpClient`. */
  httpClient?: HTTPClient | HTTPFetchFn | undefined
}

export interface AnalyticsSettings {
  /** Write key of the source that the messages belong to. */
  writeKey: string
  /** Base URL of the tracking API; it selects the region. Default: `http://localhost:8080`. */
  host?: string | undefined
  /** Path of the tracking API. Default: `/v1/batch`, or `/v1/import` with `historical`. */
  path?: string | undefined
  /**
   * Set this to import past events with their timestamps unchanged: the client sends no `sentAt`, which the service would use
   * to correct them, and rejects a message whose timestamp is invalid instead of using the current time. Default: false.
   */
  historical?: boolean | undefined
  /** Maximum number of retries of a batch after a temporary failure. `Infinity` retries until it succeeds. Default: 3. */
  maxRetries?: number | undefined
  /** Number of queued messages that triggers a flush. 1 turns batching off: each request contains one message. Default: 15. */
  flushAt?: number | undefined
  /** @deprecated Use `flushAt`. */
  maxEventsInBatch?: number | undefined
  /** Maximum time in milliseconds that a message waits before it is flushed automatically. Default: 10,000. */
  flushInterval?: number | undefined
  /** Timeout of one HTTP request in milliseconds, from its start to the last byte of the response. Default: 10,000. */
  httpRequestTimeout?: number | undefined
  /** Accept calls but send nothing: for tests. Default: false. */
  disable?: boolean | undefined
  /** A custom HTTP client: a function with the signature of fetch, or an object with a `makeRequest` method. */
  httpClient?: HTTPClient | HTTPFetchFn | undefined
  /** Authenticate with OAuth 2.0 instead of the write key alone. */
  oauthSettings?: OAuthSettings | undefined
  /** Maximum number of concurrent requests. Default: 8. */
  maxInFlight?: number | undefined
  /** Maximum size of the queue in bytes. A message that does not fit fails with `queue_full`. Default: 768 MiB, or a quarter of memory if that is less. */
  maxQueueBytes?: number | undefined
  /** Size of the queue in bytes above which calls return false. Default: 16 MiB; at most half of `maxQueueBytes` and of `spool.maxBytes`. */
  highWaterMarkBytes?: number | undefined
  /** Compress requests with gzip. Cannot be combined with a custom `httpClient`, which receives the body as text. Default: false. */
  gzip?: boolean | undefined
  /** Keep queued messages on disk, so that a process that was killed delivers them when it starts again. */
  spool?: SpoolOptions | undefined
  /** Send all queued messages on SIGTERM and SIGINT before the process ends, for at most ten seconds. Default: false. */
  handleSignals?: boolean | undefined
  /** Maximum time in seconds from a batch's first request to its last retry, even if `maxRetries` is not reached. Default: 43,200 (12 hours). */
  maxTotalBackoffDuration?: number | undefined
  /** Maximum time in seconds that a batch waits because the service responds with Retry-After; after that, the batch fails. Default: 43,200 (12 hours). */
  maxRateLimitDuration?: number | undefined
}

export type CheckedSettings = ReturnType<typeof checkSettings>

const MIB = 1024 * 1024
const DEFAULT_HOST = 'http://localhost:8080'
const TWELVE_HOURS_S = 43_200
const DEFAULT_TIMEOUT_MS = 10_000

export function checkSettings(settings: AnalyticsSettings) {
  if (typeof settings !== 'object' || settings === null) reject('settings', 'must be an object with a writeKey')
  const { writeKey } = settings
  if (typeof writeKey !== 'string' || writeKey === '') reject('writeKey', 'is required: pass the write key of your source')
  if (/[\r\n\0]/.test(writeKey)) reject('writeKey', 'must not contain a line break or NUL character')
  const host = baseUrl('host', settings.host ?? DEFAULT_HOST)
  const historical = settings.historical === true
  const path = settings.path ?? (historical ? '/v1/import' : '/v1/batch')
  if (typeof path !== 'string') reject('path', 'must be a string')
  const number = (name: keyof AnalyticsSettings, fallback: number, min: number, instead?: number): number =>
    numberOf(name, settings[name], fallback, min, instead)
  const flushAt = settings.flushAt == null ? number('maxEventsInBatch', 15, 1) : number('flushAt', 15, 1)
  const maxQueueBytes = number('maxQueueBytes', defaultQueueBytes(), 1)
  const spool = checkSpool(settings.spool)
  const { httpClient } = settings
  if (httpClient !== undefined && typeof httpClient !== 'function' && typeof httpClient?.makeRequest !== 'function') {
    reject('httpClient', 'must be a function with the signature of fetch, or an object with a makeRequest method')
  }
  if (settings.gzip === true && httpClient !== undefined) {
    reject('gzip', 'cannot be combined with a custom httpClient, which receives the body as text; remove one of the two settings')
  }
  return {
    writeKey,
    host,
    url: host + (path.startsWith('/') ? path : `/${path}`),
    historical,
    maxRetries: number('maxRetries', 3, 0),
    flushAt: Math.min(Math.trunc(flushAt), MAX_BATCH_MESSAGES),
    flushIntervalMs: Math.min(number('flushInterval', 10_000, 0), MAX_TIMER_MS),
    requestTimeoutMs: Math.min(number('httpRequestTimeout', DEFAULT_TIMEOUT_MS, 1, DEFAULT_TIMEOUT_MS), MAX_TIMER_MS),
    disable: settings.disable === true,
    httpClient,
    oauth: checkOAuth(settings.oauthSettings, host),
    maxInFlight: Math.trunc(number('maxInFlight', 8, 1)),
    maxQueueBytes,
    // Far below the limits, so that a caller who waits for `drained` after `false` never gets queue_full.
    highWaterBytes: Math.min(number('highWaterMarkBytes', 16 * MIB, 0), maxQueueBytes / 2, (spool?.maxBytes ?? Infinity) / 2),
    gzip: settings.gzip === true,
    spool,
    handleSignals: settings.handleSignals === true,
    maxBackoffMs: number('maxTotalBackoffDuration', TWELVE_HOURS_S, 0) * 1000,
    maxRateLimitMs: number('maxRateLimitDuration', TWELVE_HOURS_S, 0) * 1000,
  }
}

/** Returns the number that was set. Replaces one below `min` by `instead`, which defaults to `min`, and warns. */
function numberOf(name: string, given: unknown, fallback: number, min: number, instead = min): number {
  const value = given ?? fallback
  // Settings often come from environment variables, which are strings.
  const parsed = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  if (typeof parsed !== 'number' || Number.isNaN(parsed)) reject(name, `must be a number of at least ${min}, but is ${display(value)}`)
  const used = parsed < min ? instead : parsed
  if (used !== value) warnOnce(`${name} must be a number of at least ${min}, but is ${display(value)}; using ${used} instead`)
  return used
}

const warned = new Set<string>()

/** Prints each warning once per process, because some programs create a client for each request. */
function warnOnce(text: string): void {
  if (warned.has(text)) return
  warned.add(text)
  platform.warn(text)
}

function display(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `of type ${typeof value}`
}

/** Enough for a million calls in a tight loop, unless the machine has little memory. */
function defaultQueueBytes(): number {
  const memory = platform.memoryLimitBytes()
  return memory === undefined ? 64 * MIB : Math.min(768 * MIB, Math.trunc(memory / 4))
}

function baseUrl(setting: string, text: string): string {
  let url: URL | undefined
  try {
    url = new URL(text)
  } catch {
    // Rejected below, like a URL with another protocol.
  }
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    reject(setting, `must be an http or https URL, but is ${display(withoutCredentials(text))}`)
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

/** Errors end up in logs, which must not contain passwords. */
function withoutCredentials(text: unknown): unknown {
  return typeof text === 'string' ? text.replace(/[^/\s]*@/g, '…@') : text
}

function checkOAuth(oauth: OAuthSettings | undefined, host: string): (OAuthSettings & { authServer: string }) | undefined {
  if (oauth === undefined) return undefined
  for (const name of ['clientId', 'clientKey', 'keyId'] as const) {
    if (typeof oauth?.[name] !== 'string' || oauth[name] === '')
      reject(`oauthSettings.${name}`, 'is required and must be a non-empty string')
  }
  return {
    ...oauth,
    authServer: oauth.authServer === undefined ? `${host}/oauth2` : baseUrl('oauthSettings.authServer', oauth.authServer),
    maxRetries: oauth.maxRetries == null ? undefined : numberOf('oauthSettings.maxRetries', oauth.maxRetries, 0, 0),
  }
}

function checkSpool(spool: SpoolOptions | undefined): SpoolLimits | undefined {
  if (spool === undefined) return undefined
  if (typeof spool?.dir !== 'string' || spool.dir === '') reject('spool.dir', 'is required and must be the path of a folder')
  return { dir: spool.dir, maxBytes: numberOf('spool.maxBytes', spool.maxBytes, 64 * MIB, 1) }
}

function reject(setting: string, problem: string): never {
  throw new AnalyticsError('invalid_settings', `${setting} ${problem}`, { field: setting })
}
