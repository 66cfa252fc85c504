// One request and its whole answer, with what node-fetch does on the way: redirects, compressed answers, and its errors. The library reads
// every answer to its end before an action gets it, so the body is collected here once, instead of passing through several streams.

import http from 'node:http'
import https from 'node:https'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { type FetchResponse, type LibraryRequests, libraryRequests } from './library-requests.ts'
import { INVALID_VALUE } from './request-headers.ts'
import type { RequestTarget } from './request-target.ts'

export interface Outgoing {
  target: RequestTarget
  method: string
  /** As they are sent. */
  headers: Record<string, string>
  body: Buffer | null
  signal: AbortSignal
  /** Until the answer begins; null: only the signal ends it. */
  timeoutMs: number | null
}

/** Thrown when the timeout of the request itself has passed. */
export class OwnTimeout extends Error {}

/** Of an answer, also of a decompressed one. Tools answer with kilobytes; a host has 512 MB for all answers that it reads at once. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

const REDIRECTS = new Set([301, 302, 303, 307, 308])

interface Answer {
  message: http.IncomingMessage
  body: Buffer
}

export interface Answered {
  response: FetchResponse
  /** Null if node-fetch made the last request, and the answer is still to be read. */
  body: Buffer | null
}

export async function exchange(outgoing: Outgoing): Promise<Answered> {
  const { message, body } = await sent(outgoing)
  const library = libraryRequests()
  const location = redirectOf(message)
  if (location !== undefined) return { response: await followed(library, outgoing, message, location), body: null }
  const text = message.headers['content-encoding'] === undefined ? body : await decoded(library, outgoing, message, body)
  return { response: responseOf(library, outgoing, message, text), body: text }
}

function sent({ target, method, headers, body, signal, timeoutMs }: Outgoing): Promise<Answer> {
  const { fetch } = libraryRequests()
  const { protocol, hostname, port, path, url } = target
  return new Promise((resolve, reject) => {
    const request = (protocol === 'https:' ? https : http).request({ protocol, hostname, port, path, method, headers })
    let timer: NodeJS.Timeout | undefined
    let answer: http.IncomingMessage | undefined
    const settle = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
    const fail = (error: Error): void => {
      settle()
      reject(error)
      request.destroy()
    }
    const abort = (): void => fail(new fetch.AbortError('The user aborted a request.'))
    const broken = (error: Error): void =>
      fail(new fetch.FetchError(`Invalid response body while trying to fetch ${url}: ${error.message}`, 'system', error))
    signal.addEventListener('abort', abort)
    if (timeoutMs !== null) timer = setTimeout(() => fail(new OwnTimeout()), timeoutMs)
    request.on('error', (error) => {
      if (answer !== undefined) broken(error)
      else fail(new fetch.FetchError(`request to ${url} failed, reason: ${error.message}`, 'system', error))
    })
    request.on('response', (message) => {
      clearTimeout(timer)
      answer = message
      if (redirectOf(message) !== undefined) {
        settle()
        resolve({ message, body: Buffer.alloc(0) })
        request.destroy()
        return
      }
      const chunks: Buffer[] = []
      let bytes = 0
      message.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > MAX_ANSWER_BYTES) fail(tooLarge(url))
        else chunks.push(chunk)
      })
      message.on('error', (error) => broken(message.headers['transfer-encoding'] === 'chunked' ? prematureClose() : error))
      message.on('end', () => {
        settle()
        resolve({ message, body: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks) })
      })
    })
    request.end(body ?? undefined)
  })
}

function prematureClose(): Error {
  return Object.assign(new Error('Premature close'), { code: 'ERR_STREAM_PREMATURE_CLOSE' })
}

/** As node-fetch reports it. The action had an effect, so the message is not sent again. */
function tooLarge(url: string): Error {
  const { fetch } = libraryRequests()
  return new fetch.FetchError(`The answer of ${url} is larger than ${MAX_ANSWER_BYTES} bytes`, 'max-size')
}

function responseOf(library: LibraryRequests, { target }: Outgoing, message: http.IncomingMessage, body: Buffer): FetchResponse {
  const { statusCode: status, statusMessage: statusText } = message
  const response = new library.fetch.Response(body, { url: target.url, status, statusText, counter: 0 })
  const raw = response.headers.raw()
  for (const [name, value] of Object.entries(message.headers)) {
    const valid = (Array.isArray(value) ? value : [value as string]).filter((each) => !INVALID_VALUE.test(each))
    if (valid.length > 0) raw[name] = valid
  }
  return response
}

const gunzip = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip)
const inflate = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflate)
const inflateRaw = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflateRaw)
const brotli = promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress)
/** As in node-fetch, a compressed answer that ends early is not an error. */
const LENIENT = {
  flush: zlib.constants.Z_SYNC_FLUSH,
  finishFlush: zlib.constants.Z_SYNC_FLUSH,
  maxOutputLength: MAX_ANSWER_BYTES,
}
const LIMITED = { maxOutputLength: MAX_ANSWER_BYTES }

async function decoded(
  library: LibraryRequests,
  { target, method }: Outgoing,
  message: http.IncomingMessage,
  body: Buffer,
): Promise<Buffer> {
  const encoding = message.headers['content-encoding']
  if (method === 'HEAD' || message.statusCode === 204 || message.statusCode === 304) return body
  try {
    if (encoding === 'gzip' || encoding === 'x-gzip') return await gunzip(body, LENIENT)
    if (encoding === 'deflate' || encoding === 'x-deflate') {
      if (body.length === 0) return body
      return ((body[0] as number) & 0x0f) === 0x08 ? await inflate(body, LIMITED) : await inflateRaw(body, LIMITED)
    }
    return encoding === 'br' ? await brotli(body, LIMITED) : body
  } catch (error) {
    const { message: reason, code } = error as NodeJS.ErrnoException
    if (code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(target.url)
    throw new library.fetch.FetchError(`Invalid response body while trying to fetch ${target.url}: ${reason}`, 'system', error as Error)
  }
}

function redirectOf({ statusCode, headers }: http.IncomingMessage): string | undefined {
  return REDIRECTS.has(statusCode ?? 0) ? headers.location : undefined
}

/** node-fetch makes the requests that follow. */
function followed(
  { fetch }: LibraryRequests,
  { target, method, headers: sentHeaders, body, signal }: Outgoing,
  { statusCode }: http.IncomingMessage,
  location: string,
): Promise<FetchResponse> {
  if (!URL.canParse(location, target.url))
    throw new fetch.FetchError(`uri requested responds with an invalid redirect URL: ${location}`, 'invalid-redirect')
  const url = new URL(location, target.url)
  const from = new URL(target.url)
  // node-fetch adds its own headers to the next request again.
  const headers = new fetch.Headers(sentHeaders)
  for (const name of ['Accept', 'Content-Length', 'Accept-Encoding', 'User-Agent'])
    if (Object.hasOwn(sentHeaders, name)) headers.delete(name)
  const isSameSite = from.hostname === url.hostname || url.hostname.endsWith(`.${from.hostname}`)
  if (!isSameSite || from.protocol !== url.protocol)
    for (const name of ['authorization', 'www-authenticate', 'cookie', 'cookie2']) headers.delete(name)
  const isGet = statusCode === 303 || ((statusCode === 301 || statusCode === 302) && method === 'POST')
  if (isGet) headers.delete('content-length')
  const next = {
    headers,
    counter: 1,
    method: isGet ? 'GET' : method,
    body: isGet ? undefined : (body ?? undefined),
    signal,
    size: MAX_ANSWER_BYTES,
  }
  return fetch(new fetch.Request(url.toString(), next))
}
