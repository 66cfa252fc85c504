// The function `request` that an action gets, instead of the library's, which builds several requests of node-fetch and passes each answer through
// several streams. What is sent, what an action gets back and what is thrown are the same. Requests with options that are not known here are made
// by the library's own function.

import { type Answered, exchange } from './exchange.ts'
import { type FetchRequest, type FetchResponse, type LibraryClient, libraryRequests } from './library-requests.ts'
import { type Outgoing, OwnTimeout } from './node-request.ts'
import { completed, type HeaderMap, mergedHeaders, sorted } from './request-headers.ts'
import { requestTarget } from './request-target.ts'

type Options = Readonly<Record<string, unknown>>

const KNOWN = new Set(
  [
    ['method', 'headers', 'json', 'body', 'searchParams', 'username', 'password'],
    ['throwHttpErrors', 'timeout', 'skipResponseCloning', 'responseType', 'statsContext', 'signal'],
  ].flat(),
)
const BASE_HEADERS = { 'user-agent': 'Segment (Actions)' }

export interface Prepared extends Outgoing {
  options: Options
}

/** `own` are the options that the definition adds to all requests, `shared` those of the run. */
export function requestClient(own: Options, shared: Options, createLibraryClient: () => LibraryClient): LibraryClient {
  return (url, options = {}) => {
    const prepared = preparedRequest(url, [own, shared, options as Options])
    return prepared === null ? createLibraryClient()(url, options) : executed(prepared)
  }
}

/** Null if the library has to make the request. */
export function preparedRequest(url: unknown, levels: readonly Options[]): Prepared | null {
  const merged = mergedOptions(levels)
  if (merged === null) return null
  const { username, password, signal } = merged
  const method = methodOf(merged['method'])
  const timeoutMs = timeoutOf(merged)
  const target = requestTarget(addressOf(url, merged['searchParams']) ?? '')
  const headers = mergedHeaders([BASE_HEADERS, ...levels.map((level) => level['headers'])])
  if (method === null || timeoutMs === undefined || target === null || headers === null) return null
  if (!(signal instanceof AbortSignal) || signal.aborted) return null
  const body = bodyOf(merged)
  if (body === null || (body.bytes !== null && (method === 'GET' || method === 'HEAD'))) return null
  const isBasic = Boolean(username) || Boolean(password)
  const all = isBasic ? withBasicAuth(headers, username, password) : headers
  if (all === null) return null
  addContentType(all, body, isBasic)
  const options = { ...merged, method, throwHttpErrors: merged['throwHttpErrors'] !== false, timeout: timeoutMs ?? false }
  return { target, method, headers: completed(all, method, body.bytes?.length ?? null), body: body.bytes, signal, timeoutMs, options }
}

function mergedOptions(levels: readonly unknown[]): Options | null {
  const merged: Record<string, unknown> = {}
  for (const level of levels) {
    if (typeof level !== 'object' || level === null || Object.getPrototypeOf(level) !== Object.prototype) return null
    for (const [key, value] of Object.entries(level)) {
      // The library merges objects of several levels, property by property.
      if (!KNOWN.has(key) || (key !== 'headers' && typeof value === 'object' && value !== null && key in merged)) return null
      merged[key] = value
    }
  }
  return merged
}

function methodOf(method: unknown = 'get'): string | null {
  return typeof method === 'string' && /^[a-z]+$/i.test(method) ? method.toUpperCase() : null
}

/** Null: none. Undefined: not known here; node-fetch also applies it to the body of an answer that is not cloned. */
function timeoutOf({ timeout = null, skipResponseCloning }: Options): number | null | undefined {
  if (timeout === null || timeout === false) return null
  return typeof timeout === 'number' && !skipResponseCloning ? timeout : undefined
}

function addressOf(url: unknown, searchParams: unknown): string | null {
  const text = url instanceof URL ? url.href : url
  if (typeof text !== 'string') return null
  if (!searchParams) return text
  const target = requestTarget(text)
  if (target === null) return null
  const changed = new URL(target.url)
  changed.search = new URLSearchParams(searchParams as Record<string, string>).toString()
  return changed.toString()
}

interface RequestBody {
  bytes: Buffer | null
  type: string | null
}

function bodyOf({ json, body }: Options): RequestBody | null {
  if (json !== undefined) {
    const text: unknown = body === undefined ? JSON.stringify(json) : undefined
    return typeof text === 'string' ? { bytes: Buffer.from(text), type: 'application/json' } : null
  }
  if (body === undefined) return { bytes: null, type: null }
  if (typeof body === 'string') return { bytes: Buffer.from(body), type: 'text/plain;charset=UTF-8' }
  if (Buffer.isBuffer(body)) return { bytes: body, type: null }
  return body instanceof URLSearchParams
    ? { bytes: Buffer.from(body.toString()), type: 'application/x-www-form-urlencoded;charset=UTF-8' }
    : null
}

/** The library makes the request a second time with the header, which sorts the others. */
function withBasicAuth(headers: HeaderMap, username: unknown, password: unknown): HeaderMap | null {
  const [name, secret] = [username ?? '', password ?? '']
  if (typeof name !== 'string' || typeof secret !== 'string') return null
  const text = `${name}:${secret}`
  // The library encodes other characters in a way of its own.
  return /^[\x20-\x7e]*$/.test(text) ? sorted(headers).set('authorization', `Basic ${btoa(text)}`) : null
}

/** With basic authentication, the first of the two requests leaves its text as the body of the second, and node-fetch names the type of a text. */
function addContentType(headers: HeaderMap, { type }: RequestBody, isBasic: boolean): void {
  if (type === null) return
  const isNamed = headers.has('content-type')
  if (type === 'application/json') headers.set(isBasic && !isNamed ? 'Content-Type' : 'content-type', type)
  else if (!isNamed) headers.set('Content-Type', type)
}

async function executed(prepared: Prepared): Promise<FetchResponse> {
  const { options } = prepared
  let answered: Answered
  try {
    answered = await exchange(prepared)
  } catch (error) {
    throw requestError(error, prepared)
  }
  const { response, body } = answered
  const content = options['skipResponseCloning'] ? await response.text() : (body?.toString() ?? (await response.clone().text()))
  response.content = content
  response.data = dataOf(response, content)
  const { headers } = response
  Object.defineProperty(headers, 'toJSON', { enumerable: false, value: () => Object.fromEntries(headers.entries()) })
  // Few actions read it.
  Object.defineProperty(response, 'request', { enumerable: true, configurable: true, get: () => requestOf(prepared) })
  response.options = options
  if (response.ok || options['throwHttpErrors'] === false) return response
  throw new (libraryRequests().HTTPError)(response, requestOf(prepared), options)
}

function dataOf({ headers }: FetchResponse, content: string): unknown {
  if (headers.get('content-type')?.includes('application/json') !== true) return content
  try {
    return JSON.parse(content)
  } catch {
    return undefined
  }
}

function requestError(error: unknown, prepared: Prepared): unknown {
  const { TimeoutError, RequestClientError, RequestTimeoutError } = libraryRequests()
  if (error instanceof OwnTimeout) return new TimeoutError(requestOf(prepared), prepared.options)
  if ((error as Error | null)?.name !== 'AbortError') return error
  return (prepared.signal.reason as Error | undefined)?.name === 'TimeoutError' ? new RequestTimeoutError() : new RequestClientError()
}

function requestOf({ target, method, headers, body, signal }: Prepared): FetchRequest {
  const { fetch } = libraryRequests()
  return new fetch.Request(target.url, { method, headers, body: body ?? undefined, signal })
}
