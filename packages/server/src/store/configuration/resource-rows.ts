// Sources, destinations, OAuth applications, tokens and tracking plans as rows, which are the same in both adapters, and what remains of deleted ones.

import type { Configuration, ControlToken, Destination, OAuthApp, Source, StoredPlan } from '../../model/configuration.ts'
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
export function columnsOf<K extends ResourceKind>(kind: K, resource: Resources[K], box: SecretBox): Record<string, string | number> {
  if (kind === 'tokens') {
    const { name, role, hash, createdAtMs } = resource as ControlToken
    return { name, role, hash, created_at: createdAtMs }
  }
  return { doc: JSON.stringify(kind === 'destinations' ? encryptDestination(resource as Destination, box) : resource) }
}

/** The doc that is kept of a deleted resource because other rows refer to it, or other nodes must learn of it. It contains no secrets. Null if the row is deleted. */
export function docOfDeleted<K extends ResourceKind>(kind: K, resource: Resources[K]): string | null {
  if (kind === 'destinations') return JSON.stringify(destinationWithoutSecrets(resource as Destination))
  if (kind === 'plans') return JSON.stringify({ id: resource.id })
  return kind === 'sources' ? JSON.stringify(resource) : null
}
