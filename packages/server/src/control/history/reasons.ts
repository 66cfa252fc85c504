// The reasons why a delivery was not made, in words. What an attempt came to is attempt-reasons.ts's to say; what ended a
// delivery without one stands here.

import { describeStatus, REASONS } from '../../api/attempt-reasons.ts'

const WITHOUT_ATTEMPT: Readonly<Record<string, string>> = {
  retry_window_over: 'The time for retries was over before it was delivered.',
  destination_deleted: 'The destination was deleted.',
  message_deleted: 'The message was deleted, as a deletion request asked for.',
  message_unreadable: 'The stored message is damaged and cannot be read.',
}

/** Of `http_503`: 503. */
export function statusOfReason(reason: string | null): number | null {
  const [, status] = /^http_(\d{3})$/.exec(reason ?? '') ?? []
  return status === undefined ? null : Number(status)
}

export function reasonSentence(reason: string | null): string {
  if (reason === null) return 'No reason was recorded.'
  const status = statusOfReason(reason)
  if (status !== null) return describeStatus(status)
  const known: Readonly<Record<string, readonly [unknown, string]>> = REASONS
  return (
    (Object.hasOwn(known, reason) ? known[reason]?.[1] : undefined) ??
    (Object.hasOwn(WITHOUT_ATTEMPT, reason) ? WITHOUT_ATTEMPT[reason] : undefined) ??
    `The reason has the code ${reason}.`
  )
}
