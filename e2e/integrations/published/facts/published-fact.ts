// What the tests of Segment's definitions publish about the requests of an action, written down as data: for these settings and this event, these
// requests. The events are our own. Nothing here comes from running the library, so a mistake that the service and the library share is still found.

import type { JsonObject } from '@switchyard/protocol'

export interface PublishedFact {
  /** The slug. */
  integration: string
  /** What a user types into the form, by the key of the field: `apiKey`, or `oauth.accessToken`. The rest keeps its default. */
  settings: Readonly<Record<string, string | number | boolean | readonly string[]>>
  /** The only action that is added in the form; if missing, the destination has the automatic presets of a new one. */
  action?: string
  /** When the action runs, if its definition does not say. */
  subscribe?: string
  /** The fields of the action that the user changes; the others keep their defaults. */
  mapping?: JsonObject
  /** At EVENT_TIME. */
  event: JsonObject & { type: string }
  /** What the tool answers, by method and URL without the query; 200 and {} to all other requests. */
  answers?: Readonly<Record<string, PublishedAnswer>>
  /** In any order. The event must be delivered, and there must be no other requests. */
  requests: readonly PublishedRequest[]
}

export interface PublishedAnswer {
  status?: number
  body?: JsonObject[string]
}

export interface PublishedRequest {
  /** Method and URL, with the query (in any order) unless `partOfQuery` has it. */
  request: string
  /** What the query contains at least. */
  partOfQuery?: Readonly<Record<string, string>>
  /** Only those that matter. */
  headers?: Readonly<Record<string, string>>
  /** The whole body, if its content is published. A form is an object with texts. */
  body?: JsonObject[string]
  /** What the body contains at least. Lists are compared item by item. */
  partOfBody?: JsonObject[string]
}

export const EVENT_TIME = '2026-11-01T10:20:30.000Z'
export const EVENT_MS = Date.parse(EVENT_TIME)
export const EVENT_SECONDS = EVENT_MS / 1_000

export const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` })
export const basic = (user: string, password = ''): { authorization: string } => ({ authorization: `Basic ${btoa(`${user}:${password}`)}` })
