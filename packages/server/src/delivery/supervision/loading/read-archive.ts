// Asks a loader for a page of the archive of a lake.

import { type ArchiveAnswer, ArchiveProblem, type ArchiveRequest } from '../../../destinations/warehouse/archive-page.ts'
import type { Destination } from '../../../store/store.ts'
import { archiveMessage } from '../../link/archive-message.ts'
import { sendOnce } from '../send-once.ts'
import type { Senders } from '../senders.ts'

/** Rejects with ArchiveProblem. */
export async function readArchive(
  senders: Pick<Senders, 'of'>,
  destination: Destination,
  request: ArchiveRequest,
  options: { startedAtMs: number; onBug: (text: string) => void },
): Promise<ArchiveAnswer> {
  const sent = await sendOnce(senders, destination, archiveMessage(request), { ...options, isBackground: true })
  const outcome = 'outcomes' in sent ? sent.outcomes[0] : undefined
  if (outcome?.verdict === 'success') return JSON.parse(outcome.responseStart ?? '') as ArchiveAnswer
  throw new ArchiveProblem(outcome?.reason ?? 'archive_unread', outcome?.error ?? 'The archive of the lake could not be read.')
}
