// Sources, destinations, OAuth applications, tokens and tracking plans as rows, which are the same in both adapters, and what remains of deleted ones.

import type { Configuration, ControlToken, Destination, OAuthApp, Role, Source, StoredPlan } from '../../model/configuration.ts'
import type { SecretBox } from '../../secrets/secret-box.ts'
import { destinationWithoutSecrets, encryptDestination } from './stored-destination.ts'

export interface Resources {
  sources: Source
  destinations: Destination
  oauthApps: OAuthApp
  tokens: ControlToken
  plans: StoredPlan
}

export type ResourceKind = keyof Resources

export const EMPTY_CONFIGURATION: Configuration = {
  sources: new Map(),
  destinations: new Map(),
  suppressions: new Map(),
  oauthApps: new Map(),
  tokens: new Map(),
  plans: new Map(),
}

export const TABLES = {
  sources: 'sources',
  destinations: 'destinations',
  oauthApps: 'oauth_apps',
  tokens: 'tokens',
  plans: 'plans',
} as const

/** The columns of a row beside its id, with secrets encrypted. */
export function columnsOf<K extends ResourceKind>(kind: K, resource: Resources[K], box: SecretBox): Record<string, string | number | null> {
  if (kind === 'tokens') return tokenColumns(resource as ControlToken)
  return { doc: JSON.stringify(kind === 'destinations' ? encryptDestination(resource as Destination, box) : resource) }
}

/** The doc that is kept of a deleted resource because other rows refer to it, or other nodes must learn of it. It contains no secrets. Null if the row is deleted. */
export function docOfDeleted<K extends ResourceKind>(kind: K, resource: Resources[K]): string | null {
  if (kind === 'destinations') return JSON.stringify(destinationWithoutSecrets(resource as Destination))
  if (kind === 'plans') return JSON.stringify({ id: resource.id })
  return kind === 'sources' ? JSON.stringify(resource) : null
}

/** What a node of an earlier version does not understand about a token. */
type TokenLimits = Pick<ControlToken, 'role' | 'sources' | 'expiresAtMs' | 'owner' | 'hash'>

export interface TokenRow extends Pick<ControlToken, 'id' | 'name' | 'createdAtMs'> {
  role: string
  hash: string
  /** TokenLimits as JSON; null if the other columns say it all. */
  limits: string | null
}

export const SELECT_TOKENS = 'SELECT id, name, role, hash, limits, created_at AS "createdAtMs" FROM tokens ORDER BY num'

/**
 * Nodes of earlier versions, which may run beside this one, treat every role but `viewer` as admin, and know no sources and no expiry. For a token
 * that they would misunderstand, they see a hash that belongs to no token, so they reject it.
 */
function tokenColumns({ id, name, role, sources, expiresAtMs, owner, hash, createdAtMs }: ControlToken) {
  const limits: TokenLimits = { role, sources, expiresAtMs, owner, hash }
  return role !== 'editor' && sources === 'all' && expiresAtMs === null && owner === null
    ? { name, role, hash, limits: null, created_at: createdAtMs }
    : { name, role: 'viewer', hash: `limited ${id}`, limits: JSON.stringify(limits), created_at: createdAtMs }
}

export function tokenOf({ limits, role, ...row }: TokenRow): ControlToken {
  const unlimited = { sources: 'all', expiresAtMs: null, owner: null } as const
  return { ...row, role: role as Role, ...unlimited, ...(limits === null ? {} : (JSON.parse(limits) as TokenLimits)) }
}
