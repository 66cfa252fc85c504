// The writing thread's side of deletions of users.

import { completeStep } from '../../deletions/deletion-completion.ts'
import type { DeletionDraft } from '../../deletions/deletions.ts'
import { deletionRows } from '../rows/deletion-rows.ts'
import { createDeletion, Purges } from '../writing/write-deletions.ts'
import type { WriterContext } from '../writing/writer-context.ts'

export function deletionWrites(context: WriterContext) {
  const purges = new Purges(context)
  context.transactionListeners.push(purges)
  return {
    /** Also creates the delete messages, which stay claimed until they are released. */
    create: (draft: DeletionDraft) => createDeletion(context, draft),
    /** Returns `end`: only messages that were accepted before it are purged. */
    purgeStep: (deletion: number) => purges.step(deletion),
    /** Returns the row id of the deletion that was checked, or null if there is none after `after`. */
    completeStep: (after: number, beforeMs: number, pseudonymKey: string) =>
      completeStep(deletionRows(context.rows), after, beforeMs, pseudonymKey),
  }
}
