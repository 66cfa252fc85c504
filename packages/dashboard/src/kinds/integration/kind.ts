// Integrations: tools of the catalogue, which subscriptions send messages to.

import { lazy } from 'react'
import type { DestinationOf, Kind } from '../../destination/kind.ts'
import { INTEGRATION_SUMMARY } from './summary.tsx'

export const INTEGRATION: Kind<DestinationOf<'integration'>> = {
  ...INTEGRATION_SUMMARY,
  Page: lazy(() => import('./integration-page.tsx')),
  New: lazy(() => import('./new-integration.tsx')),
}
