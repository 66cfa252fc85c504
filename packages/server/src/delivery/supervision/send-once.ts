// Sends one message that is not stored, at once and beside the queue: a test request, or the preview of an integration, which dials nothing.

import type { JsonObject } from '@switchyard/protocol'
import { kindOf } from '../../destinations/kinds.ts'
import type { Destination } from '../../store/store.ts'
import type { Outcome, Rejected } from '../link/outcome.ts'
import type { Senders } from './senders.ts'

/** One outcome for each URL; or why the message was not sent. */
export type SentOnce = { outcomes: readonly Outcome[] } | { rejected: Rejected | null }

interface OnceOptions {
  startedAtMs: number
  isPreview?: boolean
  isBackground?: boolean
  onBug: (text: string) => void
}

export function sendOnce(
  senders: Pick<Senders, 'of'>,
  destination: Destination,
  message: JsonObject,
  { startedAtMs, isPreview = false, isBackground = false, onBug }: OnceOptions,
): Promise<SentOnce> {
  const urls = kindOf(destination).targets(destination)
  const about = { sourceId: '', receivedAtMs: startedAtMs, ip: null, browser: false, trace: null }
  const body = { about, bytes: Buffer.from(JSON.stringify(message)), absent: [], parsed: null }
  // Together with the index, the origin is the id of the delivery: test-TIME.
  const content = { origin: 'test', body, isText: true, indexes: [startedAtMs], loaded: null }
  return new Promise((resolve) => {
    const outcomes: Outcome[] = []
    let left = urls.length
    senders.of(destination).start({
      destination,
      isBatch: destination.batch.size > 1,
      attempt: 1,
      replay: false,
      startedAtMs,
      // The response of the receiver is part of the result, on success too.
      keepAnswer: true,
      limit: Number.POSITIVE_INFINITY,
      urls: urls.map((_, at) => at),
      isPreview,
      isBackground,
      messages: [{ content, index: startedAtMs }],
      answered(at, outcome) {
        outcomes[at] = outcome
        left--
        if (left === 0) resolve({ outcomes })
      },
      unsent: ([{ why } = { why: 'deleted' }]) => resolve({ rejected: typeof why === 'string' ? null : why }),
      bug: onBug,
    })
  })
}
