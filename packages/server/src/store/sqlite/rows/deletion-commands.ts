// The writing thread's commands about deletions of users.

import { completeStep } from '../../deletions/deletion-completion.ts'
import type { DeletionDraft } from '../../deletions/deletions.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterContext } from '../threads/writer-context.ts'
import { deletionRows } from './deletion-rows.ts'
import { createDeletion, Purges } from './write-deletions.ts'

export function deletionCommands(context: WriterContext) {
  const purges = new Purges(context)
  context.transactionListeners.push(purges)
  return {
    /** Also creates the delete messages, which stay claimed until they are released. */
    createDeletion: { run: (draft: DeletionDraft) => createDeletion(context, draft) },
    /** Returns `end`: only messages that were accepted before it are purged. */
    purgeStep: { run: ({ deletion }: { deletion: number }) => purges.step(deletion) },
    /** Returns the row id of the deletion that was checked, or null if there is none after `after`. */
    endDeletion: {
      run: ({ after, beforeMs, pseudonymKey }: { after: number; beforeMs: number; pseudonymKey: string }) =>
        completeStep(deletionRows(context.rows), after, beforeMs, pseudonymKey),
    },
  } satisfies Record<string, WriterCommand>
}
