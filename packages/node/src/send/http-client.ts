// The public seam for HTTP: the types people implement, the fetch client they subclass, and the turn from any of them
// into the transport that the sender uses.

import { type Answer, type OutgoingRequest, TimeoutError, type Transport } from './transport.ts'

/** Compatible with fetch implementations. */
export type HTTPFetchFn = (url: string, requestInit: HTTPFetchRequest) => Promise<HTTPResponse>

/** Compatible with fetch's second argument. */
export interface HTTPFetchRequest {
  headers: Record<string, string>
  body: string
  method: HTTPClientRequest['method']
  // oxlint-disable-next-line typescript/no-explicit-any -- fetch implementations disagree about the type of an AbortSignal
  signal: any
}

/** Compatible with fetch's Headers. */
export interface HTTPHeaders {
  get: (key: string) => string | null
  has: (key: string) => boolean
  entries: () => IterableIterator<[string, unknown]>
}

/** What a response must have at least. */
export interface HTTPResponse {
  status: number
  statusText: string
  // oxlint-disable-next-line typescript/no-explicit-any -- header maps of other libraries hold strings, arrays and numbers
  headers?: Record<string, any> | HTTPHeaders | undefined
  text?: (() => Promise<string>) | undefined
}

export interface HTTPClientRequest {
  url: string
  method: 'POST'
  headers: Record<string, string>
  body: string
  /** The body as an object, for clients that serialise it themselves. (A token request is a form: its text.) */
  readonly data?: unknown
  /** Most milliseconds to wait for the response. */
  httpRequestTimeout: number
}

export interface HTTPClient {
  makeRequest(options: HTTPClientRequest): Promise<HTTPResponse>
}

/** HTTP by fetch: the default where there is no node:http, and a base to extend anywhere. */
export class FetchHTTPClient implements HTTPClient {
  readonly #fetch: HTTPFetchFn | undefined

  constructor(fetchFn?: HTTPFetchFn) {
    this.#fetch = fetchFn
  }

  async makeRequest(options: HTTPClientRequest): Promise<HTTPResponse> {
    // Looked up at the call, so that a fetch replaced after construction (tests, instrumentation) is the one used.
    const send = this.#fetch ?? globalThis.fetch
    // The signal lives as long as the request and its body; unlike a timer of ours it needs no clearing.
    const signal = AbortSignal.timeout(options.httpRequestTimeout)
    return send(options.url, { method: options.method, headers: options.headers, body: options.body, signal })
  }
}

/** How long past its deadline a custom client may take to say so itself. */
const GRACE_MS = 250

export function customTransport(custom: HTTPClient | HTTPFetchFn): Transport {
  const client = typeof custom === 'function' ? new FetchHTTPClient(custom) : custom
  return {
    send: (request) => withDeadline(exchange(client, request), request.timeoutMs + GRACE_MS, request),
    close: () => {},
  }
}

async function exchange(client: HTTPClient, request: OutgoingRequest): Promise<Answer> {
  const body = request.bodyText()
  const response = await client.makeRequest({
    url: request.url,
    method: 'POST',
    headers: request.headers,
    body,
    get data() {
      return request.headers['Content-Type'] === 'application/json' ? (JSON.parse(body) as unknown) : body
    },
    httpRequestTimeout: request.timeoutMs,
  })
  if (typeof response?.status !== 'number') throw new TypeError('the HTTP client’s response has no status')
  return {
    status: response.status,
    statusText: response.statusText ?? '',
    headers: plainHeaders(response.headers),
    text: await textOf(response),
  }
}

async function textOf(response: HTTPResponse): Promise<string> {
  if (typeof response.text === 'function') return response.text()
  // Clients such as axios have read the body already.
  const { data } = response as { data?: unknown }
  return typeof data === 'string' ? data : data === undefined ? '' : JSON.stringify(data)
}

function plainHeaders(headers: HTTPResponse['headers']): Record<string, string> {
  const plain: Record<string, string> = Object.create(null)
  if (!headers) return plain
  const entries =
    typeof headers['entries'] === 'function' ? (headers as HTTPHeaders).entries() : Object.entries(headers as Record<string, unknown>)
  for (const [name, value] of entries) plain[name.toLowerCase()] = String(value)
  return plain
}

async function withDeadline(answer: Promise<Answer>, ms: number, request: OutgoingRequest): Promise<Answer> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(request.timeoutMs)), ms)
  })
  try {
    return await Promise.race([answer, late])
  } catch (error) {
    if (error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError')) throw new TimeoutError(request.timeoutMs)
    throw error instanceof Error ? error : new Error(String(error))
  } finally {
    clearTimeout(timer)
  }
}
