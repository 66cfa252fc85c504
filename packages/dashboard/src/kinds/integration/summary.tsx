// What every page may ask about an integration, and how its attempts are shown: a request of a subscription, or a subscription that ended
// without one.

import { AttemptFrame } from '../../components/attempt.tsx'
import { IntegrationTile } from '../../components/integration-tile.tsx'
import { Note, SmallStrong } from '../../components/styled.tsx'
import type { AttemptProps, DestinationOf, KindSummary } from '../../destination/kind.ts'
import { duration } from '../../text/format.ts'
import { toolAdvice } from '../../text/reasons.ts'

export const INTEGRATION_SUMMARY: KindSummary<DestinationOf<'integration'>> = {
  target: ({ integrationTitle }) => integrationTitle,
  targets: ({ integrationTitle }) => [integrationTitle],
  Icon: ({ destination: { integration, integrationTitle }, size }) => (
    <IntegrationTile slug={integration} title={integrationTitle} size={size} />
  ),
  advice: toolAdvice,
  request: null,
  ownsAttempt: ({ subscription }) => subscription !== null,
  Attempt: IntegrationAttempt,
  card: null,
}

export function IntegrationAttempt({ attempt, withAdvice = true }: AttemptProps) {
  const { reason, method, subscription, timings } = attempt
  const isSent = method !== null
  const advice = withAdvice && reason !== null ? toolAdvice(reason) : ''
  return (
    <AttemptFrame attempt={attempt} isSent={isSent} subject={subscription} advice={advice} printedBy="integration">
      {isSent ? (
        // The phases of its requests are not measured.
        <SmallStrong>total {duration(timings.totalMs)}</SmallStrong>
      ) : (
        reason === null && <Note>The subscription made no HTTP request.</Note>
      )}
    </AttemptFrame>
  )
}
