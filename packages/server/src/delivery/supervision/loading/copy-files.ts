// Asks a loader for the tables of a lake, or for copies of the files of one.

import type { Destination } from '../../../store/store.ts'
import { type CopyRequest, copyMessage } from '../../link/copy-message.ts'
import { sendOnce } from '../send-once.ts'
import type { Senders } from '../senders.ts'

/** The loader could not do it. The message is a sentence for the person who has asked. */
export class CopyProblem extends Error {
  override name = 'CopyProblem'
}

/** Rejects with CopyProblem. */
export async function copyFiles(
  senders: Pick<Senders, 'of'>,
  destination: Destination,
  request: CopyRequest,
  options: { startedAtMs: number; onBug: (text: string) => void },
): Promise<unknown> {
  const sent = await sendOnce(senders, destination, copyMessage(request), { ...options, isBackground: true })
  const outcome = 'outcomes' in sent ? sent.outcomes[0] : undefined
  if (outcome?.verdict === 'success') return JSON.parse(outcome.responseStart ?? '')
  throw new CopyProblem(outcome?.error ?? 'The files of the lake could not be read.')
}
