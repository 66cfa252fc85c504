// All rules, in the order in which they are listed.

import { attemptsFailing } from './attempts-failing.ts'
import { backlogGrowing } from './backlog-growing.ts'
import { deliveriesDelayed } from './deliveries-delayed.ts'
import { deliveriesExpired } from './deliveries-expired.ts'
import { deliveriesFailed } from './deliveries-failed.ts'
import { destinationFailing } from './destination-failing.ts'
import { destinationHeld } from './destination-held.ts'
import { destinationStopped } from './destination-stopped.ts'
import { diskAlmostFull } from './disk-almost-full.ts'
import { ledgerUnbalanced } from './ledger-unbalanced.ts'
import { messagesQuarantined } from './messages-quarantined.ts'
import { messagesRejected } from './messages-rejected.ts'
import { nodeLost } from './node-lost.ts'
import { orderBacklogGrowing } from './order-backlog-growing.ts'
import { planViolated } from './plan-violated.ts'
import { quarantineExpiring } from './quarantine-expiring.ts'
import type { Rule } from './rule.ts'
import { sourceSilent } from './source-silent.ts'
import { sourceVolumeUnusual } from './source-volume-unusual.ts'
import { versionsDiffer } from './versions-differ.ts'
import { warehouseTables } from './warehouse-tables.ts'

export const RULES = [
  destinationFailing,
  destinationHeld,
  deliveriesExpired,
  backlogGrowing,
  sourceSilent,
  sourceVolumeUnusual,
  messagesRejected,
  planViolated,
  quarantineExpiring,
  diskAlmostFull,
  nodeLost,
  deliveriesFailed,
  attemptsFailing,
  deliveriesDelayed,
  destinationStopped,
  messagesQuarantined,
  ledgerUnbalanced,
  versionsDiffer,
  orderBacklogGrowing,
  warehouseTables,
  // A rule is given only what is observed about subjects of its kind.
] as readonly Rule<never>[]
