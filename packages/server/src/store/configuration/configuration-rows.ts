// The row port of configuration changes: an adapter makes one change at a time and writes its rows. common-configuration-store.ts defines the
// changes and when one is rejected. Secrets are in plain text here; an adapter encrypts them (see resource-rows.ts).

import type { SecretBox } from '../../secrets/secret-box.ts'
import type { Awaitable } from '../encoding/sql.ts'
import type { Configuration, ConfigurationStore, NewAuditEntry, OAuthStore } from '../store.ts'
import type { ResourceKind, Resources } from './resource-rows.ts'
import type { StoredDestination } from './stored-destination.ts'

// These constants are here and not beside their code, so that the reading thread of SQLite does not load the kinds of destinations for them.
/** Settings whose names begin with this are encrypted secrets. */
export const SECRET_PREFIX = 'secret.'
/** The encrypted content of one page of versions: see ChangeTables. */
export const VERSION_PAGE_BYTES = 4 * 1024 * 1024

/** A version of a destination as it is stored. */
export interface VersionRow {
  destinationId: string
  version: number
  atMs: number
  actorId: string | null
  actorName: string | null
  /** Encrypted: see destination-versions.ts. */
  content: string
}

/** The tables of versions and of secrets, inside a change: see configuration-tables.ts. */
export interface ChangeTables {
  /**
   * The versions of a destination below this number, newest first: at most `limit`, and after the first only as long as their content is
   * at most VERSION_PAGE_BYTES together.
   */
  versions(destinationId: string, below: number, limit: number): Awaitable<VersionRow[]>
  /** If the version exists already, replaces its content. */
  putVersion(row: VersionRow): Awaitable<unknown>
  /** Removes the versions of a destination up to this one. */
  dropVersions(destinationId: string, upTo: number): Awaitable<unknown>
  /** Removes what an integration keeps between messages, and what is stored about the tables of a warehouse. */
  dropState(destinationId: string): Awaitable<unknown>
  /** Removes what integrations keep of these users. */
  dropStateOf(userIds: readonly string[]): Awaitable<unknown>
  /** The encrypted secrets, each with the name of its setting. */
  secrets(): Awaitable<{ name: string; value: string }[]>
  /** Null removes the secret. */
  setSetting(name: string, encrypted: string | null): Awaitable<unknown>
}

export interface ConfigurationChanges {
  /** The key with which stored secrets are encrypted. */
  readonly secretBox: SecretBox
  /** As of the last commit that this process knows about. */
  readonly configuration: Configuration
  versions(...args: Parameters<ChangeTables['versions']>): Promise<VersionRow[]>
  /**
   * Makes one change, in its own transaction and under the lock that all changes take. When this resolves, the change is committed, is
   * visible in this process, and listeners have been called. `work` may be called again, and may await nothing but methods of the change.
   */
  change<T>(work: (change: ConfigurationChange) => Promise<T>): Promise<T>
}

/** Values that are stored beside the configuration and changed without its lock. */
export type SettingRows = Pick<ConfigurationStore, 'tokenUses' | 'useToken' | 'getSetting' | 'setSetting'> & OAuthStore

/** One change, during which no other is made. All of its writes are committed together after `work` has resolved. */
export interface ConfigurationChange {
  /** The configuration before this change. */
  readonly configuration: Configuration
  /** The key with which stored secrets are encrypted. */
  readonly secretBox: SecretBox
  readonly tables: ChangeTables

  create<K extends ResourceKind>(kind: K, resource: Resources[K]): Awaitable<void>
  update<K extends ResourceKind>(kind: K, resource: Resources[K]): Awaitable<void>
  /** Other rows may refer to a source or a destination, so its row is kept with the doc that `docOfDeleted` returns. */
  delete<K extends ResourceKind>(kind: K, resource: Resources[K]): Awaitable<void>

  /** Writes nothing for users who are already suppressed. */
  suppress(sourceIds: readonly string[], userIds: readonly string[], atMs: number): Awaitable<void>
  unsuppress(sourceIds: readonly string[], userId: string): Awaitable<void>

  /** After the commit, secrets are encrypted with this key. `destinations` are already encrypted with it. */
  useKey(box: SecretBox, destinations: readonly StoredDestination[]): Awaitable<void>

  /** Writes the audit entry. Call it only if something is changed. */
  note(entry: NewAuditEntry | undefined): Awaitable<void>
}
