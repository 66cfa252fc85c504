// Operations of the model as requests to the control API, and answers of the API as states of the model. Ids are known only here.

import { TOKEN } from '../../system/service.ts'
import { KINDS, type Kind, type Operation, type Resource, type State, shown, sortedJson } from './model.ts'

/** Everything that these operations create has a name that starts with this. */
export const PREFIX = 'c-'
export const EVENT = 'Planned'
/** A message of this event with another type of `n` violates the plan. */
const SCHEMA = { type: 'object', properties: { n: { type: 'number' } } }
const RETRY = { initialMs: 200, maxMs: 2_000 }
/** A call that takes longer fails the round. A deletion waits up to 15 s for the other nodes. */
const CALL_TIMEOUT_MS = 90_000

export interface Answer {
  /** Null: the answer was lost, or the store did not answer the node in time. Undefined: the request was not sent, because the connection was refused. */
  status: number | null | undefined
  body: Record<string, unknown>
  tag: string | null
}

/** A call of the control API that may fail in any way. */
export async function attempt(url: string, path: string, init: { method?: string; body?: unknown; tag?: string } = {}): Promise<Answer> {
  const { method = 'GET', body, tag } = init
  try {
    const response = await fetch(`${url}/api${path}`, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json',
        ...(tag !== undefined && { 'if-match': tag }),
      },
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    // On an overloaded machine, a node can lose its connection to the database while it commits.
    const status = response.status === 503 ? null : response.status
    return { status, body: text === '' ? {} : JSON.parse(text), tag: response.headers.get('etag') }
  } catch (error) {
    if ((error as Error).name === 'TimeoutError')
      throw new Error(`${method} ${path} was not answered within ${CALL_TIMEOUT_MS / 1_000} s`, { cause: error })
    return { status: wasRefused(error) ? undefined : null, body: {}, tag: null }
  }
}

export function wasRefused(error: unknown): boolean {
  return ((error as Error).cause as { code?: string } | undefined)?.code === 'ECONNREFUSED'
}

/** All pages of a list. */
export async function list<T>(url: string, path: string): Promise<T[]> {
  const all: T[] = []
  let cursor: string | null = null
  do {
    const after: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { status, body }: Answer = await attempt(url, `${path}${path.includes('?') ? '&' : '?'}limit=1000${after}`)
    if (status !== 200) throw new Error(`GET ${path} was answered with ${status} ${JSON.stringify(body)}`)
    all.push(...(body['data'] as T[]))
    cursor = body['next'] as string | null
  } while (cursor !== null)
  return all
}

interface Listed {
  id: string
  name: string
  [field: string]: unknown
}

/** Knows the ids of resources by their names, also of those that were deleted. */
export class Directory {
  readonly #ids = new Map<string, string>()
  readonly #names = new Map<string, string>()
  readonly #receiverUrl: string

  constructor(receiverUrl: string) {
    this.#receiverUrl = receiverUrl
  }

  learn(id: string, name: string): void {
    this.#ids.set(name, id)
    this.#names.set(id, name)
  }

  id(name: string): string | undefined {
    return this.#ids.get(name)
  }

  name(id: string): string | undefined {
    return this.#names.get(id)
  }

