// The writing thread's commands about deletions of users.

import { completeStep } from '../../deletions/deletion-completion.ts'
import type { DeletionDraft } from '../../deletions/deletions.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterContext } from '../threads/writer-context.ts'
import { deletionRows } from './deletion-rows.ts'
import { createDeletion, Purges } from './write-deletions.ts'

export function deletionCommands(parts: WriterContext) {
  const purges = new Purges(parts)
  parts.transactionListeners.push(purges)
  return {
    /** With its delete messages, which are held until they are released. */
    createDeletion: { run: (draft: DeletionDraft) => createDeletion(parts, draft) },
    /** `end`: what is purged was accepted before it. */
    purgeStep: { run: ({ deletion }: { deletion: number }) => purges.step(deletion) },
    /** The number of the deletion that was looked at; null when there is none after. */
    endDeletion: {
      run: ({ after, beforeMs, pseudonymKey }: { after: number; beforeMs: number; pseudonymKey: string }) =>
        completeStep(deletionRows(parts.rows), after, beforeMs, pseudonymKey),
    },
  } satisfies Record<string, WriterCommand>
}
