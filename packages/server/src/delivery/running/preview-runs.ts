// What an integration would send for messages. It runs in a host process as for a delivery, except that no connection is opened.

import { withViolations } from '../../outbound/outbound-message.ts'
import { segmentEvent } from '../../outbound/segment-event.ts'
import type { Destination, SegmentContent } from '../../store/store.ts'
import { withTimeout } from '../../timing/with-timeout.ts'
import type { Senders } from '../senders/senders.ts'
import { sendOnce } from '../sending/send-once.ts'
import { type Previewed, type PreviewedRequest, TooManyPreviews } from '../transforming/shown-requests.ts'

const MAX_AT_ONCE = 4
/** How long the messages of one call may take. */
const LIMIT_MS = 10_000
const NOT_REACHED: Previewed = {
  kind: 'failed',
  reason: 'not_run',
  error: 'The preview did not reach this message within its time limit.',
  logs: null,
}
let users = 0
let lastNumber = 0

export async function previewRuns(
  senders: Pick<Senders, 'start' | 'forget'>,
  destination: Destination,
  messages: readonly SegmentContent[],
  options: { startedAtMs: number; onBug: (text: string) => void },
  limitMs = LIMIT_MS,
): Promise<Previewed[]> {
  if (users >= MAX_AT_ONCE) throw new TooManyPreviews()
  users++
  // Its settings may not be the stored ones, so senders know it as another destination.
  const shown = { ...destination, id: `preview-${++lastNumber}`, timeoutMs: Math.min(destination.timeoutMs, limitMs) }
  const untilMs = performance.now() + limitMs
  try {
    const previewed: Previewed[] = []
    for (const content of messages) {
      const leftMs = untilMs - performance.now()
      // A timer may fire up to a millisecond early.
      const isOver = leftMs <= 0 || previewed.at(-1) === NOT_REACHED
      previewed.push(isOver ? NOT_REACHED : await withTimeout(leftMs, previewRun(senders, shown, content, options), NOT_REACHED))
    }
    return previewed
  } finally {
    users--
    senders.forget(shown.id)
  }
}

async function previewRun(
  senders: Pick<Senders, 'start'>,
  destination: Destination,
  content: SegmentContent,
  options: { startedAtMs: number; onBug: (text: string) => void },
): Promise<Previewed> {
  const plain = segmentEvent(content, 0)
  const event = destination.includeViolations === true ? withViolations(plain, content, 0) : plain
  const sent = await sendOnce(senders, destination, event, { ...options, isPreview: true })
  const outcome = 'outcomes' in sent ? sent.outcomes[0] : undefined
  if (outcome?.ran === undefined) {
    return { kind: 'failed', reason: 'not_run', error: outcome?.error ?? 'The integration could not be run.', logs: null }
  }
  const requests: PreviewedRequest[] = []
  const errors: string[] = []
  const logs: string[] = []
  for (const { subscription, method, url, outcome: result, sent: shown } of outcome.ran.requests) {
    if (method !== null) requests.push({ subscription, method, url, headers: shown?.headers ?? {}, body: shown?.body ?? '' })
    else if (result.error !== null) errors.push(subscription === '' ? result.error : `${subscription}: ${result.error}`)
    if (result.logs !== undefined) logs.push(result.logs)
  }
  return {
    kind: 'requests',
    requests,
    error: errors.length === 0 ? null : errors.join(' '),
    logs: logs.length === 0 ? null : logs.join('\n'),
  }
}
