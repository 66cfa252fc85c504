// What a route of the control API is: data. control.ts serves the list of them, and a description of the API for machines
// is made from the same list, so that there is nothing to keep in step by hand.

import type { IncomingMessage } from 'node:http'
import { entityTag, isNamedIn } from '../api/entity-tag.ts'
import type { Schema } from '../api/schema.ts'
import type { Delivery } from '../delivery/delivery.ts'
import { ApiError, type ApiErrorCode } from '../errors.ts'
import type { LiveFeed } from '../observe/live.ts'
import type { Actor, Role, Store } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import type { Access, Caller } from './access/authorize.ts'
import type { OperatorTools } from './diagnostics/operator-tools.ts'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** For the few routes that are about the connection itself: logging in and out. */
export interface Exchange {
  request: IncomingMessage
  /** Null on a route that is open to everybody. */
  caller: Caller | null
  setHeader(name: string, value: string): void
}

export interface Route<Body = unknown, Query = unknown> {
  method: Method
  /** Under /api, with parameters as `:name`. */
  path: string
  /** In the imperative, without a full stop: `Create a source`. */
  summary: string
  /** Further sentences for the reference. */
  description?: string
  /** What the token's role must be at least. Default: `viewer` for GET, `admin` for the rest. */
  role?: Role
  /** Whether it is open to everybody: it has no actor then. */
  public?: true
  /** Absent: the route takes none, and what comes is not looked at. An absent body is read as `{}`. */
  body?: Schema<Body>
  query?: Schema<Query>
  status: 200 | 201 | 202 | 204
  /** Of the answer with `status`; absent for 204. */
  answer?: Schema<unknown>
  /** Server-sent events instead of one answer; `answer` is the form of each event's data, and `handle` returns an async iterable. */
  stream?: true
  /** The answer is a file's bytes instead of JSON: `handle` returns a stream of them. */
  bytes?: true
  /** The answer is one resource with an ETag; a route that changes or deletes one accepts If-Match. */
  tagged?: true
  /** What it can refuse with, beyond what every route can: authorization, form, store. */
  errors?: readonly ApiErrorCode[]
  handle(request: {
    params: Readonly<Record<string, string>>
    body: Body
    query: Query
    actor: Actor
    /** Of the actor. */
    role: Role
    exchange: Exchange
  }): unknown
}

/** Fixes what `handle` is given by the schemas beside it. */
export function route<Body = undefined, Query = undefined>(route: Route<Body, Query>): Route {
  return route
}

/** Throws when the request has an If-Match that does not match the resource as it is stored now. */
export function checkIfMatch({ request }: Exchange, shown: unknown): void {
  const header = request.headers['if-match']
  if (header !== undefined && !isNamedIn(header, entityTag(shown))) throw new ApiError('changed_since_read')
}

/** What a token's role must be at least. */
export function roleOf({ role, method }: Route): Role {
  return role ?? (method === 'GET' ? 'viewer' : 'admin')
}

/** The functions of delivery that the control API calls. */
export type ControlDelivery = Pick<Delivery, 'test' | 'health' | 'describeRequest'>

/** What routes are made from. */
export interface ControlParts {
  store: Store
  clock: Clock
  delivery: ControlDelivery
  access: Access
  /** Refuses a URL that no attempt would be allowed to dial, with a sentence that completes "The field …". */
  checkUrl?: ((url: string) => string | null) | undefined
  operatorTools?: OperatorTools | undefined
  live?: Pick<LiveFeed, 'listen'> | undefined
  /** Brings counts that are still in memory to the store, so that the last seconds are in the series too. */
  flushStats?: (() => Promise<void>) | undefined
  /** Makes the steps of replay jobs, and is told when there is one to make. */
  replays?: { wake(): void } | undefined
}
