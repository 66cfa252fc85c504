// The writing thread's commands about deletions of users.

import { endStep } from '../../deletions/deletion-ends.ts'
import type { DeletionDraft } from '../../deletions/deletions.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterParts } from '../threads/writer-parts.ts'
import { deletionRows } from './deletion-rows.ts'
import { DeletionWriter } from './write-deletions.ts'

export function deletionCommands(parts: WriterParts) {
  const deletions = new DeletionWriter(parts)
  parts.inTransaction.push(deletions)
  return {
    /** With its delete messages, which are held until they are released. */
    createDeletion: { run: (draft: DeletionDraft) => deletions.create(draft) },
    /** `end`: what is purged was accepted before it. */
    purgeStep: { run: ({ deletion }: { deletion: number }) => deletions.purgeStep(deletion) },
    /** The number of the deletion that was looked at; null when there is none after. */
    endDeletion: {
      run: ({ after, beforeMs, pseudonymKey }: { after: number; beforeMs: number; pseudonymKey: string }) =>
        endStep(deletionRows(parts), after, beforeMs, pseudonymKey),
    },
  } satisfies Record<string, WriterCommand>
}
