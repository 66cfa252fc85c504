// What every page may ask about a webhook, and how its attempts are shown: one request to one URL, with the phases of the connection.

import { AttemptFrame, Waterfall } from '../../components/attempt.tsx'
import { DestinationIcon } from '../../components/icons.tsx'
import type { AttemptProps, DestinationOf, KindSummary } from '../../destination/kind.ts'
import { reasonAdvice } from '../../text/reasons.ts'

export const WEBHOOK_SUMMARY: KindSummary<DestinationOf<'webhook'>> = {
  target: ({ urls }) => `${urls.length > 1 ? `${urls.length} URLs: ` : ''}${urls[0] ?? ''}`,
  targets: ({ urls }) => urls,
  Icon: null,
  advice: (reason) => reasonAdvice(reason),
  request: ({ urls, request }) => ({ url: urls[0] ?? null, method: request?.method ?? 'POST' }),
  ownsAttempt: ({ subscription, load }) => subscription === null && load === null,
  Attempt: WebhookAttempt,
  card: {
    to: '/destinations/new',
    title: 'Webhook',
    about: 'Sends requests to your own URL, in any shape.',
    details: 'needs a URL · signed · batches',
    Icon: DestinationIcon,
  },
}

/** The attempt ended before a request was built. */
const NEVER_SENT = new Set(['mapping_failed', 'transformation_failed', 'dropped_by_transformation'])

export function WebhookAttempt({ attempt, withAdvice = true }: AttemptProps) {
  const { reason, timings } = attempt
  const isSent = reason === null || !NEVER_SENT.has(reason)
  const advice = withAdvice && reason !== null ? reasonAdvice(reason) : ''
  return (
    <AttemptFrame attempt={attempt} isSent={isSent} advice={advice} printedBy="transformation">
      {isSent && <Waterfall timings={timings} />}
    </AttemptFrame>
  )
}
