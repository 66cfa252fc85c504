// What every page may ask about an integration.

import { IntegrationTile } from '../../components/integration-tile.tsx'
import type { DestinationOf, KindSummary } from '../../destination/kind.ts'
import { shortName } from '../../text/integration-tile.ts'
import { toolAdvice } from '../../text/reasons.ts'
import { IntegrationAttempt } from './attempt.tsx'

export const INTEGRATION_SUMMARY: KindSummary<DestinationOf<'integration'>> = {
  target: ({ integrationName }) => shortName(integrationName),
  targets: ({ integrationName }) => [integrationName],
  Icon: ({ destination: { integration, integrationName }, size }) => (
    <IntegrationTile slug={integration} name={integrationName} size={size} />
  ),
  advice: toolAdvice,
  request: null,
  ownsAttempt: ({ subscription }) => subscription !== null,
  Attempt: IntegrationAttempt,
  card: null,
}
