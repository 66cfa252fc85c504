// The settings: their meaning for people, their defaults, and their limits. Everything is checked once, in the
// constructor, which is the only place where this library throws. A number outside of its limits is adjusted with a
// warning (the public client adjusts without one); only what cannot be interpreted is refused.

import { MAX_BATCH_MESSAGES } from '@switchyard/protocol'
import { platform } from '#platform'
import { AnalyticsError } from './errors.ts'
import type { SpoolLimits, SpoolOptions } from './queue/spool.ts'
import type { HTTPClient, HTTPFetchFn } from './send/http-client.ts'
import { MAX_TIMER_MS } from './timer-limit.ts'

export interface OAuthSettings {
  /** The application's ID. */
  clientId: string
  /** The private key, PKCS#8 in PEM, whose public half was uploaded. */
  clientKey: string
  /** The ID that the public key was given. */
  keyId: string
  /** The authorization server. Default: `host` + `/oauth2`. */
  authServer?: string | undefined
  /** Default: `tracking_api:write`. */
  scope?: string | undefined
  /** Retries of a token request. Default: the client's own `maxRetries`. */
  maxRetries?: number | undefined
  /** Default: the client's own `httpClient`. */
  httpClient?: HTTPClient | HTTPFetchFn | undefined
}

export interface AnalyticsSettings {
  /** Key of the source that messages belong to. */
  writeKey: string
  /** Base URL of the tracking API; it selects the region. Default: `http://localhost:8080`. */
  host?: string | undefined
  /** Path of the tracking API. Default: `/v1/batch`, or `/v1/import` with `historical`. */
  path?: string | undefined
  /**
   * Imports the past: timestamps arrive as they are. No `sentAt` is sent, by which the service would correct them, and a
   * timestamp that is no time is refused instead of taken for now. Default: false.
   */
  historical?: boolean | undefined
  /** Retries of a batch after a temporary failure. Default: 3. `Infinity` retries until it succeeds. */
  maxRetries?: number | undefined
  /** Messages queued before a flush. 1 turns batching off: one message a request. Default: 15. */
  flushAt?: number | undefined
  /** @deprecated Another name of `flushAt`. */
  maxEventsInBatch?: number | undefined
  /** Milliseconds before an automatic flush. Default: 10,000. */
  flushInterval?: number | undefined
  /** Most milliseconds to wait for one HTTP request, from its start. Default: 10,000. */
  httpRequestTimeout?: number | undefined
  /** Take calls but send nothing: for tests. Default: false. */
  disable?: boolean | undefined
  /** Your own HTTP: a fetch-like function, or an object with `makeRequest`. */
  httpClient?: HTTPClient | HTTPFetchFn | undefined
  /** Authenticate with OAuth 2.0 instead of the write key alone. */
  oauthSettings?: OAuthSettings | undefined
  /** Most requests under way at once. Default: 8. */
  maxInFlight?: number | undefined
  /** Most bytes of messages held; what does not fit is an error, `queue_full`. Default: 768 MiB, or a quarter of memory if that is less. */
  maxQueueBytes?: number | undefined
  /** Bytes above which calls return false. Default: 16 MiB, and at most half of `maxQueueBytes` and of the spool. */
  highWaterMarkBytes?: number | undefined
  /** Compress requests. Refused with a custom `httpClient`, which is given text. Default: false. */
  gzip?: boolean | undefined
  /** Keep queued messages on disk, so that a killed process delivers them at its next start. */
  spool?: SpoolOptions | undefined
  /** Drain on SIGTERM and SIGINT before the process ends. Default: false. */
  handleSignals?: boolean | undefined
  /** Most seconds from a batch's first request to its last retry, even if `maxRetries` is not reached. Default: 43,200 (12 hours). */
  maxTotalBackoffDuration?: number | undefined
  /** Most seconds that a batch waits because the service answers with Retry-After; then it has failed. Default: 43,200 (12 hours). */
  maxRateLimitDuration?: number | undefined
}

export interface CheckedSettings {
  writeKey: string
  host: string
  url: string
  historical: boolean
  maxRetries: number
  flushAt: number
  flushIntervalMs: number
  requestTimeoutMs: number
  disable: boolean
  httpClient: HTTPClient | HTTPFetchFn | undefined
  oauth: (OAuthSettings & { authServer: string }) | undefined
  maxInFlight: number
  maxQueueBytes: number
  highWaterBytes: number
  gzip: boolean
  spool: SpoolLimits | undefined
  handleSignals: boolean
  maxBackoffMs: number
  maxRateLimitMs: number
}

const MIB = 1024 * 1024
const DEFAULT_HOST = 'http://localhost:8080'
const TWELVE_HOURS_S = 43_200
const DEFAULT_TIMEOUT_MS = 10_000

