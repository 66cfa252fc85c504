// Asks a loader for the tables of a lake, or for copies of the files of one.

import { usualSentence } from '../../../api/attempt-reasons.ts'
import type { Destination } from '../../../store/store.ts'
import { type CopyRequest, copyMessage } from '../../link/copy-message.ts'
import { sendOnce } from '../send-once.ts'
import type { Senders } from '../senders.ts'

const NOT_READ = 'The files of the lake could not be read.'

/** The loader could not do it. The message may quote the error of the store, and name the bucket and its objects. */
export class CopyProblem extends Error {
  override name = 'CopyProblem'
  /** A general sentence for the kind of error, which quotes nothing. */
  readonly usual: string

  constructor(message: string, reason: string | null) {
    super(message)
    this.usual = (reason === 'warehouse_failed' ? null : usualSentence(reason ?? '')) ?? NOT_READ
  }

  /** The message for a caller with access to these sources. Only callers with access to all sources of the lake see details. */
  messageFor({ sourceIds }: Pick<Destination, 'sourceIds'>, sources: readonly string[] | 'all'): string {
    const isWhole = sources === 'all' || (sourceIds.length > 0 && sourceIds.every((id) => sources.includes(id)))
    return isWhole ? this.message : `${this.usual} Somebody who has access to all sources of the lake can see the details.`
  }
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
  throw new CopyProblem(outcome?.error ?? NOT_READ, outcome?.reason ?? null)
}
