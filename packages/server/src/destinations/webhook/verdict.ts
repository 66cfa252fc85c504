// Classifies the HTTP status of a response as success, temporary failure or permanent failure.

import type { Verdict } from '../kind.ts'

/** Statuses below 500 for which a retry may succeed. */
const TEMPORARY_BELOW_500 = new Set([408, 425, 429])
/** Not Implemented and HTTP Version Not Supported: a retry does not help. */
const PERMANENT_FROM_500 = new Set([501, 505])

export function verdictOfStatus(status: number): Verdict {
  if (status >= 200 && status < 300) return 'success'
  if (status >= 500 && status < 600) return PERMANENT_FROM_500.has(status) ? 'permanent' : 'temporary'
  return TEMPORARY_BELOW_500.has(status) ? 'temporary' : 'permanent'
}
