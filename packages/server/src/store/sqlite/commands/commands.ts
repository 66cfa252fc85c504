// All commands of the writing thread, and the types of commands and replies, which are derived from them. Most are methods of a topic, which
// run in the transaction of their group; those that run at another time, or for which nobody waits, are commands of their own.

import type { ScheduleMark } from '../../../timing/clock.ts'
import { configurationTables } from '../../configuration/configuration-tables.ts'
import { completeStep } from '../../deletions/deletion-completion.ts'
import type { DeletionDraft } from '../../deletions/deletions.ts'
import { FINGERPRINT_WORDS, fingerprint, sourceSeed } from '../../encoding/fingerprint.ts'
import { SCHEDULE_SETTING, SCHEDULE_WALL_SETTING } from '../../encoding/schedule-mark.ts'
import { dropAudit, writeAudit } from '../../history/audit-log.ts'
import type { CountBatch } from '../../history/deferred-counts.ts'
import { type DocumentRow, documentRows } from '../../history/documents.ts'
import type { FoundKey } from '../../history/message-rows.ts'
import { addStats, dropStats, packStats } from '../../history/stats.ts'
import { type KeyRequest, retryKeyNow, skipKey } from '../../ordering/change-key.ts'
import { actionAudit } from '../../ordering/common-order-store.ts'
import { deleteMessages, releaseMessages } from '../../quarantine/end-quarantine.ts'
import { changeJob, dropJobs, insertJob, type JobSettings, type NewJobRow } from '../../replays/replay-rows.ts'
import { makeStep, replayOne } from '../../replays/replay-steps.ts'
import type { ClaimRequest, NewAuditEntry, OrderedClaimRequest, ReleasedMessage, ReplayStep, StatRow } from '../../store.ts'
import { KEY_AGE_SETTING } from '../keys/key-age.ts'
import { statRows } from '../rows/book-rows.ts'
import { deletionRows } from '../rows/deletion-rows.ts'
import { writeSetting } from '../schema/settings.ts'
import { orderChanges } from '../writing/order-changes.ts'
import { OrderedClaims } from '../writing/ordered-claims.ts'
import { quarantineChanges } from '../writing/quarantine-rows.ts'
import { ClaimReader } from '../writing/read-claims.ts'
import { replayRows } from '../writing/replay-rows.ts'
import type { PinnedSegments } from '../writing/retention.ts'
import { type AcceptCommand, AcceptWriter } from '../writing/write-accept.ts'
import { cancelStep } from '../writing/write-cancel.ts'
import { createDeletion, Purges } from '../writing/write-deletions.ts'
import type { SettleCommand } from '../writing/write-settle.ts'
import type { WriterContext } from '../writing/writer-context.ts'
import type { Noted, WriterCommand } from './protocol.ts'

