// The things that are configured, as rows: what both adapters write of each kind, and what is left of it.

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

/** The doc of a thing, with its secrets sealed. Tokens have columns instead, and only a hash. */
export function docOf<K extends Kind>(kind: K, thing: Things[K], box: SecretBox): string {
  return JSON.stringify(kind === 'destinations' ? sealDestination(thing as Destination, box) : thing)
}

/** The doc of a deleted thing, for what still refers to it: nothing in it can be read with the key. */
export function leftOf<K extends Kind>(kind: K, thing: Things[K]): string {
  return JSON.stringify(kind === 'destinations' ? emptiedDestination(thing as Destination) : thing)
}
