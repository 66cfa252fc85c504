// The control API of a running service, as commands call it: one place that knows how a call fails and how to tell a
// person. A token never appears in what is told.

import type { JsonObject } from '@switchyard/protocol'
import type { Agent, request } from 'undici'
import { entityTag } from '../../api/entity-tag.ts'
import { CommandProblem, EXIT, type ExitCode } from '../line/problem.ts'
import { parseEvents } from './event-stream.ts'

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface Api {
  readonly url: string
  /** `path` begins with /api. Rejects with a CommandProblem that says what the service answered, or that there is none. */
  get(path: string, query?: Query): Promise<JsonObject>
  post(path: string, body?: object, query?: Query): Promise<JsonObject>
  /** `read`: the resource as it was read. If it was changed since, nothing is changed: `changed_since_read`. */
  patch(path: string, body: object, read?: JsonObject): Promise<JsonObject>
  delete(path: string, query?: Query, read?: JsonObject): Promise<JsonObject | undefined>
  /** An answer that is a file's bytes. */
  bytes(path: string): Promise<AsyncIterable<Uint8Array>>
  /** Every entry of a list, page by page. */
  all(path: string, query?: Query): AsyncIterable<JsonObject>
  /** Server-sent events, until the signal; connects again by itself. */
  events(path: string, query: Query, signal: AbortSignal): AsyncIterable<{ event: string; data: JsonObject }>
}

export interface ApiOptions {
  url: string
  token: string | null
  /** Ends every call. */
  signal: AbortSignal
  /** For one call, from dialling to the end of its answer. */
  deadlineMs?: number
  /** Before an event stream that was lost is asked for again. */
  reconnectMs?: number
}

/** What the service refused, for whoever wants to know more than the sentence. */
export class ApiProblem extends CommandProblem {
  override name = 'ApiProblem'
  readonly status: number
  readonly code: string

  constructor(message: string, exit: ExitCode, status: number, code: string) {
    super(message, exit)
    this.status = status
    this.code = code
  }
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'
interface Answer {
  status: number
  body: JsonObject | undefined
}

/** A recount of a large store takes its time. */
const DEADLINE_MS = 120_000
const PAGE = 1_000
const RECONNECT_MS = 1_000
/** A stream shows a sign of life every 15 s; one that has been silent for so long is dead. */
const SILENCE_MS = 60_000

export function createApi({ url, token, signal, deadlineMs = DEADLINE_MS, reconnectMs = RECONNECT_MS }: ApiOptions): Api {
  let loading: Promise<{ agent: Agent; request: typeof request }> | undefined
  // Loading it takes longer than most calls; a command that makes none does not wait for it.
  const client = (): NonNullable<typeof loading> =>
    (loading ??= import('undici').then(({ Agent, request }) => ({ agent: new Agent({ connect: { timeout: 10_000 } }), request })))
  const headers = { accept: 'application/json', ...(token === null ? {} : { authorization: `Bearer ${token}` }) }

  async function call(method: Method, path: string, query: Query = {}, body?: object, read?: JsonObject): Promise<Answer> {
    const { agent, request } = await client()
    const precondition = read === undefined ? {} : { 'if-match': entityTag(read) }
    try {
      const response = await request(`${url}${path}${queryText(query)}`, {
        method,
        dispatcher: agent,
        headers: { ...headers, ...precondition, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]),
        headersTimeout: 0,
        bodyTimeout: 0,
      })
      const text = await response.body.text()
      return { status: response.statusCode, body: parseAnswer(text) }
    } catch (error) {
      throw unreachable(error)
    }
  }

  function unreachable(error: unknown): Error {
    if (signal.aborted) return error instanceof Error ? error : new Error(String(error))
    const { name, code, message } = error as { name?: string; code?: string; message?: string }
    if (name === 'TimeoutError')
      return new CommandProblem(`The service at ${url} did not answer within ${deadlineMs / 1_000} s.`, EXIT.unreachable, { cause: error })
    if (
      code === 'ECONNREFUSED' ||
      code === 'ENOTFOUND' ||
      code === 'EAI_AGAIN' ||
      code === 'UND_ERR_CONNECT_TIMEOUT' ||
      code === 'EHOSTUNREACH'
    )
      return new CommandProblem(
        `No service answers at ${url}. Is it running? Start it with \`switchyard serve\`, or name another with --url.`,
        EXIT.unreachable,
        { cause: error },
      )
    return new CommandProblem(`The call to ${url} failed: ${message || code || 'the connection broke'}.`, EXIT.unreachable, {
      cause: error,
    })
  }

