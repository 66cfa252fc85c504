// What every page may ask about a webhook.

import { DestinationIcon } from '../../components/icons.tsx'
import type { DestinationOf, KindSummary } from '../../destination/kind.ts'
import { reasonAdvice } from '../../text/reasons.ts'
import { WebhookAttempt } from './attempt.tsx'

export const WEBHOOK_SUMMARY: KindSummary<DestinationOf<'webhook'>> = {
  target: ({ urls }) => `${urls.length > 1 ? `${urls.length} URLs: ` : ''}${urls[0] ?? ''}`,
  targets: ({ urls }) => urls,
  Icon: null,
  advice: (reason) => reasonAdvice(reason),
  request: ({ urls, request }) => ({ url: urls[0] ?? null, method: request?.method ?? 'POST' }),
  ownsAttempt: ({ subscription }) => subscription === null,
  Attempt: WebhookAttempt,
  card: {
    to: '/destinations/new',
    title: 'Webhook',
    about: 'Sends requests to your own URL, in any shape.',
    details: 'needs a URL · signed · batches',
    Icon: DestinationIcon,
  },
}
