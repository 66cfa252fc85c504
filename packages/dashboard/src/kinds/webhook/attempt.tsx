// An attempt of a webhook: one request to one URL, with the phases of the connection.

import { AttemptFrame, Waterfall } from '../../components/attempt.tsx'
import type { AttemptProps } from '../../destination/kind.ts'
import { reasonAdvice } from '../../text/reasons.ts'

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
