// The part of Segment's library that the runner uses, with types of our own: the library's would bring those of browsers into the whole project.

import type { Readable } from 'node:stream'
import type { JsonObject } from '@switchyard/protocol'
import { type Definition, require } from './definitions.ts'
import type { OAuthData } from './oauth.ts'
import { replaceMethod } from './recording/replace-method.ts'

export interface LibraryAction {
  readonly hasBatchSupport: boolean
  readonly definition: { readonly syncMode?: { default?: string }; readonly fields?: Readonly<Record<string, { default?: unknown }>> }
  removeAllListeners(event: string): void
}

/** What an action gets beside the messages. */
export interface ActionInput {
  mapping: JsonObject
  settings: JsonObject
  auth: object
  subscriptionMetadata: object
  features: object
  statsContext: object
  logger: object
  signal: AbortSignal
}

export interface LibraryDestination {
  readonly actions: Readonly<Record<string, LibraryAction>>
  validateSettings(settings: object): void
  executeAction(action: string, input: ActionInput & { event: JsonObject }): Promise<unknown>
  executeBatch(action: string, input: ActionInput & { events: JsonObject[] }): Promise<unknown[]>
  refreshAccessToken(settings: object, data: OAuthData): Promise<{ accessToken: string; refreshToken?: string } | undefined>
}

/** Of a definition: what the library's own function for deletions calls. */
export interface Deleting {
  readonly extendRequest?: (data: object) => object
  readonly onDelete?: (request: unknown, data: object) => unknown
}

interface Library {
  Response: { prototype: object }
  Destination: new (definition: Definition) => LibraryDestination
  createRequestClient(...options: object[]): unknown
  transform(mapping: object, data: object): JsonObject
}

let loaded: Library | null = null

/** Loaded when the first integration is opened, after the recorder is installed. */
export function library(): Library {
  if (loaded !== null) return loaded
  loaded = require('@segment/actions-core') as Library
  repairClone(loaded.Response.prototype)
  return loaded
}

/**
 * The library reads a clone of each response. If the connection fails or the deadline passes while it reads, node-fetch emits the error on the body of
 * the original response. Nothing listens there, so the process would crash, and the body of the clone would never end.
 */
function repairClone(response: object): void {
  replaceMethod(response, 'clone', function (this: { body: Readable | null }, original) {
    const copy: { body: Readable | null } = Reflect.apply(original, this, [])
    this.body?.on('error', (error) => copy.body?.destroy(error))
    return copy
  })
}

export function createDestination(definition: Definition): LibraryDestination {
  const destination = new (library().Destination)(definition)
  // The library keeps every answer for its own tests, forever.
  for (const action of Object.values(destination.actions)) action.removeAllListeners('response')
  return destination
}
