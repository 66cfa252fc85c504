// The routes that every resource of the configuration has: list, create, retrieve, update and delete. A resource adds what is its own: the
// checks of a change, and further routes. Reads come from the configuration in memory; changes are checked against the stored configuration.

import type { JsonObject } from '@switchyard/protocol'
import { SEARCH_FILTERS } from '../../api/list-filters.ts'
import { queryBoolean } from '../../api/query-values.ts'
import { object, type Schema, withDefault } from '../../api/schema.ts'
import { ApiError, type ApiErrorCode } from '../../errors.ts'
import type { Actor, Audit, ChangeOf, Configuration, FromStored, Role } from '../../store/store.ts'
import { audited } from './audit-entries.ts'
import { listAnswer, listQuery, pageAnswer, pageOf, pageRequest } from './query.ts'
import { checkIfMatch, type Route, route } from './route.ts'
import type { RouteAccess, SubjectKind } from './route-access.ts'

interface Resource {
  id: string
  name: string
  createdAtMs: number
}

/** The caller of a request, as far as it decides what is shown. */
interface Viewer {
  role: Role
  roleOn: (id: string) => Role
  /** Only for a destination. */
  isWhole: (id: string) => boolean
}

export interface ResourceKind<R extends Resource> {
  path: string
  /** With its article, such as `a source`. */
  noun: string
  plural: string
  /** The first part of its actions in the audit log. */
  action: string
  subject: SubjectKind
  /** The lowest role that may create, change and delete it. */
  changedBy: Role
  notFound: ApiErrorCode
  answer: Schema<unknown>
  stored: () => ReadonlyMap<string, R>
  view: (resource: R) => JsonObject
  /** What a caller gets to see, if it is not the same for all. */
  viewFor?: (viewer: Viewer) => (resource: R) => JsonObject
  /** Whether a text of the resource contains another text. With it, the list can be searched. */
  hasText?: (resource: R, text: string) => boolean
  /** The sources that it belongs to. */
  sourcesOf: (resource: R) => readonly string[]
  /** How a change is recorded, if not as `view` shows it. */
  audit?: (actor: Actor, action: string) => Audit<R>
  /** What the caller should know about a resource that was created or changed, although it was accepted. */
  warnings?: (resource: R) => Promise<readonly object[]>
  /** Throws if the resource must not be changed. */
  checkChange?: (before: R) => void
}

export const CREATION_QUERY = object({
  uniqueName: withDefault(
    queryBoolean({ description: 'If true and the name is already in use, nothing is created and the request fails with `name_taken`.' }),
    false,
  ),
})

/** Throws name_taken if the name must be unique and is not. */
export function checkName({ uniqueName }: { uniqueName: boolean }, name: string, others: ReadonlyMap<string, { name: string }>): void {
  if (uniqueName && [...others.values()].some((other) => other.name === name)) {
    throw new ApiError('name_taken', {
      field: 'name',
      message: `The name ${JSON.stringify(name)} is already in use, and the request has uniqueName=true. Choose another name.`,
    })
  }
}

export function found<R>({ notFound }: { notFound: ApiErrorCode }, resource: R | undefined): R {
  if (resource === undefined) throw new ApiError(notFound)
  return resource
}

interface About {
  description?: string
  errors?: readonly ApiErrorCode[]
}

export function listRoute<R extends Resource>(kind: ResourceKind<R>): Route {
  const list = kind.path.slice(1)
  return route('GET', kind.path, {
    summary: `List ${kind.plural}, oldest first`,
    access: { role: 'viewer', sources: 'limited' },
    query: listQuery(kind.hasText === undefined ? {} : SEARCH_FILTERS),
    answer: listAnswer(kind.answer),
    handle({ query, ...viewer }) {
      const { search } = query as { search?: string }
      const wanted = [...kind.stored().values()].filter((resource) => search === undefined || kind.hasText?.(resource, search))
      return pageAnswer(list, pageOf(wanted, pageRequest(list, query)), viewFor(kind, viewer))
    },
  })
}

export function readRoute<R extends Resource>(kind: ResourceKind<R>): Route {
  return route('GET', `${kind.path}/:id`, {
    summary: `Retrieve ${kind.noun}`,
    access: { role: 'viewer', sources: 'limited', subject: kind.subject },
    answer: kind.answer,
    tagged: true,
    errors: [kind.notFound],
    handle: ({ params, ...viewer }) => viewFor(kind, viewer)(found(kind, kind.stored().get(params['id'] ?? ''))),
  })
}

