// The objects that all modules of the PostgreSQL store share. store.ts creates them.

import type { Seed } from '../../encoding/fingerprint.ts'
import type { Configuration, ShipmentConsumer } from '../../store.ts'
import type { Database } from '../session/database.ts'
import type { WriteState } from '../session/write-state.ts'
import type { IdMap } from '../tables/id-map.ts'
import type { RowIds } from '../tables/ids.ts'
import type { Membership } from './membership.ts'

export interface StoreContext {
  /** For everything except accepting, claiming and settling messages, which use a separate pool. */
  database: Database
  ids: RowIds
  idMap: IdMap
  /** Reads the seed of the fingerprints. */
  seed: () => Promise<Seed>
  /** Wall-clock time, for timestamps that people read. */
  nowMs: () => number
  /** Schedule time, which decides what is due. */
  scheduleMs: () => number
  configuration: () => Configuration
  consumer: () => ShipmentConsumer | null
  /** Runs work in the background, after the request was answered. It consists of steps that another node or the next start can continue. */
  run: (work: Promise<void>) => void
  isClosed: () => boolean
}

/** What accepting, claiming and settling need in addition. */
export interface MessageContext extends StoreContext {
  /** A separate connection pool, with settings for statements that are planned once per connection. */
  fast: Database
  membership: Membership
  writes: WriteState
}
