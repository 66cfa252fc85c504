// The reasons why a delivery failed, expired or was cancelled, as sentences. The reasons of failed attempts are in api/attempt-reasons.ts;
// here are the reasons that end a delivery without an attempt.

import { usualSentence } from '../../api/attempt-reasons.ts'

export const WITHOUT_ATTEMPT: Readonly<Record<string, string>> = {
  retry_window_over: 'The retry window ended before the message was delivered.',
  destination_deleted: 'The destination was deleted.',
  message_deleted: 'A deletion request deleted the message.',
  skipped_by_operator: 'Somebody skipped the message, so that later messages with the same key are sent.',
  order_backlog: 'Too many messages with the same key waited for this one, so it was given up after a failed attempt.',
  message_unreadable: 'The stored message is damaged and cannot be read.',
}

export function reasonSentence(reason: string | null): string {
  if (reason === null) return 'No reason was recorded.'
  return (
    usualSentence(reason) ?? (Object.hasOwn(WITHOUT_ATTEMPT, reason) ? WITHOUT_ATTEMPT[reason] : undefined) ?? `Unknown reason: ${reason}.`
  )
}