/** `wanted` checks the request, and returns the function that makes the new resource from the stored configuration. */
export function createRoute<R extends Resource, New extends { name: string }, Body, Query extends { uniqueName: boolean }>(
  kind: ResourceKind<R>,
  {
    body,
    query,
    others,
    wanted,
    create,
    errors = [],
    ...about
  }: About & {
    body: Schema<Body>
    query: Schema<Query>
    /** The resources of the same kind. */
    others: (configuration: Configuration) => ReadonlyMap<string, R>
    wanted: (body: Body, query: Query) => ((configuration: Configuration) => New) | Promise<(configuration: Configuration) => New>
    create: (wanted: FromStored<New>, audit: Audit<R>) => Promise<R>
  },
): Route {
  return route<Body, Query>('POST', kind.path, {
    summary: `Create ${kind.noun}`,
    access: changeAccess(kind),
    ...about,
    query,
    body,
    status: 201,
    answer: kind.answer,
    tagged: true,
    errors: ['name_taken', ...errors],
    async handle({ body: given, query: asked, actor }) {
      const make = await wanted(given, asked)
      const checked = (configuration: Configuration): New => {
        checkName(asked, (given as { name: string }).name, others(configuration))
        return make(configuration)
      }
      return await withWarnings(kind, await create(checked, auditOf(kind, actor, 'create')))
    },
  })
}

/** `wanted` checks the request, and returns the function that makes the changes from what is stored. */
export function updateRoute<R extends Resource, New, Body>(
  kind: ResourceKind<R>,
  {
    body,
    wanted,
    update,
    access,
    errors = [],
    ...about
  }: About & {
    body: Schema<Body>
    /** What differs from the access to other changes of the kind. */
    access?: Pick<RouteAccess, 'role' | 'sources' | 'fields'>
    wanted: (body: Body, id: string) => ChangeFunction<R, New> | Promise<ChangeFunction<R, New>>
    update: (id: string, change: ChangeOf<R, New>, audit: Audit<R>) => Promise<R | undefined>
  },
): Route {
  return route<Body>('PATCH', `${kind.path}/:id`, {
    summary: `Update ${kind.noun}`,
    access: { ...changeAccess(kind), subject: kind.subject, ...(kind.subject === 'destination' && { whole: true }), ...access },
    ...about,
    body,
    answer: kind.answer,
    tagged: true,
    errors: [kind.notFound, ...errors],
    async handle({ params, body: given, actor, exchange, ...viewer }) {
      const id = params['id'] ?? ''
      const make = await wanted(given, id)
      const checked = (before: R, configuration: Configuration): Partial<New> => {
        kind.checkChange?.(before)
        checkIfMatch(exchange, viewFor(kind, viewer)(before))
        return make(before, configuration)
      }
      return await withWarnings(kind, found(kind, await update(id, checked, auditOf(kind, actor, 'update'))))
    },
  })
}

async function withWarnings<R extends Resource>(kind: ResourceKind<R>, resource: R): Promise<JsonObject> {
  const warnings = (await kind.warnings?.(resource)) ?? []
  return warnings.length === 0 ? kind.view(resource) : { ...kind.view(resource), warnings: [...warnings] }
}

type ChangeFunction<R, New> = (before: R, configuration: Configuration) => Partial<New>

export function deleteRoute<R extends Resource>(
  kind: ResourceKind<R>,
  { remove, errors = [], ...about }: About & { remove: (id: string, audit: Audit<R>, check: (before: R) => void) => Promise<boolean> },
): Route {
  return route('DELETE', `${kind.path}/:id`, {
    summary: `Delete ${kind.noun}`,
    access: { ...changeAccess(kind), subject: kind.subject, ...(kind.subject === 'destination' && { whole: true }) },
    ...about,
    status: 204,
    tagged: true,
    errors: [kind.notFound, ...errors],
    async handle({ params, actor, exchange, ...viewer }) {
      const check = (before: R): void => {
        kind.checkChange?.(before)
        checkIfMatch(exchange, viewFor(kind, viewer)(before))
      }
      if (!(await remove(params['id'] ?? '', auditOf(kind, actor, 'delete'), check))) throw new ApiError(kind.notFound)
    },
  })
}

export function auditOf<R extends Resource>(kind: ResourceKind<R>, actor: Actor, what: string): Audit<R> {
  const action = `${kind.action}.${what}`
  return kind.audit?.(actor, action) ?? audited(actor, action, kind.view, kind.sourcesOf)
}

function viewFor<R extends Resource>(kind: ResourceKind<R>, viewer: Viewer): (resource: R) => JsonObject {
  return kind.viewFor?.(viewer) ?? kind.view
}

/** What only admins change concerns all sources, or decides who sees them. */
function changeAccess({ changedBy }: { changedBy: Role }): Pick<RouteAccess, 'role' | 'sources'> {
  return { role: changedBy, sources: changedBy === 'admin' ? 'all' : 'limited' }
}
