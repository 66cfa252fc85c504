// The configuration, which operators change: sources, destinations, OAuth applications, tokens, and small settings beside them.

import type { Audit } from './audit.ts'
import type { ChangeOf, FromStored } from './from-stored.ts'
import type { ControlToken, Destination, NewControlToken, NewDestination, NewOAuthApp, NewSource, OAuthApp, Source } from './model.ts'

/** Throws to refuse the deletion of the resource as it is stored. */
export type Check<Thing> = (before: Thing) => void

export class WriteKeyTaken extends Error {
  override name = 'WriteKeyTaken'
}

export interface ConfigurationStore {
  createSource(source: FromStored<NewSource>, audit?: Audit<Source>): Promise<Source>
  /** Undefined when there is no such source. Rejects with WriteKeyTaken. */
  updateSource(id: string, change: ChangeOf<Source, NewSource>, audit?: Audit<Source>): Promise<Source | undefined>
  deleteSource(id: string, audit?: Audit<Source>, check?: Check<Source>): Promise<boolean>
  createDestination(destination: FromStored<NewDestination>, audit?: Audit<Destination>): Promise<Destination>
  updateDestination(id: string, change: ChangeOf<Destination, NewDestination>, audit?: Audit<Destination>): Promise<Destination | undefined>
  /** What it is still owed is cancelled, with the reason. */
  deleteDestination(id: string, audit?: Audit<Destination>, check?: Check<Destination>): Promise<boolean>
  createOAuthApp(app: FromStored<NewOAuthApp>, audit?: Audit<OAuthApp>): Promise<OAuthApp>
  updateOAuthApp(id: string, change: ChangeOf<OAuthApp, NewOAuthApp>, audit?: Audit<OAuthApp>): Promise<OAuthApp | undefined>
  deleteOAuthApp(id: string, audit?: Audit<OAuthApp>, check?: Check<OAuthApp>): Promise<boolean>
  createToken(token: FromStored<NewControlToken>, audit?: Audit<ControlToken>): Promise<ControlToken>
  deleteToken(id: string, audit?: Audit<ControlToken>): Promise<boolean>
  /** When each token was last used, as far as that was told; those never used are left out. */
  tokenUses(): Promise<{ id: string; atMs: number }[]>
  /** Written down soon. Does nothing to a token that is gone, and never sets a time back. */
  useToken(id: string, atMs: number): Promise<void>
  /** Small values that are not part of the configuration: token hashes, the identity of the installation. */
  getSetting(name: string): Promise<string | undefined>
  setSetting(name: string, value: string): Promise<void>
}
