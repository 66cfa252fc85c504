// The port of the store, which all stages use, with one field per topic. Every adapter keeps these invariants: when accept() resolves, the
// messages and their pending deliveries are durable; for each destination, owed = delivered + pending + failed + expired + cancelled after
// every commit; a shipment can be settled only under its current claim. No SQL, no HTTP and no policy here: delivery decides when to retry and
// when to stop.

import type { Configuration } from '../model/configuration.ts'
import type { BooksStore } from './port/books.ts'
import type { ConfigurationStore } from './port/configuration.ts'
import type { DeletionStore } from './port/deletions.ts'
import type { DeliveryStore } from './port/delivery.ts'
import type { DocumentStore } from './port/documents.ts'
import type { HistoryStore } from './port/history.ts'
import type { IngestStore } from './port/messages.ts'
import type { Channel, Nodes, ServerFacts } from './port/nodes.ts'
import type { OrderStore } from './port/order.ts'
import type { QuarantineStore } from './port/quarantine.ts'
import type { ReplayStore } from './port/replays.ts'
import type { OAuthStore, SecretStore } from './port/secrets.ts'

export type * from '../model/backups.ts'
export * from '../model/configuration.ts'
export * from '../model/messages.ts'
export * from './port/audit.ts'
export * from './port/books.ts'
export * from './port/configuration.ts'
export * from './port/deletions.ts'
export * from './port/delivery.ts'
export type * from './port/documents.ts'
export type * from './port/from-stored.ts'
export * from './port/history.ts'
export type { StateChange, StateEntry } from './port/integration-state.ts'
export * from './port/messages.ts'
export * from './port/nodes.ts'
export type * from './port/order.ts'
export * from './port/pages.ts'
export type * from './port/quarantine.ts'
export * from './port/replays.ts'
export * from './port/secrets.ts'

export interface Store {
  /** The configuration as of the last commit that this process knows about. */
  configuration(): Configuration
  /** The listener is called after every change. It is not called for the initial configuration. */
  onConfiguration(listener: (configuration: Configuration) => void): void
  ingest: IngestStore
  delivery: DeliveryStore
  /** Changes the configuration, and small values that are stored beside it. */
  resources: ConfigurationStore
  history: HistoryStore
  books: BooksStore
  quarantine: QuarantineStore
  order: OrderStore
  replays: ReplayStore
  deletions: DeletionStore
  documents: DocumentStore
  oauth: OAuthStore
  secrets: SecretStore
  /** Only if several processes can share the store. */
  nodes?: Nodes
  channel?: Channel
  /** Only if the store is a database server. */
  serverFacts?(): Promise<ServerFacts>
  /** Makes a commit to find out whether that is possible now. Used by /readyz. */
  check(): Promise<{ ok: true } | { ok: false; message: string }>
  /** Drops whole days that are older than the retention time, in small steps. `nowMs` is only for tests; the default is the clock by which rows are dated. */
  dropExpired(nowMs?: number): Promise<void>
  /** Commits all earlier writes and closes the store. A server is waited for no longer than `limitMs`. Resolves with false if something was not finished. */
  close(limitMs?: number): Promise<boolean>
}
