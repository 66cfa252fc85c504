// Runs groups of commands, one after the other. Each group is one transaction and one commit, and is answered when it is
// durable. If the disk is full or missing, the whole group fails, because that is no fault of a command. If a command fails by
// itself, the commands of the group are run one by one, so that only that one fails. A group whose commands all answer synchronously runs
// synchronously. Commands that answer with a promise are awaited, and groups that arrive meanwhile wait for their turn.

import { writeAudit } from '../../history/audit-log.ts'
import type { Answered, Group, Noted, Reply, WriterCommand } from '../commands/protocol.ts'
import type { WriterContext } from '../writing/writer-context.ts'

/** SQLite's error codes that mean a problem with the disk, not with the command. */
const UNAVAILABLE = new Set([5 /* BUSY */, 6 /* LOCKED */, 8 /* READONLY */, 10 /* IOERR */, 13 /* FULL */, 14 /* CANTOPEN */])

/** Yields the promise of a command, and continues with its value or its error. */
type Steps<T> = Generator<Promise<unknown>, T, unknown>

export class GroupWriter {
  readonly #context: WriterContext
  readonly #commands: Readonly<Record<string, WriterCommand>>
  /** The last group, as long as it or a group before it is not answered; otherwise null. */
  #last: Promise<Answered> | null = null

  constructor(context: WriterContext, commands: Readonly<Record<string, WriterCommand>>) {
    this.#context = context
    this.#commands = commands
  }

  run(group: Group): Answered | Promise<Answered> {
    const answered = this.#last === null ? finish(this.#group(group)) : this.#last.then(() => finish(this.#group(group)))
    if (!(answered instanceof Promise)) return answered
    this.#last = answered
    return answered.finally(() => {
      if (this.#last === answered) this.#last = null
    })
  }

  *#group(group: Group): Steps<Answered> {
    const { kinds } = group
    const replies = Array.from<Reply>({ length: kinds.length })
    const inside: number[] = []
    const after: number[] = []
    for (let at = 0; at < kinds.length; at++) {
      const { outside } = this.#commands[kinds[at] as string] as WriterCommand
      if (outside === 'before') replies[at] = yield* this.#one(group, at)
      else (outside === 'after' ? after : inside).push(at)
    }
    let commitMs: number | null = null
    if (inside.length > 0) {
      const startedMs = performance.now()
      yield* this.#commit(group, inside, replies)
      commitMs = performance.now() - startedMs
    }
    for (const at of after) replies[at] = yield* this.#one(group, at)
    return { replies, committed: inside.some((at) => (replies[at] as Reply).ok), commitMs }
  }

  *#commit(group: Group, inside: readonly number[], replies: Reply[]): Steps<void> {
    const { rows, ids, database, duplicates, transactionListeners } = this.#context
    duplicates.begin()
    let failed: unknown
    try {
      database.exec('BEGIN IMMEDIATE')
      for (const at of inside) {
        let value = this.#apply(group, at)
        if (value instanceof Promise) value = yield value
        const { audit } = group.commands[at] as Noted
        if (audit !== undefined && hasChanged(value)) writeAudit(rows, ids, audit, audit.atMs)
        replies[at] = { ok: true, value }
      }
      for (const listener of transactionListeners) listener.write?.()
      database.exec('COMMIT')
    } catch (error) {
      failed = error ?? new Error('failed')
    }
    if (failed === undefined) {
      for (const listener of transactionListeners) listener.committed?.()
      return
    }
    this.#rollBack()
    if (isUnavailable(failed) || inside.length === 1) {
      for (const at of inside) replies[at] = failure(failed)
      return
    }
    for (const at of inside) yield* this.#commit(group, [at], replies)
  }

  #rollBack(): void {
    try {
      this.#context.database.exec('ROLLBACK')
    } catch {
      // SQLite rolls back by itself after some errors, such as a full disk.
    }
    for (const listener of this.#context.transactionListeners) listener.rolledBack?.()
  }

  *#one(group: Group, at: number): Steps<Reply> {
    const { claims } = this.#context
    try {
      let value = this.#apply(group, at)
      if (value instanceof Promise) value = yield value
      claims.committed()
      return { ok: true, value }
    } catch (error) {
      // Shipments that the failed command claimed were not passed to anybody.
      claims.rolledBack()
      return failure(error)
    }
  }

  #apply({ kinds, commands, buffer }: Group, at: number): unknown {
    return (this.#commands[kinds[at] as string] as WriterCommand).run(commands[at] as never, buffer as ArrayBuffer)
  }
}

/** Runs to the end synchronously, unless a step yields a promise. */
function finish<T>(steps: Steps<T>): T | Promise<T> {
  const first = steps.next()
  return first.done ? first.value : finishLater(steps, first.value)
}

async function finishLater<T>(steps: Steps<T>, promised: Promise<unknown>): Promise<T> {
  for (let waited = promised; ; ) {
    const step = await waited.then(
      (value) => steps.next(value),
      (error: unknown) => steps.throw(error),
    )
    if (step.done) return step.value
    waited = step.value
  }
}

/** A command that changed nothing returns false, 0 or `{ ok: false }`. */
function hasChanged(value: unknown): boolean {
  return value !== false && value !== 0 && (value as { ok?: boolean } | null | undefined)?.ok !== false
}

function isUnavailable(error: unknown): boolean {
  const { errcode } = error as { errcode?: number }
  return errcode !== undefined && UNAVAILABLE.has(errcode & 0xff)
}

function failure(error: unknown): Reply {
  const { message } = error as Error
  return { ok: false, unavailable: isUnavailable(error), message }
}