  function refusal(path: string, { status, body }: Answer): ApiProblem {
    const code = typeof body?.['code'] === 'string' ? body['code'] : ''
    const said = typeof body?.['message'] === 'string' ? body['message'] : ''
    if (status === 401 && (code === 'unauthorized' || code === '')) {
      const sentence =
        token === null
          ? `The service at ${url} wants a control token. Give it as SWITCHYARD_TOKEN or --token; the first start printed one.`
          : `The service at ${url} does not know this control token. Give another as SWITCHYARD_TOKEN or --token.`
      return new ApiProblem(sentence, EXIT.unreachable, status, code)
    }
    if (code === '') {
      const sentence = `${url} answered ${status}, and not as a Switchyard service does. Is --url right?`
      return new ApiProblem(sentence, EXIT.unreachable, status, code)
    }
    if (code === 'not_found')
      return new ApiProblem(`The service at ${url} has no ${path}: is it an older version than this command?`, EXIT.failed, status, code)
    const exit =
      status === 401 || status === 403 ? EXIT.unreachable : status === 404 ? EXIT.notFound : status === 400 ? EXIT.usage : EXIT.failed
    return new ApiProblem(`${said} (${code})`, exit, status, code)
  }

  async function answered(method: Method, path: string, query?: Query, body?: object, read?: JsonObject): Promise<JsonObject | undefined> {
    const answer = await call(method, path, query, body, read)
    if (answer.status < 200 || answer.status > 299 || (answer.body === undefined && answer.status !== 204)) throw refusal(path, answer)
    return answer.body
  }

  async function bytes(path: string): Promise<AsyncIterable<Uint8Array>> {
    const { agent, request } = await client()
    try {
      const response = await request(`${url}${path}`, {
        method: 'GET',
        dispatcher: agent,
        headers,
        signal,
        headersTimeout: deadlineMs,
        bodyTimeout: deadlineMs,
      })
      if (response.statusCode !== 200) throw refusal(path, { status: response.statusCode, body: parseAnswer(await response.body.text()) })
      return response.body as AsyncIterable<Uint8Array>
    } catch (error) {
      throw error instanceof CommandProblem ? error : unreachable(error)
    }
  }

  async function* pages(path: string, query: Query = {}): AsyncIterable<JsonObject> {
    let cursor: string | undefined
    do {
      const page = (await answered('GET', path, { limit: PAGE, ...query, cursor })) ?? {}
      for (const entry of (page['data'] as JsonObject[] | undefined) ?? []) yield entry
      cursor = typeof page['next'] === 'string' ? page['next'] : undefined
    } while (cursor !== undefined)
  }

  async function* events(path: string, query: Query, ending: AbortSignal): AsyncIterable<{ event: string; data: JsonObject }> {
    const either = AbortSignal.any([signal, ending])
    let lastId: string | undefined
    let connected = false
    while (!either.aborted) {
      try {
        const { agent, request } = await client()
        const response = await request(`${url}${path}${queryText(query)}`, {
          method: 'GET',
          dispatcher: agent,
          headers: { ...headers, accept: 'text/event-stream', ...(lastId === undefined ? {} : { 'last-event-id': lastId }) },
          signal: either,
          headersTimeout: deadlineMs,
          bodyTimeout: SILENCE_MS,
        })
        if (response.statusCode !== 200) {
          const answer = { status: response.statusCode, body: parseAnswer(await response.body.text()) }
          // While the service stops or starts, it is waited for.
          if (!(connected && answer.status === 503)) throw refusal(path, answer)
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
        // A stream that never was is a mistake to be told; one that broke off is asked for again.
        if (error instanceof CommandProblem) throw error
        if (!connected) throw unreachable(error)
      }
      await pause(reconnectMs, either)
    }
  }

  return {
    url,
    get: async (path, query) => (await answered('GET', path, query)) ?? {},
    post: async (path, body, query) => (await answered('POST', path, query, body)) ?? {},
    patch: async (path, body, read) => (await answered('PATCH', path, {}, body, read)) ?? {},
    delete: (path, query, read) => answered('DELETE', path, query, undefined, read),
    bytes,
    all: pages,
    events,
  }
}

function queryText(query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)] as [string, string]]))
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`
}

function parseAnswer(text: string): JsonObject | undefined {
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
