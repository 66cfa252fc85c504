// All rows of the fault ledger, in the order in which it lists them.

import type { Fault } from './fault.ts'
import { CONTROL_CHANGES } from './rows/control-changes.ts'
import { KILLED_PROCESSES } from './rows/killed-processes.ts'
import { KILLED_THREADS } from './rows/killed-threads.ts'

export const FAULTS: readonly Fault[] = [...KILLED_PROCESSES, ...KILLED_THREADS, ...CONTROL_CHANGES]