  /** Undefined if the id of the resource is not known. */
  request(operation: Operation): { method: string; path: string; body?: object } | undefined {
    const { kind, name } = operation
    if (operation.does === 'create') {
      const body = this.#body(kind, operation.made)
      return body && { method: 'POST', path: `/${kind}`, body: { name, ...body, ...(kind === 'destinations' && this.#fixed(name)) } }
    }
    const path = `/${kind}/${this.id(name)}`
    if (this.id(name) === undefined) return undefined
    switch (operation.does) {
      case 'update': {
        const body = this.#body(kind, operation.fields)
        return body && { method: 'PATCH', path, body }
      }
      case 'restore':
        return { method: 'PATCH', path, body: { version: operation.version } }
      case 'add key':
        return { method: 'POST', path: `${path}/write-keys`, body: { key: operation.key } }
      case 'remove key':
        return { method: 'DELETE', path: `${path}/write-keys/${operation.key}` }
      case 'delete':
        return { method: 'DELETE', path }
    }
  }

  #fixed(name: string): object {
    return { urls: [`${this.#receiverUrl}${name}`], retry: RETRY }
  }

  #body(kind: Kind, fields: Resource & { code?: number | null }): object | undefined {
    const { sources, keys, contents, size, lingerMs, mode, version: _, code = contents?.[0], ...rest } = fields
    const sourceIds = sources?.map((name) => this.id(name))
    if (sourceIds?.includes(undefined)) return undefined
    const batch = { ...(size !== undefined && { size }), ...(lingerMs !== undefined && { lingerMs }) }
    return {
      ...rest,
      ...(sourceIds && { sourceIds }),
      ...(keys && { writeKeys: keys }),
      ...(Object.keys(batch).length > 0 && { batch }),
      ...(code !== undefined && kind === 'destinations' && { transformation: code === null ? null : { code: codeWith(code) } }),
      ...(mode !== undefined && { rules: [{ type: 'track', event: EVENT, mode, schema: SCHEMA }] }),
    }
  }

  /** A resource in an answer of the API, in the form in which shown() writes a resource of the model. */
  shown(kind: Kind, listed: Record<string, unknown>): string {
    const { code, version, ...rest } = this.#fields(kind, listed as Listed)
    return kind === 'destinations' ? sortedJson({ ...rest, code, version }) : sortedJson({ ...rest, version })
  }

  #fields(kind: Kind, listed: Listed): Record<string, unknown> {
    const { writeKeys, enabled, paused, maxInFlight, version } = listed
    if (kind === 'sources') return { keys: writeKeys, enabled }
    const sources = (listed['sourceIds'] as string[]).map((id) => this.name(id) ?? id)
    if (kind === 'plans') return { sources, mode: (listed['rules'] as { mode: string }[])[0]?.mode, version }
    const { size, lingerMs } = listed['batch'] as { size: number; lingerMs: number }
    const { code } = (listed['transformation'] as { code?: string } | null) ?? {}
    return { sources, enabled, paused, maxInFlight, size, lingerMs, version, code: numberIn(code) }
  }

  /** The configuration as a node shows it, without the entries of the audit log. */
  async read(url: string): Promise<Record<Kind, Map<string, { id: string; shown: string; listed: Listed }>>> {
    const lists = await Promise.all(KINDS.map((kind) => list<Listed>(url, `/${kind}`)))
    const own = lists.map((all) => all.filter(({ name }) => name.startsWith(PREFIX)))
    // Sources first: destinations and plans refer to them.
    for (const all of own) for (const { id, name } of all) this.learn(id, name)
    const entries = KINDS.map((kind, at) => {
      const resources = (own[at] as Listed[]).map(
        (listed) => [listed.name, { id: listed.id, shown: this.shown(kind, listed), listed }] as const,
      )
      return [kind, new Map(resources)] as const
    })
    return Object.fromEntries(entries) as Awaited<ReturnType<Directory['read']>>
  }

  /** The configuration as a node shows it, as a state of the model; with all versions of destinations. */
  async state(url: string, entries: State['entries']): Promise<State> {
    const read = await this.read(url)
    const state = { sources: {}, destinations: {}, plans: {}, entries } as Record<Kind, Record<string, Resource>> & State
    for (const kind of KINDS) {
      for (const [name, { id, shown: text, listed }] of read[kind]) {
        const { code: _, version, ...fields } = this.#fields(kind, listed)
        const resource: Resource =
          kind === 'destinations'
            ? { ...fields, contents: await versions(url, id) }
            : { ...fields, ...(version !== undefined && { version }) }
        if (shown(resource) !== text) throw new Error(`the versions of ${name} differ from what it shows: ${shown(resource)}, ${text}`)
        state[kind][name] = resource
      }
    }
    return state
  }
}

async function versions(url: string, id: string): Promise<(number | null)[]> {
  const all = await list<{ version: number; transformation: { code: string } | null }>(url, `/destinations/${id}/versions`)
  all.sort((one, other) => one.version - other.version)
  return all.map(({ transformation }) => numberIn(transformation?.code))
}

function codeWith(number: number): string {
  return `export default (message) => message.type === 'track' ? { ...message, context: { code: ${number} } } : message`
}

function numberIn(code: string | undefined): number | null {
  const [, digits] = /code: (\d+)/.exec(code ?? '') ?? []
  return digits === undefined ? null : Number(digits)
}
