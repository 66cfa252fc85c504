// What a route needs from its caller, as data. scope/authorization.ts applies it, the OpenAPI document shows it, and a test walks every route with
// every role and scope.

import type { ApiErrorCode } from '../../errors.ts'
import type { Role } from '../../store/store.ts'

/** The things that paths name, with the error for one that does not exist. */
export const SUBJECTS = {
  source: 'source_not_found',
  destination: 'destination_not_found',
  plan: 'plan_not_found',
  oauthApp: 'oauth_app_not_found',
  message: 'message_not_found',
  event: 'event_not_found',
  delivery: 'delivery_not_found',
  replay: 'replay_not_found',
  deletion: 'deletion_not_found',
  incident: 'incident_not_found',
  mute: 'mute_not_found',
} as const satisfies Record<string, ApiErrorCode>
export type SubjectKind = keyof typeof SUBJECTS

export interface RouteAccess {
  /** The lowest role that may call the route. */
  role: Role
  /**
   * `none`: nothing in the request or the response belongs to a source. `limited`: the handler works on parts that are limited to the sources of the
   * caller (control/scope/). `all`: only for callers with all sources.
   */
  sources: 'none' | 'limited' | 'all'
  /** What the path parameter `id` names. If it does not exist for the caller, that is the answer, whatever else is wrong with the request. */
  subject?: SubjectKind
  /** The subject is a destination, and the caller must have all sources that it serves. */
  whole?: true
  /** People may use it for what is their own, and a token for itself, whatever their role and sources. The handler checks whose it is. */
  own?: true
  /** Fields of the body that need a higher role than the route. */
  fieldRoles?: Readonly<Record<string, Role>>
  /** The fields of the body that callers below `admin` may send. If left out: all. */
  fields?: readonly string[]
}

/** Who may call a route. `public`: everybody, without a token. */
export type Access = RouteAccess | 'public'

const ORDER: Record<Role, number> = { viewer: 0, editor: 1, admin: 2 }

export function hasRole(own: Role, needed: Role): boolean {
  return ORDER[own] >= ORDER[needed]
}
