// Webhooks: requests to URLs of the user.

import { lazy } from 'react'
import type { DestinationOf, Kind } from '../../destination/kind.ts'
import { WEBHOOK_SUMMARY } from './summary.tsx'

export const WEBHOOK: Kind<DestinationOf<'webhook'>> = {
  ...WEBHOOK_SUMMARY,
  Page: lazy(() => import('./webhook-page.tsx')),
  New: lazy(() => import('./new-webhook.tsx')),
}
