// An attempt as it is answered: of a delivery, or of a test.

import { isoTime } from '@switchyard/protocol'
import { integer, nullable, number, object, string, time } from '../../api/schema.ts'
import type { TestAttempt } from '../../delivery/delivery.ts'

const MS = nullable(number())

export const ATTEMPT_FIELDS = {
  url: string({
    description:
      'An attempt is stored without the query values of its URL. Admins see the values that the destination has now, if exactly one of its URLs matches; otherwise, and for viewers, they are shown as (hidden).',
  }),
  address: nullable(string({ description: 'The IP address that was dialled; null if none was.' })),
  startedAt: time(),
  status: nullable(integer()),
  reason: nullable(string({ description: 'A stable code; null on success.' })),
  error: nullable(string({ description: 'A sentence; null on success.' })),
  timings: object({ dnsMs: MS, connectMs: MS, tlsMs: MS, firstByteMs: MS, totalMs: number() }),
  responseStart: nullable(string({ description: 'The start of the response body. Kept for failures and tests only.' })),
}

export function attemptView(attempt: TestAttempt, shownUrl: (url: string) => string) {
  const { address, status, reason, error, dnsMs, connectMs, tlsMs, firstByteMs, totalMs, responseStart } = attempt
  const startedAt = isoTime(attempt.startedAtMs)
  const url = shownUrl(attempt.url)
  return { url, address, startedAt, status, reason, error, timings: { dnsMs, connectMs, tlsMs, firstByteMs, totalMs }, responseStart }
}
