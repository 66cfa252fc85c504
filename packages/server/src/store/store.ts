// The store's port, through which all stages use the store, with one field per topic. An adapter keeps the invariants:
// what accept() resolved with is durable together with the work it owes; for each destination
// owed = delivered + pending + failed + expired + cancelled at every commit; a shipment that another has claimed cannot
// be settled. No SQL, no HTTP and no policy here: when to retry and whether to give up is delivery's knowledge.

import type { BooksStore } from './port/books.ts'
import type { ConfigurationStore } from './port/configuration.ts'
import type { DeletionStore } from './port/deletions.ts'
import type { DeliveryStore } from './port/delivery.ts'
import type { HistoryStore } from './port/history.ts'
import type { IngestStore } from './port/messages.ts'
import type { Configuration } from './port/model.ts'
import type { Channel, Nodes, ServerFacts } from './port/nodes.ts'
import type { ReplayStore } from './port/replays.ts'
import type { OAuthStore, SecretStore } from './port/secrets.ts'

export * from './port/audit.ts'
export type * from './port/backups.ts'
export * from './port/books.ts'
export * from './port/configuration.ts'
export * from './port/deletions.ts'
export * from './port/delivery.ts'
export type * from './port/from-stored.ts'
export * from './port/history.ts'
export * from './port/messages.ts'
export * from './port/model.ts'
export * from './port/nodes.ts'
export * from './port/pages.ts'
export * from './port/replays.ts'
export * from './port/secrets.ts'

export interface Store {
  /** As of the last commit that this process knows of. */
  configuration(): Configuration
  /** Called after every change, and not for the state at the start. */
  onConfiguration(listener: (configuration: Configuration) => void): void
  ingest: IngestStore
  delivery: DeliveryStore
  /** Changes of the configuration, and small values stored beside it. */
  settings: ConfigurationStore
  history: HistoryStore
  books: BooksStore
  replays: ReplayStore
  deletions: DeletionStore
  oauth: OAuthStore
  secrets: SecretStore
  /** Only where several processes share the store. */
  nodes?: Nodes
  channel?: Channel
  /** Only where the store is a server of its own. */
  serverFacts?(): Promise<ServerFacts>
  /** Whether a commit can be made now, tried by making one; what /readyz answers. */
  check(): Promise<{ ok: true } | { ok: false; message: string }>
  /** Drops whole days that are older than retention, in small steps. Called by a timer of the app, or by a test. */
  dropExpired(nowMs: number): Promise<void>
  /** Commits what was given before and closes. */
  close(): Promise<void>
}
