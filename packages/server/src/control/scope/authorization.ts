// Decides whether a caller may use a route, from the data of the route: the only place where that happens. The order of answers is: 401
// (authorize.ts), 403 by role, 404 by scope, 403 for a destination that also serves other sources, and then everything that is wrong with the
// request itself.

import { listed } from '../../api/listed.ts'
import { ApiError } from '../../errors.ts'
import { EVENT_COUNTS } from '../../observe/event-catalog/event-documents.ts'
import type { Role, SourceScope } from '../../store/store.ts'
import type { Caller } from '../access/authorize.ts'
import type { ControlParts, Route } from '../routes/route.ts'
import { hasRole, SUBJECTS, type SubjectKind } from '../routes/route-access.ts'
import { limitedParts } from './limited-parts.ts'
import { createScope, type Scope } from './scope.ts'

/** The routes as one caller sees them: their handlers work on its parts. */
export interface CallerRoutes {
  routes: readonly Route[]
  parts: ControlParts
  /** Null for a caller with all sources. */
  scope: Scope | null
}

/** More scopes than there can be tokens. */
const MAX_SCOPES = 200

/** Makes the routes of each scope once. `make` must return the same routes in the same order for all parts. */
export class ScopedRoutes {
  readonly all: CallerRoutes
  readonly #make: (parts: ControlParts) => readonly Route[]
  readonly #limited = new Map<string, CallerRoutes>()

  constructor(parts: ControlParts, make: (parts: ControlParts) => readonly Route[]) {
    this.#make = make
    const shared: ControlParts = { learning: { running: 0 }, ...parts }
    this.all = { routes: make(shared), parts: shared, scope: null }
  }

  of(sources: SourceScope): CallerRoutes {
    if (sources === 'all') return this.all
    const key = [...sources].sort().join(' ')
    const known = this.#limited.get(key)
    if (known !== undefined) return known
    if (this.#limited.size >= MAX_SCOPES) this.#limited.clear()
    const scope = createScope(sources)
    const parts = limitedParts(this.all.parts, scope)
    const made = { routes: this.#make(parts), parts, scope }
    this.#limited.set(key, made)
    return made
  }
}

/** Throws forbidden. Called before the body is read. */
export function assertRole({ access }: Route, { actor, role, sources }: Caller, id: string): void {
  if (access === 'public' || (access.own && (actor.type === 'person' || id === actor.id))) return
  if (!hasRole(role, access.role)) throw roleError(access.role, role)
  if (access.sources === 'all' && sources !== 'all')
    throw new ApiError('forbidden', {
      message: 'This operation concerns all sources, but your access is limited to some of them. Ask an admin to do it.',
    })
}

function roleError(needed: Role, own: Role): ApiError {
  const roles = needed === 'admin' ? 'the role admin' : 'the role editor or admin'
  return new ApiError('forbidden', { message: `This operation requires ${roles}, but you have the role ${own}. Ask an admin.` })
}

/** Throws forbidden if the body has a field that the role may not send. */
export function assertFields({ access, body: schema }: Route, { role }: Caller, body: unknown): void {
  if (access === 'public' || role === 'admin' || typeof body !== 'object' || body === null) return
  for (const [name, needed] of Object.entries(access.fieldRoles ?? {}))
    if (Object.hasOwn(body, name) && !hasRole(role, needed)) throw roleError(needed, role)
  if (access.fields === undefined) return
  const known = (schema as { fields?: Readonly<Record<string, unknown>> } | undefined)?.fields ?? {}
  const { fields } = access
  const refused = Object.keys(body).filter((name) => Object.hasOwn(known, name) && !fields.includes(name))
  if (refused.length > 0)
    throw new ApiError('forbidden', {
      message: `Only admins can change ${listed(refused)}. With the role ${role}, you can change ${listed(fields)}.`,
    })
}

/** Throws shared_destination. A destination that this process does not know yet is checked in the transaction of the change. */
export function assertWhole({ access }: Route, own: CallerRoutes, all: CallerRoutes, id: string): void {
  if (access === 'public' || !access.whole || !own.parts.store.configuration().destinations.has(id)) return
  if (!isWholeFor(own, all)(id)) throw new ApiError('shared_destination')
}

/** Whether a caller has all sources that a destination serves. */
export function isWholeFor({ scope }: CallerRoutes, all: CallerRoutes): (destinationId: string) => boolean {
  return (destinationId) => scope === null || scope.hasWhole(all.parts.store.configuration(), destinationId)
}

/** Errors that are the answer even if the subject of the path does not exist. */
const BEFORE_SCOPE: ReadonlySet<number> = new Set([401, 403, 404, 405, 429])

/** The error to answer a limited caller with: that the subject does not exist comes before everything that is wrong with the request. */
export async function faultInOrder(fault: ApiError, { access }: Route, { parts }: CallerRoutes, id: string): Promise<ApiError> {
  if (fault.status >= 500 || BEFORE_SCOPE.has(fault.status) || access === 'public' || access.subject === undefined) return fault
  return (await EXISTS[access.subject](parts, id)) ? fault : new ApiError(SUBJECTS[access.subject])
}

const isDocumentKey = (id: string): boolean => /^[\x20-\x5b\x5d-\x7e]{1,200}$/.test(id)

const EXISTS: Record<SubjectKind, (parts: ControlParts, id: string) => boolean | Promise<boolean>> = {
  source: ({ store }, id) => store.configuration().sources.has(id),
  destination: ({ store }, id) => store.configuration().destinations.has(id),
  plan: ({ store }, id) => store.configuration().plans.has(id),
  oauthApp: ({ store }, id) => store.configuration().oauthApps.has(id),
  message: async ({ store }, id) => (await store.history.trails(id)).length > 0,
  event: async ({ store }, id) => isDocumentKey(id) && (await store.documents.get(EVENT_COUNTS, id)) !== undefined,
  delivery: async ({ store }, id) => (await store.history.delivery(id)) !== undefined,
  replay: async ({ store }, id) => (await store.replays.one(id)) !== undefined,
  deletion: async ({ store }, id) => (await store.deletions.one(id)) !== undefined,
  incident: async ({ alerts }, id) => (await alerts?.incident(id)) !== undefined,
  mute: async ({ alerts, clock }, id) => (await alerts?.settings.mutes(clock.wallMs()))?.some((mute) => mute.id === id) ?? false,
}
