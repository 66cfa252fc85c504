// Explains the warnings about accepted messages: what the code means, and what to do about it. The codes are the API's
// (packages/server/src/api/message-warnings.ts); a test compares the two.

const WARNINGS: Readonly<Record<string, { says: string; advice: string }>> = {
  timestamp_invalid: {
    says: 'timestamp or originalTimestamp is not a valid time, so it is ignored.',
    advice: 'Send an ISO 8601 time such as 2026-11-14T09:00:00.000Z, or milliseconds since 1970.',
  },
  sent_at_invalid: {
    says: 'sentAt is not a valid time, so the clock of the sender is not corrected.',
    advice: 'Send an ISO 8601 time such as 2026-11-14T09:00:00.000Z, or leave it out.',
  },
  timestamp_in_future: {
    says: 'The timestamp is more than a day in the future.',
    advice: 'Check the clock of the sender, and that a number is in milliseconds.',
  },
}

export function warningSentence(code: string): string {
  return (Object.hasOwn(WARNINGS, code) ? WARNINGS[code]?.says : undefined) ?? `Unknown warning: ${code}.`
}

export function warningAdvice(code: string): string {
  return (Object.hasOwn(WARNINGS, code) ? WARNINGS[code]?.advice : undefined) ?? ''
}
