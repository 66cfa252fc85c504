// The client for the control API of a running service. It turns every failure into an error message for the user, which never contains
// the token.

import type { JsonObject } from '@switchyard/protocol'
import type { Agent, request } from 'undici'
import { entityTag } from '../../api/entity-tag.ts'
import { connectionProblem, pathAdvice } from './connection-problem.ts'
import { parseEvents } from './event-stream.ts'
import { CommandProblem, EXIT, type ExitCode } from './problem.ts'

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface Api {
  readonly url: string
  /** `path` begins with /api. Rejects with a CommandProblem if the service returns an error or cannot be reached. */
  get(path: string, query?: Query): Promise<JsonObject>
  post(path: string, body?: object, query?: Query): Promise<JsonObject>
  /** `read` is the resource as it was read. If it has changed since, the service changes nothing and answers `changed_since_read`. */
  patch(path: string, body: object, read?: JsonObject): Promise<JsonObject>
  delete(path: string, query?: Query, read?: JsonObject): Promise<JsonObject | undefined>
  /** Downloads a file. */
  bytes(path: string): Promise<AsyncIterable<Uint8Array>>
  /** Iterates over every entry of a list, page by page. */
  all(path: string, query?: Query): AsyncIterable<JsonObject>
  /** Yields server-sent events until the signal is aborted. Reconnects automatically. */
  events(path: string, query: Query, signal: AbortSignal): AsyncIterable<{ event: string; data: JsonObject }>
}

/** The token of a command, and what it is from, which errors and `whoami` say. */
export interface GivenToken {
  token: string | null
  tokenFrom: '--token' | 'SWITCHYARD_TOKEN' | 'switchyard login' | 'SWITCHYARD_ADMIN_TOKEN' | null
}

export interface ApiOptions {
  url: string
  token: string | null
  /** What the token is from, for errors about it. */
  tokenFrom?: GivenToken['tokenFrom']
  /** Aborts every call. */
  signal: AbortSignal
  /** The timeout of one call, from connecting to the end of the response. */
  deadlineMs?: number
  /** The delay before a lost event stream is reconnected. */
  reconnectMs?: number
  /** Called repeatedly while a call waits for its response. */
  onSlow?: (elapsedMs: number) => void
  /** How often `onSlow` is called. */
  slowMs?: number
}

/** An error response of the service, with its status and code. */
export class ApiProblem extends CommandProblem {
  override name = 'ApiProblem'
  readonly status: number
  readonly code: string
  /** The field of the request that is wrong, if the service named one. */
  readonly field: string | undefined
  /** The existing destination, if the error is about one. */
  readonly destinationId: string | undefined

  constructor(message: string, exit: ExitCode, status: number, code: string, about: { field?: unknown; destinationId?: unknown } = {}) {
    super(message, exit)
    this.status = status
    this.code = code
    this.field = typeof about.field === 'string' ? about.field : undefined
    this.destinationId = typeof about.destinationId === 'string' ? about.destinationId : undefined
  }
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'
interface Answer {
  status: number
  body: JsonObject | undefined
}

/** Recounting the ledger of a large store takes long. */
const DEADLINE_MS = 120_000
const PAGE = 1_000
const RECONNECT_MS = 1_000
const SLOW_MS = 5_000
/** The service sends a keep-alive every 15 s, so a stream that is silent for this long is dead. */
const SILENCE_MS = 60_000

export function createApi(options: ApiOptions): Api {
  return new ServiceApi(options)
}

class ServiceApi implements Api {
  readonly #options: ApiOptions & Required<Pick<ApiOptions, 'deadlineMs' | 'reconnectMs' | 'slowMs'>>
  readonly #headers: Record<string, string>
  #loading: Promise<{ agent: Agent; request: typeof request }> | undefined

  constructor(options: ApiOptions) {
    this.#options = { deadlineMs: DEADLINE_MS, reconnectMs: RECONNECT_MS, slowMs: SLOW_MS, ...options }
    this.#headers = { accept: 'application/json', ...(options.token === null ? {} : { authorization: `Bearer ${options.token}` }) }
  }

  get url(): string {
    return this.#options.url
  }

