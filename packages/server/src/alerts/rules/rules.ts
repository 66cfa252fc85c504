// All rules, in the order in which they are listed.

import { backlogGrowing } from './backlog-growing.ts'
import { deliveriesExpired } from './deliveries-expired.ts'
import { destinationFailing } from './destination-failing.ts'
import { destinationHeld } from './destination-held.ts'
import { diskAlmostFull } from './disk-almost-full.ts'
import { messagesRejected } from './messages-rejected.ts'
import { nodeLost } from './node-lost.ts'
import { planViolated } from './plan-violated.ts'
import { quarantineExpiring } from './quarantine-expiring.ts'
import type { Rule } from './rule.ts'
import { sourceSilent } from './source-silent.ts'
import { sourceVolumeUnusual } from './source-volume-unusual.ts'

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
  // A rule is given only what is observed about subjects of its kind.
] as readonly Rule<never>[]
