// The objects that all parts of the PostgreSQL store share. store.ts creates them.

import type { Seed } from '../../encoding/fingerprint.ts'
import type { Configuration, ShipmentConsumer } from '../../store.ts'
import type { Membership } from '../cluster/membership.ts'
import type { IdMap } from '../schema/id-map.ts'
import type { RowIds } from '../schema/ids.ts'
import type { Database } from './database.ts'

export interface StoreContext {
  /** For everything but the ways of messages, which have connections of their own. */
  database: Database
  ids: RowIds
  idMap: IdMap
  /** The seed of fingerprints. */
  seed: () => Promise<Seed>
  /** Wall time, for what people read. */
  nowMs: () => number
  /** Schedule time, for what is due. */
  scheduleMs: () => number
  configuration: () => Configuration
  consumer: () => ShipmentConsumer | null
  /** Work that goes on after the answer, in steps that another node or the next start would take up. */
  run: (work: Promise<void>) => void
  isClosed: () => boolean
}

/** The parts that accepting, claiming and settling need in addition. */
export interface MessageContext extends StoreContext {
  /** A separate connection pool, with settings for statements that are planned once. */
  fast: Database
  membership: Membership
}
