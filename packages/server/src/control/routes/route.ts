// A route of the control API, as data. control.ts serves the list of routes, and the OpenAPI document is made from the same list, so that
// nothing has to be kept in step by hand.

import type { IncomingMessage } from 'node:http'
import type { CatalogEntry, CatalogIntegration } from '@switchyard/integrations/catalog'
import type { PlanFault } from '@switchyard/protocol'
import type { AlertSettings } from '../../alerts/alert-settings.ts'
import type { Alerts } from '../../alerts/alerts.ts'
import { entityTag, isNamedIn } from '../../api/entity-tag.ts'
import type { Fields, Schema } from '../../api/schema.ts'
import type { Delivery } from '../../delivery/delivery.ts'
import type { CodeProblem } from '../../delivery/sender/transforming/transformer.ts'
import { ApiError, type ApiErrorCode } from '../../errors.ts'
import type { Privacy } from '../../ingest/privacy/privacy.ts'
import type { LiveFeed } from '../../observe/live.ts'
import type { ArchiveFeed } from '../../replaying/archive-feed.ts'
import type { Actor, Configuration, Role, Routing, SegmentContent, SourceScope, Store } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import type { Caller, Access as CallerAccess } from '../access/authorize.ts'
import type { CatalogInstaller } from './catalog-installer.ts'
import type { LakeQueries } from './lake-queries.ts'
import type { OperatorTools } from './operator-tools.ts'
import type { Access } from './route-access.ts'

/** Loads the code of a transformation in the sandbox, and returns what is wrong with it. */
export type CheckCode = (code: string) => Promise<CodeProblem | null>

export interface Catalog {
  readCatalog(): Promise<readonly CatalogEntry[]>
  readIntegration(slug: string): Promise<CatalogIntegration | null>
}

/** Called each time, because the package can be installed while the service runs. */
export type OpenCatalog = () => Promise<Catalog | null>

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** The HTTP exchange, for the few routes that need headers: login, logout and If-Match. */
export interface Exchange {
  request: IncomingMessage
  /** Null on a public route. */
  caller: Caller | null
  setHeader(name: string, value: string): void
}

/** The response of a route for browsers. */
export interface Page {
  status: 200 | 303 | 400 | 403
  /** The content; without it, the response is a redirect. */
  html?: string
  location?: string
  contentSecurityPolicy?: string
}

interface Definition<Body, Query> {
  /** In the imperative, without a full stop: `Create a source`. */
  summary: string
  /** Further sentences for the reference. */
  description?: string
  /** Who may call it, and how its answer is limited to the sources of the caller. A public route has no actor. */
  access: Access
  /** The schema of the body. Without it, the body of a request is ignored. A missing body is read as `{}`. */
  body?: Schema<Body>
  query?: Schema<Query>
  /** Default: 200. */
  status?: 200 | 201 | 202 | 204
  /** The schema of the response with `status`; absent for 204. */
  answer?: Schema<unknown>
  /** The response is a stream of server-sent events: `answer` is the schema of the data of each event, and `handle` returns an async iterable. */
  stream?: true
  /** The response is the content of a file instead of JSON: `handle` returns a stream of bytes. */
  bytes?: true
  /** The response is for a browser: `handle` returns a Page. Here is what each status means. */
  pages?: Readonly<Partial<Record<Page['status'], string>>>
  /**
   * Large responses are compressed. Not for responses with write keys, tokens or values of settings: the size of a compressed response tells somebody who
   * can choose a part of it about the rest of it (BREACH).
   */
  compressed?: true
  /** The body is a form instead of JSON. */
  form?: true
  /** The response is one resource with an ETag. A route that changes or deletes a resource accepts If-Match. */
  tagged?: true
  /** The errors of this route, in addition to those that every route can return (control-operations.ts). */
  errors?: readonly ApiErrorCode[]
  handle(request: {
    params: Readonly<Record<string, string>>
    body: Body
    query: Query
    actor: Actor
    /** The role of the actor. */
    role: Role
    /** The sources of the actor. */
    sources: SourceScope
    /** The role with which the actor sees a destination: that of a viewer, if it also serves other sources. */
    roleOn: (destinationId: string) => Role
    /** Whether the actor has all sources that a destination serves. */
    isWhole: (destinationId: string) => boolean
    exchange: Exchange
  }): unknown
}

