// What the routes for operators need of the rest of the service, declared by their consumer; app.ts hands it in. Without it,
// as in tests of other routes, the routes are there and say that it is not.

import type { DialCheck } from '../../delivery/sending/dial-check.ts'
import type { Backups } from '../../store/store.ts'

export interface Installation {
  version: string
  startedAtMs: number
  /** Null where the store is not a file. */
  storePath: string | null
  /** Where the store is, as people read it: the path, or hosts and database without the login. */
  storePlace: string
  /** What this process is called where people see it. */
  nodeName: string
  secretKey: { from: 'environment' } | { from: 'file'; path: string }
  retentionDays: number
}

export interface OperatorTools {
  installation: Installation
  dial: DialCheck
  /** Null where the store is backed up with tools of its own. */
  backups: Omit<Backups, 'close'> | null
}