/** The topics whose methods can be called. Each method runs in the transaction of its group. */
function createTopics(context: WriterContext) {
  const { rows } = context
  const documents = documentRows(rows)
  const purges = new Purges(context)
  context.transactionListeners.push(purges)
  const quarantined = quarantineChanges(context)
  const replaying = replayRows(context)
  const ordered = orderChanges(context)
  return {
    /** Secrets are already encrypted: this thread has no key. */
    configuration: {
      ...configurationTables(rows),
      suppress(sourceIds: readonly string[], userIds: readonly string[], atMs: number): void {
        const insert = 'INSERT OR IGNORE INTO suppressions (source, user_id, since) SELECT num, ?, ? FROM sources WHERE id = ?'
        for (const sourceId of sourceIds) for (const userId of userIds) rows.run(insert, [userId, atMs, sourceId])
      },
      unsuppress(sourceIds: readonly string[], userId: string): void {
        const remove = 'DELETE FROM suppressions WHERE user_id = ? AND source = (SELECT num FROM sources WHERE id = ?)'
        for (const sourceId of sourceIds) rows.run(remove, [userId, sourceId])
      },
    },
    documents: {
      drop: documents.drop,
      async write(kind: string, changed: readonly DocumentRow[], deleted: readonly string[]): Promise<void> {
        const put = 'INSERT OR REPLACE INTO documents (kind, key, at, doc) VALUES (?, ?, ?, ?)'
        for (const { key, atMs, doc } of changed) rows.run(put, [kind, key, atMs, doc])
        await documents.delete(kind, deleted)
      },
    },
    deletions: {
      /** Also creates the delete messages, which stay claimed until they are released. */
      create: (draft: DeletionDraft) => createDeletion(context, draft),
      /** Returns `end`: only messages that were accepted before it are purged. */
      purgeStep: (deletion: number, atMs: number) => purges.step(deletion, atMs),
      /** Returns the row id of the deletion that was checked, or null if there is none after `after`. */
      completeStep: (after: number, beforeMs: number, pseudonymKey: string) =>
        completeStep(deletionRows(rows), after, beforeMs, pseudonymKey),
    },
    /** Each method returns false if none of the messages was in quarantine. */
    quarantine: {
      async release(messages: readonly ReleasedMessage[], atMs: number) {
        const reply = await releaseMessages(quarantined, messages, atMs)
        return reply.ids.length > 0 && reply
      },
      async delete(ids: readonly string[], atMs: number, outcome: 'deleted' | 'expired') {
        const deleted = await deleteMessages(quarantined, ids, atMs, outcome)
        return deleted.length > 0 && deleted
      },
    },
    /** The audit entry is written here, because it depends on what was done. */
    order: {
      async skip(request: KeyRequest, atMs: number, audit: NewAuditEntry | undefined) {
        const result = await skipKey(ordered, request, atMs)
        writeAudit(rows, context.ids, actionAudit(audit, result), atMs)
        return result
      },
      async retryNow(request: KeyRequest, atMs: number, audit: NewAuditEntry | undefined) {
        const result = await retryKeyNow(ordered, request)
        writeAudit(rows, context.ids, actionAudit(audit, result), atMs)
        return result
      },
    },
    replays: {
      replay: (deliveryId: string, resume: boolean, atMs: number) => replayOne(replaying, deliveryId, resume, atMs),
      insert: (row: NewJobRow<number>) => insertJob(rows, row),
      change: (id: string, before: JobSettings, after: JobSettings) => changeJob(rows, id, before, after),
      step: (step: ReplayStep, atMs: number) => makeStep(replaying, step, () => atMs),
      drop: (beforeMs: number) => dropJobs(rows, beforeMs),
    },
    /** Each method returns how many rows were dropped. */
    books: {
      packStats: (atMs: number) => packStats(statRows(rows), rows, atMs),
      dropStats: (minutesBeforeMs: number, hoursBeforeMs: number) => dropStats(rows, minutesBeforeMs, hoursBeforeMs),
      dropAudit: (beforeMs: number) => dropAudit(rows, beforeMs),
    },
  }
}

export type Topics = ReturnType<typeof createTopics>

/** A call of a method of a topic. */
export interface Call {
  topic: keyof Topics
  name: string
  args: readonly unknown[]
}

export function createCommands(context: WriterContext) {
  const topics = createTopics(context) as unknown as Record<string, Record<string, (...args: readonly unknown[]) => unknown>>
  const stats = statRows(context.rows)
  const { retention } = context
  const run = ({ topic, name, args }: Call): unknown => topics[topic]?.[name]?.(...args)
  return {
    ...messageCommands(context),
    addStats: { run: ({ rows: added }: { rows: readonly StatRow[] }) => addStats(stats, added), lazy: true },
    /** Does nothing itself: the group writer writes the audit entry that every command may carry. */
    note: { run: () => {} },
    /** Returns the row id before which rows are dropped. */
    retentionBegin: { run: ({ beforeMs }: { beforeMs: number }) => retention.begin(beforeMs), outside: 'after' },
    retentionPin: { run: (segments: PinnedSegments) => retention.pin(segments), outside: 'after' },
    /** False when all older rows have been dropped. */
    retentionStep: { run: () => retention.step() },
    call: { run },
    /** Makes several calls as one: all are committed, or none. Returns the list of their replies. */
    together: {
      async run({ calls }: { calls: readonly Call[] }): Promise<unknown[]> {
        const replies: unknown[] = []
        for (const call of calls) replies.push(await run(call))
        return replies
      },
    },
  } satisfies Record<string, WriterCommand>
}

