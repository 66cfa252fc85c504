// The part of Segment's library that the runner uses, with types of our own: the library's would bring those of browsers into the whole project.

import { type Readable, Stream } from 'node:stream'
import type { JsonObject } from '@switchyard/protocol'
import { boundMappingKit } from './bounded-mapping.ts'
import { type Definition, require } from './definitions.ts'
import type { OAuthData } from './oauth.ts'
import { replaceMethod } from './recording/replace-method.ts'
import type { LibraryClient } from './requests/library-requests.ts'
import { requestClient } from './requests/request-client.ts'

export interface LibraryAction {
  readonly hasBatchSupport: boolean
  readonly definition: {
    readonly perform?: object
    readonly dynamicFields?: Readonly<Record<string, unknown>>
    readonly syncMode?: { default?: string }
    readonly fields?: Readonly<Record<string, { default?: unknown }>>
  }
  removeAllListeners(event: string): void
}

/** The part of an action's class that is replaced. */
interface RequestingAction {
  extendRequest?: (data: object) => Record<string, unknown>
  afterResponse(...args: unknown[]): unknown
  createRequestClient(data: { statsContext?: object; signal?: AbortSignal }): LibraryClient
}

/** What an action gets beside the messages. */
export interface ActionInput {
  mapping: JsonObject
  settings: JsonObject
  auth: object
  subscriptionMetadata: object
  features: object
  transactionContext: object
  stateContext?: object | undefined
  statsContext: object
  logger: object
  signal: AbortSignal
}

export interface LibraryDestination {
  readonly actions: Readonly<Record<string, LibraryAction>>
  validateSettings(settings: object): void
  executeAction(action: string, input: ActionInput & { event: JsonObject }): Promise<unknown>
  executeBatch(action: string, input: ActionInput & { events: JsonObject[] }): Promise<unknown[]>
  executeDynamicField(action: string, field: string, data: object): Promise<unknown>
  refreshAccessToken(settings: object, data: OAuthData): Promise<{ accessToken: string; refreshToken?: string } | undefined>
}

/** Of a definition: what the library's own function for deletions calls. */
export interface Deleting {
  readonly extendRequest?: (data: object) => object
  readonly onDelete?: (request: unknown, data: object) => unknown
}

interface Library {
  Response: (new () => object) & { prototype: object }
  Destination: new (definition: Definition) => LibraryDestination
  createRequestClient(...options: object[]): LibraryClient
  transform(mapping: object, data: object): JsonObject
}

let loaded: Library | null = null

/** Loaded when the first integration is opened, after the recorder is installed. */
export function library(): Library {
  if (loaded !== null) return loaded
  boundMappingKit()
  loaded = require('@segment/actions-core') as Library
  repairClone(loaded.Response.prototype)
  return loaded
}

/**
 * The library reads a clone of each response. If the connection fails or the deadline passes while it reads, node-fetch emits the error on the body of
 * the original response. Nothing listens there, so the process would crash, and the body of the clone would never end.
 */
function repairClone(response: object): void {
  replaceMethod(response, 'clone', function (this: { body: Readable | Buffer | null }, original) {
    const copy: { body: Readable | Buffer | null } = Reflect.apply(original, this, [])
    const { body } = this
    // The answers of our own request client have been read already.
    if (body instanceof Stream) body.on('error', (error) => (copy.body as Readable | null)?.destroy(error))
    return copy
  })
}

type PerformBatch = (...args: unknown[]) => unknown

/**
 * If `performBatch` returns one answer, the library reads its status. If it returns a list of answers, the library ignores them, and the batch counts
 * as delivered even if the tool refused it: all batches of Emarsys. So an answer in such a list that is an error fails the batch.
 */
function withCheckedBatches(definition: Definition): Definition {
  const actions = Object.entries(definition.actions).map(([slug, action]) => {
    const { performBatch } = action
    if (typeof performBatch !== 'function') return [slug, action]
    return [slug, Object.assign({}, action, { performBatch: checkedBatch(performBatch as PerformBatch) })]
  })
  return { ...definition, actions: Object.fromEntries(actions) as Definition['actions'] }
}

function checkedBatch(performBatch: PerformBatch): PerformBatch {
  return async (...args) => {
    const result = await performBatch(...args)
    const refused = Array.isArray(result) ? result.filter(isErrorAnswer) : []
    // If a retry can help with one of them, the batch is retried.
    const response = refused.find(({ status }) => status === 429 || status >= 500) ?? refused[0]
    if (response === undefined) return result
    throw Object.assign(new Error(`The tool answered ${response.status} ${response.statusText}.`), { name: 'HTTPError', response })
  }
}

function isErrorAnswer(value: unknown): value is { status: number; statusText: string } {
  return value instanceof library().Response && (value as { status?: unknown } as { status: number }).status >= 400
}

export function createDestination(definition: Definition): LibraryDestination {
  const destination = new (library().Destination)(withCheckedBatches(definition))
  // The library keeps every answer for its own tests, forever.
  for (const action of Object.values(destination.actions)) {
    action.removeAllListeners('response')
    useOwnRequests(action as unknown as RequestingAction)
  }
  return destination
}

function useOwnRequests(action: RequestingAction): void {
  action.createRequestClient = (data) => {
    const own = action.extendRequest?.(data) ?? {}
    const { statsContext, signal } = data
    const shared = { statsContext, signal }
    const create = (): LibraryClient =>
      library().createRequestClient(own, { afterResponse: [action.afterResponse.bind(action)], ...shared })
    return requestClient(own, shared, create)
  }
}
