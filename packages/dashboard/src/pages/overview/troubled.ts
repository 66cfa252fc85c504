// The destinations that have problems now, whether or not there is an incident about them already. Pure.

import type { Answer, Schemas } from '../../api/client.ts'
import { type StatusName, statusOf } from '../../destination/destination-status.ts'

/** The states of a destination that need attention before there is an incident. */
const TROUBLE: ReadonlySet<StatusName> = new Set(['held', 'failing', 'degraded'])

/** A destination that has problems now, and why. */
export interface Troubled {
  id: string
  name: string
  cause: string
}

/** Undefined until both lists are known. A destination whose health the caller may not see is left out. */
export function troubledOf(
  destinations: readonly Schemas['DestinationSummary'][] | undefined,
  health: Answer<'GET /api/destinations/health'>['data'] | undefined,
  nowMs: number,
): Troubled[] | undefined {
  if (destinations === undefined || health === undefined) return undefined
  const byId = new Map(health.map((each) => [each.destinationId, each]))
  return destinations.flatMap((destination) => {
    const own = byId.get(destination.id)
    const status = own === undefined ? null : statusOf(destination, own, nowMs)
    if (status === null || !TROUBLE.has(status.name)) return []
    return [{ id: destination.id, name: destination.name, cause: status.summary }]
  })
}
