// All rows of the fault ledger, in the order in which it lists them.

import type { Fault } from '../rounds/fault.ts'
import { BAD_RECEIVERS } from './bad-receivers.ts'
import { CLIENTS } from './clients.ts'
import { CLOCK_JUMPS } from './clock-jumps.ts'
import { CONTROL_CHANGES } from './control-changes.ts'
import { DATABASE_NETWORK } from './database-network.ts'
import { DELETED_USERS } from './deleted-users.ts'
import { FAILOVER } from './failover.ts'
import { FROZEN_NODE } from './frozen-node.ts'
import { FULL_DISK } from './full-disk.ts'
import { IO_ERRORS } from './io-errors.ts'
import { KILLED_PROCESSES } from './killed-processes.ts'
import { KILLED_THREADS } from './killed-threads.ts'
import { ROLLING_RESTART } from './rolling-restart.ts'
import { UPGRADE } from './upgrade.ts'
import { WAREHOUSES } from './warehouses.ts'

export const FAULTS: readonly Fault[] = [
  ...KILLED_PROCESSES,
  ...KILLED_THREADS,
  ...FROZEN_NODE,
  ...FAILOVER,
  ...DATABASE_NETWORK,
  ...FULL_DISK,
  ...IO_ERRORS,
  ...CLOCK_JUMPS,
  ...BAD_RECEIVERS,
  ...ROLLING_RESTART,
  ...UPGRADE,
  ...CONTROL_CHANGES,
  ...DELETED_USERS,
  ...CLIENTS,
  ...WAREHOUSES,
]
