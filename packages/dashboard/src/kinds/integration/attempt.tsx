// An attempt of an integration: a request of a subscription, or a subscription that ended without one.

import { Text } from '@mantine/core'
import { AttemptFrame } from '../../components/attempt.tsx'
import { Note } from '../../components/styled.tsx'
import type { AttemptProps } from '../../destination/kind.ts'
import { duration } from '../../text/format.ts'
import { toolAdvice } from '../../text/reasons.ts'

export function IntegrationAttempt({ attempt, withAdvice = true }: AttemptProps) {
  const { reason, method, subscription, timings } = attempt
  const isSent = method !== null
  const advice = withAdvice && reason !== null ? toolAdvice(reason) : ''
  return (
    <AttemptFrame attempt={attempt} isSent={isSent} subject={subscription} advice={advice} printedBy="integration">
      {isSent ? (
        // The phases of its requests are not measured.
        <Text size="xs" fw={600}>
          total {duration(timings.totalMs)}
        </Text>
      ) : (
        reason === null && <Note>The subscription made no HTTP request.</Note>
      )}
    </AttemptFrame>
  )
}
