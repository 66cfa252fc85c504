// The writing thread's commands about the quarantine.

import { deleteMessages, releaseMessages } from '../../quarantine/end-quarantine.ts'
import type { ReleasedMessage } from '../../store.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterContext } from '../threads/writer-context.ts'
import { quarantineChanges } from './quarantine-rows.ts'

export function quarantineCommands(context: WriterContext) {
  const changes = quarantineChanges(context)
  return {
    /** False if none of the messages was in quarantine. */
    releaseQuarantined: {
      async run({ messages, atMs }: { messages: readonly ReleasedMessage[]; atMs: number }) {
        const reply = await releaseMessages(changes, messages, atMs)
        return reply.ids.length === 0 ? false : reply
      },
    },
    deleteQuarantined: {
      async run({ ids, atMs, outcome }: { ids: readonly string[]; atMs: number; outcome: 'deleted' | 'expired' }) {
        const deleted = await deleteMessages(changes, ids, atMs, outcome)
        return deleted.length === 0 ? false : deleted
      },
    },
  } satisfies Record<string, WriterCommand>
}
