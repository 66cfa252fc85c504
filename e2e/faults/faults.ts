// All rows of the fault ledger, in the order in which it lists them.

import type { Fault } from './fault.ts'
import { BAD_RECEIVERS } from './rows/bad-receivers.ts'
import { CLIENTS } from './rows/clients.ts'
import { CLOCK_JUMPS } from './rows/clock-jumps.ts'
import { CONTROL_CHANGES } from './rows/control-changes.ts'
import { DATABASE_NETWORK } from './rows/database-network.ts'
import { DELETED_USERS } from './rows/deleted-users.ts'
import { FAILOVER } from './rows/failover.ts'
import { FROZEN_NODE } from './rows/frozen-node.ts'
import { FULL_DISK } from './rows/full-disk.ts'
import { IO_ERRORS } from './rows/io-errors.ts'
import { KILLED_PROCESSES } from './rows/killed-processes.ts'
import { KILLED_THREADS } from './rows/killed-threads.ts'
import { ROLLING_RESTART } from './rows/rolling-restart.ts'
import { UPGRADE } from './rows/upgrade.ts'

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
]
