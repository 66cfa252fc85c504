// What the changes of the configuration need from an adapter: one change at a time, and the rows that it writes. What is changed, and when
// it is refused, is in configuring.ts. Things are plain here; an adapter seals the secrets in them (see stored-things.ts).

import type { SecretBox } from '../../secrets/secret-box.ts'
import type { Awaitable } from '../encoding/row-port.ts'
import type { NewAuditEntry } from '../port/audit.ts'
import type { ConfigurationStore } from '../port/configuration.ts'
import type { Configuration } from '../port/model.ts'
import type { OAuthStore } from '../port/secrets.ts'
import type { StoredDestination } from './stored-destination.ts'
import type { Kind, Things } from './stored-things.ts'

export interface ConfigurationChanges {
  /**
   * One change, in a transaction of its own and under the lock that all changes take. After the commit it is seen here, and listeners are
   * told, before this resolves. `work` may be called again, and awaits nothing but the change.
   */
  change<T>(work: (change: ConfigurationChange) => Promise<T>): Promise<T>
}

/** What is stored beside the configuration, and changed without its lock. */
export type SettingRows = Pick<ConfigurationStore, 'tokenUses' | 'useToken' | 'getSetting' | 'setSetting'> & OAuthStore

/** One change, while no other is made. Its writes are committed together, when `work` has resolved. */
export interface ConfigurationChange {
  /** As it was before this change. */
  readonly configuration: Configuration
  /** The key that stored secrets are sealed with. */
  readonly secretBox: SecretBox

  create<K extends Kind>(kind: K, thing: Things[K]): Awaitable<void>
  update<K extends Kind>(kind: K, thing: Things[K]): Awaitable<void>
  /** Other rows may refer to a source or a destination, so what `leftOf` says is kept of it. */
  delete<K extends Kind>(kind: K, thing: Things[K]): Awaitable<void>

  /** Of users who are suppressed already nothing is written. See suppressions.ts. */
  suppress(sourceIds: readonly string[], userIds: readonly string[], atMs: number): Awaitable<void>
  unsuppress(sourceIds: readonly string[], userId: string): Awaitable<void>

  /** Sealed, by the names of their settings. */
  secrets(): Awaitable<{ name: string; value: string }[]>
  /** Null removes it. */
  setSecret(name: string, sealed: string | null): Awaitable<void>
  /** From the commit on, secrets are sealed with this key. These are the destinations as it seals them. */
  useKey(box: SecretBox, destinations: readonly StoredDestination[]): Awaitable<void>

  /** Who made the change. Call it only when something is changed. */
  note(entry: NewAuditEntry | undefined): Awaitable<void>
}
