// What the routes for operators need of the rest of the service, declared by their consumer; app.ts hands it in. Without it,
// as in tests of other routes, the routes are there and say that it is not.

import type { Readable } from 'node:stream'
import type { DialCheck } from '../destinations/control-delivery.ts'

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

export interface BackupJob {
  id: string
  state: 'copying' | 'ready' | 'failed'
  doneBytes: number
  totalBytes: number
  /** Why it failed, as a sentence. */
  error: string | null
  createdAtMs: number
}

export interface ControlBackups {
  /** Undefined while another is under way or waits to be fetched. */
  start(): BackupJob | undefined
  get(id: string): BackupJob | undefined
  /** The copy; undefined unless it is ready. */
  open(id: string): Readable | undefined
  remove(id: string): Promise<boolean>
}

export interface Operating {
  installation: Installation
  dial: DialCheck
  /** Null where the store is backed up with tools of its own. */
  backups: ControlBackups | null
}
