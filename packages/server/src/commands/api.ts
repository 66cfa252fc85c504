// The control API of a running service, as commands call it.

import type { JsonObject } from '@switchyard/protocol'

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface Api {
  readonly url: string
  /** `path` begins with /api. Rejects with a CommandProblem that says what the service answered, or that there is none. */
  get(path: string, query?: Query): Promise<JsonObject>
  post(path: string, body?: object): Promise<JsonObject>
  patch(path: string, body: object): Promise<JsonObject>
  delete(path: string, query?: Query): Promise<JsonObject | undefined>
  /** Every entry of a list, page by page. */
  all(path: string, query?: Query): AsyncIterable<JsonObject>
  /** Server-sent events, until the signal; connects again by itself. */
  events(path: string, query: Query, signal: AbortSignal): AsyncIterable<{ event: string; data: JsonObject }>
}
