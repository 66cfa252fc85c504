// Calls to the control API, typed by its own description (types.ts). The browser's session cookie authenticates them. Errors are thrown as
// an ApiProblem with the API's stable code and message. No caching here: pages use queries.ts.

import { commandFor, namesCommand, withCommand } from './commands.ts'
import type { Operations, Schemas } from './types.ts'

export type Operation = keyof Operations
export type Answer<Op extends Operation> = Operations[Op]['answer']
export type Query<Op extends Operation> = Operations[Op]['query']
export type { Schemas }

/** An error of the API, or status 0 if it could not be reached. */
export class ApiProblem extends Error {
  override name = 'ApiProblem'
  readonly status: number
  readonly code: string
  /** The field of the request that is wrong, such as `urls[0]`. Null if the error is not about a field. */
  readonly field: string | null
  /** The existing destination, if the error is about one. */
  readonly destinationId: string | null
  /** Why a message is not stored; null if it is not known. The source is null for an unknown write key. */
  readonly rejection: { sourceId: string | null } | null
  /** The place in a query, from 1. */
  readonly line: number | null
  readonly column: number | null

  constructor(
    status: number,
    code: string,
    message: string,
    about: Partial<Pick<ApiProblem, 'field' | 'destinationId' | 'rejection' | 'line' | 'column'>> = {},
  ) {
    super(message)
    this.status = status
    this.code = code
    this.field = about.field ?? null
    this.destinationId = about.destinationId ?? null
    this.rejection = about.rejection ?? null
    this.line = about.line ?? null
    this.column = about.column ?? null
  }
}

type Params<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { [K in Name | keyof Params<Rest>]: string }
  : object

export type CallOptions<Op extends Operation> = (keyof Params<Op> extends never ? { params?: undefined } : { params: Params<Op> }) & {
  query?: Query<Op>
  signal?: AbortSignal
} & (Operations[Op]['body'] extends undefined ? { body?: undefined } : { body: Operations[Op]['body'] })

const INSTALLATION = 'GET /api/installation'

/** Called when the session has expired, so that the page can show the login form. */
let onLoggedOut: () => void = () => {}

export function listenForLogout(listener: () => void): void {
  onLoggedOut = listener
}

export async function call<Op extends Operation>(
  operation: Op,
  ...[options]: {} extends CallOptions<Op> ? [CallOptions<Op>?] : [CallOptions<Op>]
): Promise<Answer<Op>> {
  const { params, query, body, signal } = (options ?? {}) as {
    params?: Record<string, string>
    query?: object
    body?: unknown
    signal?: AbortSignal
  }
  const [method = 'GET', path = ''] = operation.split(' ')
  let response: Response
  try {
    response = await fetch(addressOf(path, params, query), {
      method,
      credentials: 'same-origin',
      ...(signal ? { signal } : {}),
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error
    throw new ApiProblem(
      0,
      'unreachable',
      'The service is not responding. Check that it is running and that your network connection works.',
    )
  }
  const text = await response.text()
  const answer = parsed(text)
  if (response.ok) return answer as Answer<Op>
  const {
    code = 'unknown',
    message = `The service responded with status ${response.status}.`,
    ...about
  } = (answer ?? {}) as Partial<ApiProblem>
  if (response.status === 401 && operation !== 'POST /api/login') onLoggedOut()
  throw new ApiProblem(
    response.status,
    code,
    operation === INSTALLATION ? message : await runnable(message, new URL(response.url).origin),
    about,
  )
}

/** With the commands that it names as they are run for this installation. */
async function runnable(message: string, origin: string): Promise<string> {
  if (!namesCommand(message)) return message
  const { command } = await call(INSTALLATION).catch(() => ({ command: 'switchyard' }))
  return withCommand(message, commandFor(command, origin))
}

export function addressOf(path: string, params: Record<string, string> = {}, query: object = {}): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value))
  const text = search.toString()
  return text === '' ? filled : `${filled}?${text}`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
