// The configuration: sources, destinations, OAuth applications and tokens, and small settings that are stored beside them.

import type {
  ControlToken,
  Destination,
  DestinationContent,
  NewControlToken,
  NewDestination,
  NewOAuthApp,
  NewPlan,
  NewSource,
  OAuthApp,
  Source,
  StoredPlan,
} from '../../model/configuration.ts'
import type { Actor, Audit } from './audit.ts'
import type { ChangeOf, FromStored } from './from-stored.ts'
import type { Page, PageRequest } from './pages.ts'

/** Throws to prevent the deletion of the resource. */
export type Check<Thing> = (before: Thing) => void

export class WriteKeyTaken extends Error {
  override name = 'WriteKeyTaken'
}

export class SourceHasPlan extends Error {
  override name = 'SourceHasPlan'
  readonly sourceId: string

  constructor(sourceId: string) {
    super(`the source ${sourceId} already has a tracking plan`)
    this.sourceId = sourceId
  }
}

/** A version of the settings of a destination that decide what is sent. */
export interface DestinationVersion {
  version: number
  /** When it was saved. */
  atMs: number
  /** Who saved it; null if that is not known. */
  actor: Actor | null
  content: DestinationContent
  /** The settings that differ from the version before, such as `transformation.code`. Empty for the first version. */
  changed: readonly string[]
  /** The version whose content this one repeats, if it was saved by restoring that version. */
  restoredFrom: number | null
  /** The origins of the URLs that the destination had then. Versions that were saved earlier do not have it. */
  origins?: readonly string[]
}

/** The version to restore does not exist, or is no longer kept. */
export class UnknownVersion extends Error {
  override name = 'UnknownVersion'
}

export interface ConfigurationStore {
  createSource(source: FromStored<NewSource>, audit?: Audit<Source>): Promise<Source>
  /** Returns undefined if there is no such source. Rejects with WriteKeyTaken if another source has one of the write keys. */
  updateSource(id: string, change: ChangeOf<Source, NewSource>, audit?: Audit<Source>): Promise<Source | undefined>
  /** Creates the source of messages about the service itself, unless it exists. */
  ensureSystemSource(): Promise<void>
  deleteSource(id: string, audit?: Audit<Source>, check?: Check<Source>): Promise<boolean>
  createDestination(destination: FromStored<NewDestination>, audit?: Audit<Destination>): Promise<Destination>
  /**
   * A change of the content (see DestinationContent) makes a new version, in the same transaction. `version` in the change is the number of a version
   * to restore: the destination gets its content. Rejects with UnknownVersion if that version is not kept.
   */
  updateDestination(id: string, change: ChangeOf<Destination, NewDestination>, audit?: Audit<Destination>): Promise<Destination | undefined>
  /** Cancels the pending deliveries of the destination, with the reason `destination_deleted`, and clears the `deadLetter` of others that refer to it. */
  deleteDestination(id: string, audit?: Audit<Destination>, check?: Check<Destination>): Promise<boolean>
  /** The versions of a destination that are kept, newest first. Empty if there is no such destination. */
  destinationVersions(id: string, page: PageRequest): Promise<Page<DestinationVersion>>
  /** Returns undefined if the version is not kept. */
  destinationVersion(id: string, version: number): Promise<DestinationVersion | undefined>
  createOAuthApp(app: FromStored<NewOAuthApp>, audit?: Audit<OAuthApp>): Promise<OAuthApp>
  updateOAuthApp(id: string, change: ChangeOf<OAuthApp, NewOAuthApp>, audit?: Audit<OAuthApp>): Promise<OAuthApp | undefined>
  deleteOAuthApp(id: string, audit?: Audit<OAuthApp>, check?: Check<OAuthApp>): Promise<boolean>
  /** Rejects with SourceHasPlan if one of the sources has another plan. */
  createPlan(plan: FromStored<NewPlan>, audit?: Audit<StoredPlan>): Promise<StoredPlan>
  updatePlan(id: string, change: ChangeOf<StoredPlan, NewPlan>, audit?: Audit<StoredPlan>): Promise<StoredPlan | undefined>
  deletePlan(id: string, audit?: Audit<StoredPlan>, check?: Check<StoredPlan>): Promise<boolean>
  createToken(token: FromStored<NewControlToken>, audit?: Audit<ControlToken>): Promise<ControlToken>
  deleteToken(id: string, audit?: Audit<ControlToken>): Promise<boolean>
  /** When each token was last used, as recorded by `useToken`. Tokens that were never used are left out. */
  tokenUses(): Promise<{ id: string; atMs: number }[]>
  /** Records the use of a token. Does nothing if the token was deleted or a later use is already recorded. */
  useToken(id: string, atMs: number): Promise<void>
  /** Small values that are not part of the configuration, for example token hashes and the id of the installation. */
  getSetting(name: string): Promise<string | undefined>
  setSetting(name: string, value: string): Promise<void>
}
