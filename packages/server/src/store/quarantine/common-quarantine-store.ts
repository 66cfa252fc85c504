// The part of the quarantine's port that is the same for both adapters.

import type { NewAuditEntry, QuarantineStore, ReleasedMessage } from '../store.ts'
import type { ReleaseReply } from './end-quarantine.ts'
import type { QuarantineReads } from './list-quarantine.ts'

const EXPIRED_AT_ONCE = 500

/** `release` and `delete` run the functions of end-quarantine.ts in a transaction, and write the audit entry if a message left the quarantine. */
export interface QuarantineEngine extends QuarantineReads {
  release(messages: readonly ReleasedMessage[], atMs: number, audit: NewAuditEntry | undefined): Promise<ReleaseReply>
  delete(ids: readonly string[], atMs: number, outcome: 'deleted' | 'expired', audit?: NewAuditEntry): Promise<readonly string[]>
  nowMs(): number
  /** Tells delivery that the store has new work for the destination. */
  wake(destinationId: string): void
}

export function commonQuarantineStore(engine: QuarantineEngine): QuarantineStore {
  const nowMs = (): number => Math.floor(engine.nowMs())
  return {
    list: (filter, page) => engine.list(filter, page),
    find: (ids) => engine.find(ids),
    release: async (messages, audit) => {
      const ids = messages.map(({ id }) => id)
      const reply = await engine.release(messages, nowMs(), audit?.({ ids }, null))
      for (const destinationId of reply.destinationIds) engine.wake(destinationId)
      return reply.ids
    },
    delete: (ids, audit) => engine.delete(ids, nowMs(), 'deleted', audit?.(null, { ids })),
    expire: async (beforeMs) => {
      const ids = await engine.idsBefore(beforeMs, EXPIRED_AT_ONCE)
      return ids.length === 0 ? 0 : (await engine.delete(ids, nowMs(), 'expired')).length
    },
  }
}
