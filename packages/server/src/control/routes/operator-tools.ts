// The parts of the service that the routes for operators need. app.ts passes them in. Tests of other routes leave them out; the routes
// then answer without this information.

import type { DialCheck } from '../../delivery/sender/http/dial-check.ts'
import type { Backups } from '../../store/store.ts'

export interface Installation {
  version: string
  startedAtMs: number
  /** Null if the store is not a file. */
  storePath: string | null
  /** The location of the store for display: the path, or hosts and database without the credentials. */
  storePlace: string
  /** The display name of this process. */
  nodeName: string
  secretKey: { from: 'environment' } | { from: 'file'; path: string }
  retentionDays: number
  /** How to run the command line on this machine. */
  command: string
}

export interface OperatorTools {
  installation: Installation
  dial: DialCheck
  /** Null if the store is a database server, which has its own backup tools. */
  backups: Omit<Backups, 'close'> | null
}
