// The part of Segment's library that the runner uses, with types of our own: the library's would bring those of browsers into the whole project.

import type { JsonObject } from '@switchyard/protocol'
import { type Definition, require } from './definitions.ts'
import type { OAuthData } from './oauth.ts'

export interface LibraryAction {
  readonly hasBatchSupport: boolean
  readonly definition: { readonly fields?: Readonly<Record<string, { default?: unknown }>> }
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
  readonly onDelete?: (event: JsonObject, settings: object, options: object) => Promise<unknown>
  validateSettings(settings: object): void
  executeAction(action: string, input: ActionInput & { event: JsonObject }): Promise<unknown>
  executeBatch(action: string, input: ActionInput & { events: JsonObject[] }): Promise<unknown[]>
  refreshAccessToken(settings: object, data: OAuthData): Promise<{ accessToken: string; refreshToken?: string } | undefined>
}

interface Library {
  Destination: new (definition: Definition) => LibraryDestination
  transform(mapping: object, data: object): JsonObject
}

/** Loaded when the first integration is opened, after the recorder is installed. */
export function library(): Library {
  return require('@segment/actions-core') as Library
}

export function createDestination(definition: Definition): LibraryDestination {
  const destination = new (library().Destination)(definition)
  // The library keeps every answer for its own tests, forever.
  for (const action of Object.values(destination.actions)) action.removeAllListeners('response')
  return destination
}
