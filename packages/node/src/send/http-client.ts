// The public seam for HTTP: the types people implement, the fetch client they subclass, and the turn from any of them
// into the transport that the sender uses.

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
  /** Aborted at that time, and when the client is closed. */
  readonly signal?: AbortSignal
}

export interface HTTPClient {
  makeRequest(options: HTTPClientRequest): Promise<HTTPResponse>
}

/** HTTP by fetch, to use or to extend. */
export class FetchHTTPClient implements HTTPClient {
  readonly #fetch: HTTPFetchFn | undefined

  constructor(fetchFn?: HTTPFetchFn) {
    this.#fetch = fetchFn
  }

  async makeRequest(options: HTTPClientRequest): Promise<HTTPResponse> {
    // Looked up at the call, so that a fetch replaced after construction (tests, instrumentation) is the one used.
    const send = this.#fetch ?? globalThis.fetch
    const { url, method, headers, body, signal = AbortSignal.timeout(options.httpRequestTimeout) } = options
    // A redirect followed turns the POST into a GET, and the 200 of whatever is there into a delivery that never was.
    return send(url, { method, headers, body, signal, redirect: 'manual' })
  }
}

export function customTransport(custom: HTTPClient | HTTPFetchFn): Transport {
  const client = typeof custom === 'function' ? new FetchHTTPClient(custom) : custom
  const underWay = new Set<(reason: Error) => void>()

  /** One request under a deadline and until close, whether or not the client heeds its signal. */
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
    underWay.add(end)
    try {
      return await Promise.race([exchange(client, request, controller.signal), ended])
    } finally {
      clearTimeout(timer)
      underWay.delete(end)
    }
  }

  return {
    send,
    close() {
      for (const end of underWay) end(new Error('the client is closed'))
    },
  }
}

async function exchange(client: HTTPClient, request: OutgoingRequest, signal: AbortSignal): Promise<Answer> {
  // Text, as mocks of fetch and third-party clients expect it. Only global fetch is given bytes, as one part: gzip is
  // refused with a custom client.
  const isCompressed = request.headers['Content-Encoding'] !== undefined
  const response = await client.makeRequest({
    url: request.url,
    method: 'POST',
    headers: request.headers,
    body: isCompressed ? (request.parts[0] as unknown as string) : request.bodyText(),
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
  }
}

async function textOf(response: HTTPResponse): Promise<string> {
  if (typeof Response === 'function' && response instanceof Response) return cappedText(response)
  // Clients such as axios have read the body already.
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
