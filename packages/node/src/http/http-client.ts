// Custom HTTP clients: the public types that users implement, the fetch client that they can extend, and the adapter from
// either to the transport that the sender uses.

import { type Answer, MAX_ANSWER_BYTES, type OutgoingRequest, TimeoutError, type Transport } from './transport.ts'

/** Compatible with fetch implementations. */
export type HTTPFetchFn = (url: string, requestInit: HTTPFetchRequest) => Promise<HTTPResponse>

/** Compatible with fetch's second argument. */
export interface HTTPFetchRequest {
  headers: Record<string, string>
  body: string
  method: HTTPClientRequest['method']
  // oxlint-disable-next-line typescript/no-explicit-any -- fetch implementations disagree about the type of an AbortSignal
  signal: any
  redirect?: 'manual'
}

/** Compatible with fetch's Headers. */
export interface HTTPHeaders {
  get: (key: string) => string | null
  has: (key: string) => boolean
  entries: () => IterableIterator<[string, unknown]>
}

/** The minimum that a response must have. */
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
  /** The body as an object, for clients that serialise it themselves. For a token request, which is a form, this is text. */
  readonly data?: unknown
  /** Timeout in milliseconds, from the start of the request to the last byte of the response. */
  httpRequestTimeout: number
  /** Aborted at the timeout, and when the client is closed. */
  readonly signal?: AbortSignal
}

export interface HTTPClient {
  makeRequest(options: HTTPClientRequest): Promise<HTTPResponse>
}

/** An HTTP client that uses fetch; you can extend it. */
export class FetchHTTPClient implements HTTPClient {
  readonly #fetch: HTTPFetchFn | undefined

  constructor(fetchFn?: HTTPFetchFn) {
    this.#fetch = fetchFn
  }

  async makeRequest(options: HTTPClientRequest): Promise<HTTPResponse> {
    // Looked up for each request, so that a fetch replaced after construction (tests, instrumentation) is used.
    const send = this.#fetch ?? globalThis.fetch
    const { url, method, headers, body, signal = AbortSignal.timeout(options.httpRequestTimeout) } = options
    // Following a redirect would turn the POST into a GET, and its 200 would count as a delivery that never happened.
    return send(url, { method, headers, body, signal, redirect: 'manual' })
  }
}

export function customTransport(custom: HTTPClient | HTTPFetchFn): Transport {
  const client = typeof custom === 'function' ? new FetchHTTPClient(custom) : custom
  const inFlight = new Set<(reason: Error) => void>()

  /** Ends at the timeout and at close, even if the custom client ignores the signal. */
  async function send(request: OutgoingRequest): Promise<Answer> {
    const controller = new AbortController()
    let end: (reason: Error) => void = () => {}
    const ended = new Promise<never>((_, reject) => {
      end = (reason) => {
        controller.abort(reason)
        reject(reason)
      }
    })
    const timer = setTimeout(() => end(new TimeoutError(request.timeoutMs)), request.timeoutMs)
    inFlight.add(end)
    try {
      return await Promise.race([exchange(client, request, controller.signal), ended])
    } finally {
      clearTimeout(timer)
      inFlight.delete(end)
    }
  }

  return {
    send,
    close() {
      for (const end of inFlight) end(new Error('the client is closed'))
    },
  }
}

async function exchange(client: HTTPClient, request: OutgoingRequest, signal: AbortSignal): Promise<Answer> {
  // Mocks of fetch and third-party clients expect text. Only global fetch gets bytes, because gzip cannot be
  // combined with a custom client.
  const isCompressed = request.headers['Content-Encoding'] !== undefined
  const response = await client.makeRequest({
    url: request.url,
    method: 'POST',
    headers: request.headers,
    body: isCompressed ? (request.body as unknown as string) : request.bodyText(),
    get data() {
      const text = request.bodyText()
      return request.headers['Content-Type'] === 'application/json' ? (JSON.parse(text) as unknown) : text
    },
    httpRequestTimeout: request.timeoutMs,
    signal,
  })
  if (typeof response?.status !== 'number') throw new TypeError('the response of the custom httpClient has no numeric status')
  return {
    status: response.status,
    statusText: response.statusText ?? '',
    headers: plainHeaders(response.headers),
    text: await textOf(response),
    // The client may still read `data`.
    isBodyFree: false,
  }
}

async function textOf(response: HTTPResponse): Promise<string> {
  if (typeof Response === 'function' && response instanceof Response) return cappedText(response)
  // Clients such as axios have already read the body.
  const data: unknown = typeof response.text === 'function' ? await response.text() : (response as { data?: unknown }).data
  return typeof data === 'string' ? data : (JSON.stringify(data) ?? '')
}

async function cappedText(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`the response is larger than ${MAX_ANSWER_BYTES} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

function plainHeaders(headers: HTTPResponse['headers']): Record<string, string> {
  const plain: Record<string, string> = Object.create(null)
  if (!headers) return plain
  const entries =
    typeof headers['entries'] === 'function' ? (headers as HTTPHeaders).entries() : Object.entries(headers as Record<string, unknown>)
  for (const [name, value] of entries) plain[name.toLowerCase()] = String(value)
  return plain
}
