// The parts of Segment's library and of node-fetch, through which it makes requests, that our own request client uses: their classes, so that
// definitions get the objects that they know.

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { require } from '../definitions.ts'

export interface FetchHeaders {
  raw(): Record<string, string[]>
  get(name: string): string | null
  delete(name: string): void
  entries(): Iterable<[string, string]>
}

export interface FetchRequest {
  readonly url: string
}

export interface FetchResponse {
  readonly ok: boolean
  readonly status: number
  readonly statusText: string
  readonly headers: FetchHeaders
  text(): Promise<string>
  clone(): FetchResponse
  content?: string
  data?: unknown
  options?: object
}

export type LibraryClient = (url: unknown, options?: unknown) => Promise<FetchResponse>

interface NodeFetch {
  (request: FetchRequest): Promise<FetchResponse>
  Headers: new (from?: FetchHeaders | Readonly<Record<string, string>>) => FetchHeaders
  Request: new (url: string, options: object) => FetchRequest
  Response: new (body: Buffer, options: object) => FetchResponse
  FetchError: new (message: string, type: string, cause?: Error) => Error
  AbortError: new (message: string) => Error
}

interface RequestClientModule {
  HTTPError: new (response: FetchResponse, request: FetchRequest, options: object) => Error
  TimeoutError: new (request: FetchRequest, options: object) => Error
  RequestClientError: new () => Error
  RequestTimeoutError: new () => Error
}

export interface LibraryRequests extends RequestClientModule {
  fetch: NodeFetch
}

let loaded: LibraryRequests | null = null

export function libraryRequests(): LibraryRequests {
  if (loaded !== null) return loaded
  const core = require.resolve('@segment/actions-core')
  const { HTTPError, TimeoutError, RequestClientError, RequestTimeoutError } = require(
    join(dirname(core), 'request-client.js'),
  ) as RequestClientModule
  const crossFetch = createRequire(core).resolve('cross-fetch')
  const fetch = createRequire(crossFetch)('node-fetch') as NodeFetch
  loaded = { HTTPError, TimeoutError, RequestClientError, RequestTimeoutError, fetch }
  return loaded
}
