// The warnings about accepted messages: the codes, and what each says after the name of the field.

export const WARNINGS = {
  timestamp_invalid:
    'is not a valid time, so it is ignored. Send an ISO 8601 time such as 2026-11-14T09:00:00.000Z, or milliseconds since 1970.',
  sent_at_invalid:
    'is not a valid time, so the clock of the sender is not corrected. Send an ISO 8601 time such as 2026-11-14T09:00:00.000Z, or leave it out.',
  timestamp_in_future: 'is more than a day in the future. Check the clock of the sender, and that a number is in milliseconds.',
} as const

export type WarningCode = keyof typeof WARNINGS
