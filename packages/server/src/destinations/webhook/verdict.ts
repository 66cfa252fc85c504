// Classifies the HTTP status of a response as success, temporary failure or permanent failure.

import type { RetryPolicy } from '../../model/configuration.ts'
import { oncePerObject } from '../../model/once-per-object.ts'
import type { Verdict } from '../port/kind.ts'

/** Statuses below 500 for which a retry may succeed. */
const TEMPORARY_BELOW_500 = new Set([408, 425, 429])
/** Not Implemented and HTTP Version Not Supported: a retry does not help. */
const PERMANENT_FROM_500 = new Set([501, 505])

export function verdictOfStatus(status: number): Verdict {
  if (status >= 200 && status < 300) return 'success'
  if (status >= 500 && status < 600) return PERMANENT_FROM_500.has(status) ? 'permanent' : 'temporary'
  return TEMPORARY_BELOW_500.has(status) ? 'temporary' : 'permanent'
}

/** Returns the classification by a destination's policy. It is compiled once, because it is called for every request. */
export function verdictsOf(policy: RetryPolicy): (status: number) => Verdict {
  return policy.retryStatuses.length === 0 && policy.failStatuses.length === 0 ? verdictOfStatus : changedVerdicts(policy)
}

const changedVerdicts = oncePerObject(({ retryStatuses, failStatuses }: RetryPolicy): ((status: number) => Verdict) => {
  const changed = new Map<number, Verdict>()
  for (const status of retryStatuses) changed.set(status, 'temporary')
  for (const status of failStatuses) changed.set(status, 'permanent')
  return (status) => changed.get(status) ?? verdictOfStatus(status)
})