export interface Route<Body = unknown, Query = unknown> extends Definition<Body, Query> {
  method: Method
  /** Under /api, with parameters as `:name`. */
  path: string
  status: NonNullable<Definition<Body, Query>['status']>
}

/** Infers the types of `handle` from the schemas of the route. */
export function route<Body = undefined, Query = undefined>(method: Method, path: string, definition: Definition<Body, Query>): Route {
  const { query, errors = [] } = definition
  const { fields = {} } = (query ?? {}) as { fields?: Fields }
  // Every list has pages.
  const ofPages: readonly ApiErrorCode[] = 'cursor' in fields ? ['invalid_cursor'] : []
  return { status: 200, ...definition, method, path, errors: [...errors, ...ofPages] }
}

/** Throws changed_since_read if the request has an If-Match header that does not match the stored resource. */
export function checkIfMatch({ request }: Exchange, shown: unknown): void {
  const header = request.headers['if-match']
  if (header !== undefined && !isNamedIn(header, entityTag(shown))) throw new ApiError('changed_since_read')
}

/** The functions of delivery that the control API calls. */
export type ControlDelivery = Pick<Delivery, 'test' | 'health' | 'retryNow' | 'preview' | 'choices' | 'describeRequest' | 'checkWarehouse'>

/** The functions of alerts that the control API calls. */
export type ControlAlerts = Pick<Alerts, 'mutesInForce' | 'incidents' | 'incident' | 'acknowledge' | 'openCount' | 'test'> & {
  settings: Pick<AlertSettings, keyof AlertSettings>
}

/** What the routes need from the rest of the service. */
export interface ControlParts {
  store: Store
  clock: Clock
  delivery: ControlDelivery
  access: CallerAccess
  privacy: Privacy
  /** Returns why no attempt would be allowed to connect to a URL, as the end of a sentence that starts with the field; null if it is allowed. */
  checkUrl?: ((url: string) => string | null) | undefined
  /** The folder below which lakes in folders must be; null if there is none. */
  lakeFolder?: string | null | undefined
  checkCode?: CheckCode | undefined
  /** Routing: to which destinations the messages of a batch are sent, and why not to the others. */
  route?: ((configuration: Configuration, sourceId: string, content: SegmentContent) => Routing) | undefined
  /** Returns the catalogue of integrations; null if the package is not installed. */
  catalog?: OpenCatalog | undefined
  operatorTools?: OperatorTools | undefined
  catalogInstaller?: CatalogInstaller | undefined
  /** Queries over lakes. Without it, they are not possible. */
  queries?: LakeQueries | undefined
  /** Without it, warehouses are created as if the package was installed. */
  warehouseInstaller?: CatalogInstaller | undefined
  live?: Pick<LiveFeed, 'listen'> | undefined
  /** Writes counts that are still in memory to the store, so that statistics include the last seconds. */
  flushStats?: (() => Promise<void>) | undefined
  /** Does the same for the event catalogue. */
  flushEvents?: (() => Promise<void>) | undefined
  flushViolations?: (() => Promise<void>) | undefined
  /** The rules of a plan that this process could not apply. */
  planFaults?: ((planId: string) => readonly PlanFault[]) | undefined
  /** The runner of replay jobs. It is woken when a job was created or changed. */
  replays?: { wake(): void } | undefined
  /** Counts the messages in archives of lakes. Without it, they cannot be replayed. */
  archives?: Pick<ArchiveFeed, 'size'> | undefined
  /** Asks for a load of everything that waits for a warehouse. */
  loads?: { want(destinationId: string): Promise<void> } | undefined
  /** Asks for the upkeep of a warehouse. */
  upkeep?: { want(destinationId: string): Promise<void> } | undefined
  alerts?: ControlAlerts | undefined
  /** How many plans are being learned now, for all callers together. */
  learning?: { running: number } | undefined
}
