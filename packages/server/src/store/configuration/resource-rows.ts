// Sources, destinations, OAuth applications and tokens as rows, the same in both adapters, and what is kept of one that is deleted.

import type { SecretBox } from '../../secrets/secret-box.ts'
import type { Configuration, ControlToken, Destination, OAuthApp, Source } from '../port/model.ts'
import { emptiedDestination, sealDestination } from './stored-destination.ts'

export interface Things {
  sources: Source
  destinations: Destination
  oauthApps: OAuthApp
  tokens: ControlToken
}

export type Kind = keyof Things

/** Settings of these names hold sealed secrets. */
export const SECRET_PREFIX = 'secret.'

export const NOTHING: Configuration = {
  sources: new Map(),
  destinations: new Map(),
  suppressions: new Map(),
  oauthApps: new Map(),
  tokens: new Map(),
}

export const TABLES = { sources: 'sources', destinations: 'destinations', oauthApps: 'oauth_apps', tokens: 'tokens' } as const

/** The columns of a row beside its id, with secrets encrypted. */
export function columnsOf<K extends Kind>(kind: K, thing: Things[K], box: SecretBox): Record<string, string | number> {
  if (kind === 'tokens') {
    const { name, role, hash, createdAtMs } = thing as ControlToken
    return { name, role, hash, created_at: createdAtMs }
  }
  return { doc: JSON.stringify(kind === 'destinations' ? sealDestination(thing as Destination, box) : thing) }
}

/** The doc that is kept of a deleted thing because other rows refer to it. It contains no secrets. Null: the row is removed. */
export function leftOf<K extends Kind>(kind: K, thing: Things[K]): string | null {
  if (kind === 'destinations') return JSON.stringify(emptiedDestination(thing as Destination))
  return kind === 'sources' ? JSON.stringify(thing) : null
}
