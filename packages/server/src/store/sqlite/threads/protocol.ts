// What the main thread and the writing thread say to each other. A group of commands is one message and one transaction;
// the bodies and keys of its batches lie in one buffer that is handed over, not copied. Messages are plain data.

import type { Seed } from '../../encoding/fingerprint.ts'
import type { NewAuditEntry } from '../../store.ts'

/** What the writing thread can be asked to do: see commands.ts, where those of all topics come together. */
export interface WriterCommand {
  /** May answer with a promise, if it waits for nothing but microtasks: the group's transaction is open meanwhile. */
  run(command: never, buffer: ArrayBuffer): unknown
  /**
   * Changes nothing that is stored, and runs outside of the transaction: after the commit, whose result it sees, or before,
   * like `release`: shipments that were given back before they were settled are no longer held then.
   */
  outside?: 'before' | 'after'
  /**
   * Nobody waits for it: it rides along with the next accepted batch, or goes after a moment. A commit of its own for each
   * settlement cost more than the settling. What was delivered in that moment may be sent again after a crash, as what is in flight.
   */
  lazy?: true
}

export interface WriterOptions {
  path: string
  /** How long a messageId is remembered at least. */
  dedupMs: number
}

export type WriterStart =
  | { ok: true; seed: Seed; scheduleMs: number; lazy: readonly string[] }
  | { ok: false; problem: boolean; message: string }

/** Who did what, written in the transaction of the change. */
export interface AuditNote extends NewAuditEntry {
  atMs: number
}

/** A change that somebody made carries who it was; the note is kept only if something was changed. */
export interface Noted {
  audit?: AuditNote
}

export function auditNote(entry: NewAuditEntry | undefined, atMs: number): Noted {
  return entry === undefined ? {} : { audit: { ...entry, atMs } }
}

/** Kinds and commands by place. */
export interface Group {
  buffer: ArrayBuffer | null
  kinds: readonly string[]
  commands: readonly Noted[]
}

export type Reply = { ok: true; value: unknown } | { ok: false; unavailable: boolean; message: string }

export interface Answered {
  replies: Reply[]
  /** Whether anything was committed: reading works on a full disk, too. */
  committed: boolean
  /** How long the group's transaction took; null when it had none. */
  commitMs: number | null
}

/** The group's buffer comes back to be filled again. */
export interface AnsweredGroup extends Answered {
  buffer: ArrayBuffer | null
}