export function checkSettings(settings: AnalyticsSettings): CheckedSettings {
  if (typeof settings !== 'object' || settings === null) refuse('settings', 'must be an object with a writeKey')
  const { writeKey } = settings
  if (typeof writeKey !== 'string' || writeKey === '') refuse('writeKey', 'is required: it is the key of your source')
  if (/[\r\n\0]/.test(writeKey)) refuse('writeKey', 'has a line break in it')
  const host = baseUrl('host', settings.host ?? DEFAULT_HOST)
  const historical = settings.historical === true
  const path = settings.path ?? (historical ? '/v1/import' : '/v1/batch')
  if (typeof path !== 'string') refuse('path', 'must be a string')
  const number = (name: keyof AnalyticsSettings, fallback: number, least: number, instead?: number): number =>
    numberOf(name, settings[name], fallback, least, instead)
  const flushAt = settings.flushAt == null ? number('maxEventsInBatch', 15, 1) : number('flushAt', 15, 1)
  const maxQueueBytes = number('maxQueueBytes', defaultQueueBytes(), 1)
  const spool = checkSpool(settings.spool)
  const { httpClient } = settings
  if (httpClient !== undefined && typeof httpClient !== 'function' && typeof httpClient?.makeRequest !== 'function') {
    refuse('httpClient', 'must be a function like fetch, or an object with makeRequest')
  }
  if (settings.gzip === true && httpClient !== undefined) refuse('gzip', 'cannot be used with a custom httpClient, which is given text')
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
    // Well below what is refused, so that a caller who heeds `false` is never refused.
    highWaterBytes: Math.min(number('highWaterMarkBytes', 16 * MIB, 0), maxQueueBytes / 2, (spool?.maxBytes ?? Infinity) / 2),
    gzip: settings.gzip === true,
    spool,
    handleSignals: settings.handleSignals === true,
    maxBackoffMs: number('maxTotalBackoffDuration', TWELVE_HOURS_S, 0) * 1000,
    maxRateLimitMs: number('maxRateLimitDuration', TWELVE_HOURS_S, 0) * 1000,
  }
}

/** A value below `least` is replaced by `instead`, which is `least` by default. */
function numberOf(name: string, given: unknown, fallback: number, least: number, instead = least): number {
  const value = given ?? fallback
  // Settings often come from environment variables, which are strings.
  const parsed = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  if (typeof parsed !== 'number' || Number.isNaN(parsed)) refuse(name, `must be a number of at least ${least}, but is ${shown(value)}`)
  const used = parsed < least ? instead : parsed
  if (used !== value) warnOnce(`${name} must be a number of at least ${least}, but is ${shown(value)}; the client uses ${used}`)
  return used
}

const warned = new Set<string>()

/** Once per process, because some programs create a client for each request. */
function warnOnce(text: string): void {
  if (warned.has(text)) return
  warned.add(text)
  platform.warn(text)
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `of type ${typeof value}`
}

/** Room for a million calls of a tight loop, unless the machine is small. */
function defaultQueueBytes(): number {
  const memory = platform.memoryLimitBytes()
  return memory === undefined ? 64 * MIB : Math.min(768 * MIB, Math.trunc(memory / 4))
}

function baseUrl(setting: string, text: string): string {
  let url: URL | undefined
  try {
    url = new URL(text)
  } catch {
    // Told below, as for any other text that is not such a URL.
  }
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') refuse(setting, 'must be an http or https URL')
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

function checkOAuth(oauth: OAuthSettings | undefined, host: string): CheckedSettings['oauth'] {
  if (oauth === undefined) return undefined
  for (const name of ['clientId', 'clientKey', 'keyId'] as const) {
    if (typeof oauth?.[name] !== 'string' || oauth[name] === '') refuse(`oauthSettings.${name}`, 'is required')
  }
  return {
    ...oauth,
    authServer: oauth.authServer === undefined ? `${host}/oauth2` : baseUrl('oauthSettings.authServer', oauth.authServer),
    maxRetries: oauth.maxRetries == null ? undefined : numberOf('oauthSettings.maxRetries', oauth.maxRetries, 0, 0),
  }
}

function checkSpool(spool: SpoolOptions | undefined): SpoolLimits | undefined {
  if (spool === undefined) return undefined
  if (typeof spool?.dir !== 'string' || spool.dir === '') refuse('spool.dir', 'must be the path of a folder')
  return { dir: spool.dir, maxBytes: numberOf('spool.maxBytes', spool.maxBytes, 64 * MIB, 1) }
}

function refuse(setting: string, problem: string): never {
  throw new AnalyticsError('invalid_settings', `${setting} ${problem}`, { field: setting })
}
