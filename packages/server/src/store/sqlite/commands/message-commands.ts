// The writing thread's commands that accept, claim, settle and count messages.

import type { ScheduleMark } from '../../../timing/clock.ts'
import { FINGERPRINT_WORDS, fingerprint, sourceSeed } from '../../encoding/fingerprint.ts'
import { SCHEDULE_SETTING, SCHEDULE_WALL_SETTING } from '../../encoding/schedule-mark.ts'
import type { CountBatch } from '../../history/deferred-counts.ts'
import type { FoundKey } from '../../history/message-rows.ts'
import type { ClaimRequest } from '../../store.ts'
import { KEY_AGE_SETTING } from '../keys/key-age.ts'
import { writeSetting } from '../schema/settings.ts'
import { ClaimReader } from '../writing/read-claims.ts'
import { type AcceptCommand, AcceptWriter } from '../writing/write-accept.ts'
import { cancelStep } from '../writing/write-cancel.ts'
import type { SettleCommand } from '../writing/write-settle.ts'
import type { WriterContext } from '../writing/writer-context.ts'
import type { WriterCommand } from './protocol.ts'

export function messageCommands(context: WriterContext) {
  const { database, ids, sources, keyAge, duplicates, counts, claims, settler, seed } = context
  const accepting = new AcceptWriter(context)
  const claiming = new ClaimReader(context)
  const sourceOrNone = (sourceId: string | null): number => (sourceId === null ? 0 : (sources.num(sourceId) ?? 0))
  return {
    accept: { run: (command: AcceptCommand, buffer: ArrayBuffer) => accepting.accept(command, buffer) },
    settle: { run: (command: SettleCommand) => settler.settle(command), lazy: true },
    claim: { run: (request: ClaimRequest) => claiming.claim(request), outside: 'after' },
    claimOverdue: {
      run: ({ destinationId, firstAttemptBeforeMs, limit }: { destinationId: string; firstAttemptBeforeMs: number; limit: number }) =>
        claiming.claimOverdue(destinationId, firstAttemptBeforeMs, limit),
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