type Commands = ReturnType<typeof createCommands>

export type CommandKind = keyof Commands
export type CommandOf<K extends CommandKind> = Noted &
  (Commands[K]['run'] extends (command: infer C, ...rest: never) => unknown ? C : never)
export type ReplyOf<K extends CommandKind> = Awaited<ReturnType<Commands[K]['run']>>

/** The commands that accept, claim, settle and count messages. */
function messageCommands(context: WriterContext) {
  const { database, ids, sources, keyAge, duplicates, counts, claims, settler, seed } = context
  const accepting = new AcceptWriter(context)
  const claiming = new ClaimReader(context)
  const orderedClaims = new OrderedClaims(context, claiming)
  const sourceOrNone = (sourceId: string | null): number => (sourceId === null ? 0 : (sources.num(sourceId) ?? 0))
  return {
    accept: { run: (command: AcceptCommand, buffer: ArrayBuffer) => accepting.accept(command, buffer) },
    settle: { run: (command: SettleCommand) => settler.settle(command), lazy: true },
    claim: { run: (request: ClaimRequest) => claiming.claim(request), outside: 'after' },
    /** Inside the transaction, because messages that must wait are moved. */
    claimOrdered: { run: (request: OrderedClaimRequest) => orderedClaims.claim(request) },
    claimOverdue: {
      run: ({ destinationId, firstAttemptBeforeMs, limit }: { destinationId: string; firstAttemptBeforeMs: number; limit: number }) =>
        claiming.claimOverdue(destinationId, firstAttemptBeforeMs, limit),
      outside: 'after',
    },
    claimCrowded: {
      run: ({ destinationId, maxWaiting, limit }: { destinationId: string; maxWaiting: number; limit: number }) =>
        claiming.claimCrowded(destinationId, maxWaiting, limit),
      outside: 'after',
    },
    release: {
      run({ shipments }: { shipments: readonly { id: number; claim: number }[] }) {
        for (const { id, claim } of shipments) claims.release(id, claim)
      },
      outside: 'before',
      lazy: true,
    },
    /** Returns the number of cancelled shipments. */
    cancelStep: { run: ({ destinationId, atMs }: { destinationId: string; atMs: number }) => cancelStep(context, destinationId, atMs) },
    addCounts: {
      run({ rejections, suppressed }: CountBatch) {
        for (const { sourceId, code, count, atMs, sample } of rejections) counts.reject(sourceOrNone(sourceId), code, count, atMs, sample)
        for (const [sourceId, count] of suppressed) counts.add(sourceOrNone(sourceId), 'suppressed', count)
      },
      lazy: true,
    },
    /** The segments that may contain a messageId. Searches for every source that ever existed, because the fingerprint depends on the source. */
    find: {
      run({ messageId }: { messageId: string }): FoundKey<number>[] {
        const all = database.prepare('SELECT id FROM sources').all() as { id: string }[]
        return all.flatMap(({ id }) => {
          const words = new Uint32Array(FINGERPRINT_WORDS)
          fingerprint(messageId, sourceSeed(id, seed), words, 0)
          return duplicates.findAll(words, 0).map((segment) => ({ segment, fingerprint: words }))
        })
      },
      outside: 'after',
    },
    /** Returns a row id after every stored row. */
    replayBound: { run: () => ids.next(), outside: 'after' },
    forgetKeys: { run: () => duplicates.forget(keyAge.oldUpTo + 1), outside: 'after' },
    /** Saves schedule time, the last row id and the age of keys for the next start. */
    mark: {
      run({ scheduleMs, wallMs }: ScheduleMark) {
        writeSetting(database, SCHEDULE_SETTING, String(scheduleMs))
        writeSetting(database, SCHEDULE_WALL_SETTING, String(wallMs))
        writeSetting(database, 'last_id', String(ids.last))
        writeSetting(database, KEY_AGE_SETTING, keyAge.mark(ids.last))
      },
    },
  } satisfies Record<string, WriterCommand>
}
