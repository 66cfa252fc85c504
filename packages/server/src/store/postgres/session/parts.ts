// What the files of this folder share: made by store.ts, handed to each.

import type { Seed } from '../../encoding/fingerprint.ts'
import type { Configuration, Taker } from '../../store.ts'
import type { Membership } from '../cluster/membership.ts'
import type { RowIds } from '../schema/ids.ts'
import type { Names } from '../schema/names.ts'
import type { Database } from './database.ts'

export interface Parts {
  /** For everything but the ways of messages, which have connections of their own. */
  database: Database
  ids: RowIds
  names: Names
  /** What fingerprints are made with. */
  seed: () => Promise<Seed>
  /** Wall time, for what people read. */
  nowMs: () => number
  /** Schedule time, for what is due. */
  scheduleMs: () => number
  configuration: () => Configuration
  taker: () => Taker | null
  /** Work that goes on after the answer, in steps that another node or the next start would take up. */
  run: (work: Promise<void>) => void
  isClosed: () => boolean
}

/** With what the ways of messages need. */
export interface MessageParts extends Parts {
  /** Their own connections, with settings for statements that are planned once. */
  fast: Database
  membership: Membership
}
