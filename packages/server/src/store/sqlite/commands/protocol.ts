// The messages between the main thread and the writing thread. A group of commands is one message and one transaction.
// The bodies and keys of its batches are in one buffer, which is transferred, not copied. Messages are plain data.

import type { ScheduleMark } from '../../../timing/clock.ts'
import type { Seed } from '../../encoding/fingerprint.ts'
import type { NewAuditEntry } from '../../store.ts'

/** A command of the writing thread. commands.ts lists all of them. */
export interface WriterCommand {
  /** May return a promise, but may wait for nothing but microtasks, because the group's transaction stays open meanwhile. */
  run(command: never, buffer: ArrayBuffer): unknown
  /**
   * The command writes nothing to the file and runs outside of the transaction. 'after': it runs after the commit and sees its result.
   * 'before': it runs before the transaction, like `release`, so that released shipments are no longer held when the transaction runs.
   */
  outside?: 'before' | 'after'
  /**
   * Nobody waits for the command. It shares the commit of the next accepted batch, or is sent after LAZY_MS. A commit for each
   * settlement cost more than the settling itself. After a crash, messages delivered in that time may be sent again, like those in flight.
   */
  lazy?: true
}

export type WriterStart =
  | { ok: true; seed: Seed; scheduleMark: ScheduleMark | null; lazy: readonly string[] }
  | { ok: false; problem: boolean; message: string }

/** An audit entry, written in the transaction of the change. */
export interface AuditNote extends NewAuditEntry {
  atMs: number
}

/** A command with an optional audit entry, which is written only if the command changed something. */
export interface Noted {
  audit?: AuditNote
}

export function auditNote(entry: NewAuditEntry | undefined, atMs: number): Noted {
  return entry === undefined ? {} : { audit: { ...entry, atMs } }
}

/** A topic as another thread sees it: every method answers with a promise. */
export type Asked<Topic> = {
  [Name in keyof Topic]: Topic[Name] extends (...args: infer Args) => infer Answered ? (...args: Args) => Promise<Awaited<Answered>> : never
}

/** `kinds` and `commands` have the same length and order. */
export interface Group {
  buffer: ArrayBuffer | null
  kinds: readonly string[]
  commands: readonly Noted[]
}

export type Reply = { ok: true; value: unknown } | { ok: false; unavailable: boolean; message: string }

export interface Answered {
  replies: Reply[]
  /** Whether anything was committed. Commands that only read succeed on a full disk too. */
  committed: boolean
  /** The duration of the group's transaction; null if it had none. */
  commitMs: number | null
}

/** Returns the group's buffer, so that it can be reused. */
export interface AnsweredGroup extends Answered {
  buffer: ArrayBuffer | null
}
