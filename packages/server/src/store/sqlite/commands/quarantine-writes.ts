// The writing thread's side of the quarantine.

import { deleteMessages, releaseMessages } from '../../quarantine/end-quarantine.ts'
import type { ReleasedMessage } from '../../store.ts'
import { quarantineChanges } from '../writing/quarantine-rows.ts'
import type { WriterContext } from '../writing/writer-context.ts'

/** Each method returns false if none of the messages was in quarantine. */
export function quarantineWrites(context: WriterContext) {
  const changes = quarantineChanges(context)
  return {
    async release(messages: readonly ReleasedMessage[], atMs: number) {
      const reply = await releaseMessages(changes, messages, atMs)
      return reply.ids.length > 0 && reply
    },
    async delete(ids: readonly string[], atMs: number, outcome: 'deleted' | 'expired') {
      const deleted = await deleteMessages(changes, ids, atMs, outcome)
      return deleted.length > 0 && deleted
    },
  }
}
