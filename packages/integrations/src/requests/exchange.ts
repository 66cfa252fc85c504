// One request and its whole answer, with what node-fetch does on the way: redirects, compressed answers, and its errors. The library reads
// every answer to its end before an action gets it, so the body is collected here once, instead of passing through several streams.

import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { type FetchResponse, type LibraryRequests, libraryRequests } from './library-requests.ts'
import { type Answer, MAX_ANSWER_BYTES, type Outgoing, redirectOf, sentByNode, tooLarge } from './node-request.ts'
import { sentByUs } from './own-request.ts'
import { INVALID_VALUE } from './request-headers.ts'

export interface Answered {
  response: FetchResponse
  /** Null if node-fetch made the last request, and the answer is still to be read. */
  body: Buffer | null
}

export async function exchange(outgoing: Outgoing): Promise<Answered> {
  const answer = await (sentByUs(outgoing) ?? sentByNode(outgoing))
  const library = libraryRequests()
  const location = redirectOf(answer)
  if (location !== undefined) return { response: await followed(library, outgoing, answer, location), body: null }
  const body = answer.headers['content-encoding'] === undefined ? answer.body : await decoded(library, outgoing, answer)
  return { response: responseOf(library, outgoing, answer, body), body }
}

function responseOf(library: LibraryRequests, { target }: Outgoing, answer: Answer, body: Buffer): FetchResponse {
  const { status, statusText } = answer
  const response = new library.fetch.Response(body, { url: target.url, status, statusText, counter: 0 })
  const raw = response.headers.raw()
  for (const [name, value] of Object.entries(answer.headers)) {
    const valid = (typeof value === 'string' ? [value] : [...(value ?? [])]).filter((each) => !INVALID_VALUE.test(each))
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

async function decoded(library: LibraryRequests, { target, method }: Outgoing, { status, headers, body }: Answer): Promise<Buffer> {
  const encoding = headers['content-encoding']
  if (method === 'HEAD' || status === 204 || status === 304) return body
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

/** node-fetch makes the requests that follow. */
function followed(
  { fetch }: LibraryRequests,
  { target, method, headers: sentHeaders, body, signal }: Outgoing,
  { status }: Answer,
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
  const isGet = status === 303 || ((status === 301 || status === 302) && method === 'POST')
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
