// Backups of the store while it is in use. Only for the SQLite store, because a database server has its own tools.

import type { Readable } from 'node:stream'

export interface Backup {
  id: string
  state: 'copying' | 'ready' | 'failed'
  doneBytes: number
  totalBytes: number
  /** Why the backup failed, as a sentence for people. Null if it did not fail. */
  error: string | null
  createdAtMs: number
}

export interface Backups {
  /** Returns undefined if another backup is in progress or waits to be downloaded. */
  start(): Backup | undefined
  get(id: string): Backup | undefined
  /** Returns the bytes of the backup, or undefined if it is not ready. */
  open(id: string): Readable | undefined
  remove(id: string): Promise<boolean>
  /** Cancels a backup in progress and removes all copies. */
  close(): Promise<void>
}
