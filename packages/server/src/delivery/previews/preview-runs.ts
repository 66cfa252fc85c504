// What an integration would send for messages. It runs in a host process as for a delivery, except that no connection is opened.

import type { Destination, SegmentContent } from '../../store/store.ts'
import { withTimeout } from '../../timing/with-timeout.ts'
import type { RanRequest } from '../link/outcome.ts'
import { builtMessage } from '../sender/loaded-messages.ts'
import { sendOnce } from '../supervision/send-once.ts'
import type { Senders } from '../supervision/senders.ts'
import { PREVIEW_LIMIT_MS, PreviewTurns } from './preview-turns.ts'
import { NOT_REACHED, notRun, type Previewed, type PreviewedRequest } from './shown-requests.ts'

const turns = new PreviewTurns()
let lastNumber = 0

export async function previewRuns(
  senders: Pick<Senders, 'of'>,
  destination: Destination,
  messages: readonly SegmentContent[],
  options: { startedAtMs: number; onBug: (text: string) => void },
  limitMs = PREVIEW_LIMIT_MS,
): Promise<Previewed[]> {
  // Its settings may not be the stored ones, so senders know it as another destination.
  const shown = { ...destination, id: `preview-${++lastNumber}`, timeoutMs: Math.min(destination.timeoutMs, limitMs) }
  const previewed = await turns.run(
    messages,
    limitMs,
    (content, leftMs) => withTimeout(leftMs, previewRun(senders, shown, content, options), null),
    () => senders.of(shown).forget(shown.id),
  )
  return previewed.map((each) => each ?? NOT_REACHED)
}

async function previewRun(
  senders: Pick<Senders, 'of'>,
  destination: Destination,
  content: SegmentContent,
  options: { startedAtMs: number; onBug: (text: string) => void },
): Promise<Previewed> {
  const sent = await sendOnce(senders, destination, builtMessage(destination, content, 0), { ...options, isPreview: true })
  const outcome = 'outcomes' in sent ? sent.outcomes[0] : undefined
  if (outcome?.ran === undefined) return notRun(outcome?.error ?? 'The integration could not be run.')
  const { ran } = outcome
  const requests: PreviewedRequest[] = []
  const errors: string[] = []
  const logs: string[] = []
  for (const { subscription, method, url, outcome: result, sent: shown } of ran.requests) {
    if (method !== null)
      requests.push({ subscription: subscription ?? '', method, url, headers: shown?.headers ?? {}, body: shown?.body ?? '' })
    else if (result.error !== null)
      errors.push(subscription === null || subscription === '' ? result.error : `${subscription}: ${result.error}`)
    if (result.logs !== undefined) logs.push(result.logs)
  }
  return {
    kind: 'requests',
    requests,
    error: errors.length === 0 ? null : errors.join(' '),
    failure: failureOf(ran.requests),
    logs: logs.length === 0 ? null : logs.join('\n'),
  }
}

/** What an action says before it has made a request is about the message. What it says later may only be about the empty answers of a preview. */
const ABOUT_MESSAGE: ReadonlySet<string | null> = new Set(['invalid_payload', 'invalid_authentication', 'integration_failed'])

/** The reason for which the message could not be sent; null if nothing speaks against it. */
function failureOf(requests: readonly RanRequest[]): string | null {
  const started = new Set(requests.flatMap(({ subscription, method }) => (method === null ? [] : [subscription])))
  const failed = requests.find(
    ({ subscription, method, outcome }) => method === null && !started.has(subscription) && ABOUT_MESSAGE.has(outcome.reason),
  )
  return failed?.outcome.reason ?? null
}
