// Backups of the store, made while it is in use. Only for the SQLite store; a database server has its own tools.

import type { Readable } from 'node:stream'

export interface Backup {
  id: string
  state: 'copying' | 'ready' | 'failed'
  doneBytes: number
  totalBytes: number
  /** Why it failed, as a sentence. */
  error: string | null
  createdAtMs: number
}

export interface Backups {
  /** Undefined while another is under way or waits to be fetched. */
  start(): Backup | undefined
  get(id: string): Backup | undefined
  /** The copy's bytes; undefined unless it is ready. */
  open(id: string): Readable | undefined
  remove(id: string): Promise<boolean>
  /** Gives up what is under way and removes all copies. */
  close(): Promise<void>
}