  async get(path: string, query?: Query): Promise<JsonObject> {
    return (await this.#answered('GET', path, query)) ?? {}
  }

  async post(path: string, body: object, query?: Query): Promise<JsonObject> {
    return (await this.#answered('POST', path, query, body)) ?? {}
  }

  async patch(path: string, body: object, read?: JsonObject): Promise<JsonObject> {
    return (await this.#answered('PATCH', path, {}, body, read)) ?? {}
  }

  delete(path: string, query?: Query, read?: JsonObject): Promise<JsonObject | undefined> {
    return this.#answered('DELETE', path, query, undefined, read)
  }

  async bytes(path: string): Promise<AsyncIterable<Uint8Array>> {
    const { url, signal, deadlineMs } = this.#options
    const { agent, request } = await this.#client()
    try {
      const response = await request(`${url}${path}`, {
        method: 'GET',
        dispatcher: agent,
        headers: this.#headers,
        signal,
        headersTimeout: deadlineMs,
        bodyTimeout: deadlineMs,
      })
      if (response.statusCode !== 200)
        throw errorOf(this.#options, path, { status: response.statusCode, body: parseAnswer(await response.body.text()) })
      return response.body as AsyncIterable<Uint8Array>
    } catch (error) {
      throw error instanceof CommandProblem ? error : this.#unreachable(error)
    }
  }

  async *all(path: string, query: Query = {}): AsyncIterable<JsonObject> {
    let cursor: string | undefined
    do {
      const page = (await this.#answered('GET', path, { limit: PAGE, ...query, cursor })) ?? {}
      for (const entry of (page['data'] as JsonObject[] | undefined) ?? []) yield entry
      cursor = typeof page['next'] === 'string' ? page['next'] : undefined
    } while (cursor !== undefined)
  }

  async *events(path: string, query: Query, ending: AbortSignal): AsyncIterable<{ event: string; data: JsonObject }> {
    const { url, signal, deadlineMs, reconnectMs } = this.#options
    const either = AbortSignal.any([signal, ending])
    let lastId: string | undefined
    let connected = false
    while (!either.aborted) {
      try {
        const { agent, request } = await this.#client()
        const response = await request(`${url}${path}${queryText(query)}`, {
          method: 'GET',
          dispatcher: agent,
          headers: { ...this.#headers, accept: 'text/event-stream', ...(lastId === undefined ? {} : { 'last-event-id': lastId }) },
          signal: either,
          headersTimeout: deadlineMs,
          bodyTimeout: SILENCE_MS,
        })
        if (response.statusCode !== 200) {
          const answer = { status: response.statusCode, body: parseAnswer(await response.body.text()) }
          // A service that is stopping or starting answers 503, so try again.
          if (!(connected && answer.status === 503)) throw errorOf(this.#options, path, answer)
        } else {
          connected = true
          for await (const { id, event, data } of parseEvents(response.body)) {
            if (id !== undefined) lastId = id
            const parsed = parseAnswer(data)
            if (parsed !== undefined) yield { event, data: parsed }
          }
        }
      } catch (error) {
        if (either.aborted) return
        // Report an error if the stream was never established; reconnect if it was lost.
        if (error instanceof CommandProblem) throw error
        if (!connected) throw this.#unreachable(error)
      }
      await pause(reconnectMs, either)
    }
  }

  /** Loading undici takes longer than most calls, so it is loaded only for a command that makes one. */
  #client(): Promise<{ agent: Agent; request: typeof request }> {
    return (this.#loading ??= import('undici').then(({ Agent, request }) => ({
      agent: new Agent({ connect: { timeout: 10_000 } }),
      request,
    })))
  }

  async #call(method: Method, path: string, query: Query = {}, body?: object, read?: JsonObject): Promise<Answer> {
    const { url, signal, deadlineMs, onSlow, slowMs } = this.#options
    const { agent, request } = await this.#client()
    const precondition = read === undefined ? {} : { 'if-match': entityTag(read) }
    const startedMs = performance.now()
    const slow = onSlow === undefined ? undefined : setInterval(() => onSlow(performance.now() - startedMs), slowMs)
    try {
      const response = await request(`${url}${path}${queryText(query)}`, {
        method,
        dispatcher: agent,
        headers: { ...this.#headers, ...precondition, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]),
        headersTimeout: 0,
        bodyTimeout: 0,
      })
      const text = await response.body.text()
      return { status: response.statusCode, body: parseAnswer(text) }
    } catch (error) {
      throw this.#unreachable(error)
    } finally {
      clearInterval(slow)
    }
  }

  async #answered(method: Method, path: string, query?: Query, body?: object, read?: JsonObject): Promise<JsonObject | undefined> {
    const answer = await this.#call(method, path, query, body, read)
    if (answer.status < 200 || answer.status > 299 || (answer.body === undefined && answer.status !== 204))
      throw errorOf(this.#options, path, answer)
    return answer.body
  }

  #unreachable(error: unknown): Error {
    const { url, signal, deadlineMs } = this.#options
    if (signal.aborted) return error instanceof Error ? error : new Error(String(error))
    return connectionProblem(url, error, deadlineMs)
  }
}

function errorOf(
  { url, token, tokenFrom }: Pick<ApiOptions, 'url' | 'token' | 'tokenFrom'>,
  path: string,
  { status, body }: Answer,
): ApiProblem {
  const code = typeof body?.['code'] === 'string' ? body['code'] : ''
  const text = typeof body?.['message'] === 'string' ? body['message'] : ''
  if (status === 401 && (code === 'unauthorized' || code === '')) {
    const sentence =
      token === null
        ? `The service at ${url} requires a control token. Run \`switchyard login\`, set SWITCHYARD_TOKEN or use --token. The service printed an admin token at its first start.`
        : tokenFrom === 'switchyard login'
          ? `The service at ${url} no longer accepts the token of \`switchyard login\`: it has expired or was revoked, or you have lost access. Run \`switchyard login\` again.`
          : `The service at ${url} rejected this control token. ${/write key/.test(text) ? text : 'Set SWITCHYARD_TOKEN or --token to a valid one.'}`
    return new ApiProblem(sentence, EXIT.unreachable, status, code)
  }
  if (code === '') {
    const sentence = `The server at ${url} answered ${status}, but the response is not from a Switchyard service. ${pathAdvice(url) || 'Check --url or SWITCHYARD_URL.'}`
    return new ApiProblem(sentence, EXIT.unreachable, status, code)
  }
  if (code === 'not_found')
    return new ApiProblem(
      `The service at ${url} has no endpoint ${path}. ${pathAdvice(url) || 'It may be older than this command: compare `switchyard --version` with `switchyard doctor`.'}`,
      EXIT.failed,
      status,
      code,
    )
  const exit =
    status === 401 || status === 403 ? EXIT.unreachable : status === 404 ? EXIT.notFound : status === 400 ? EXIT.usage : EXIT.failed
  return new ApiProblem(`${text} (${code})`, exit, status, code, body)
}

function queryText(query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)] as [string, string]]))
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`
}

export function parseAnswer(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as JsonObject | null
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  })
}
