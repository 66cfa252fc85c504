// How many of a destination's requests each node may have under way, so that all together have no more than its limit: the
// limit is dealt out one by one to the nodes that are alive (see shareOf in ../../port/nodes.ts). Nodes see for a moment different neighbours
// when one comes or goes; then the sum is off by as much as they differ, never by more than the limit for each that is seen by
// some and not by others.

import { shareOf as dealt } from '../../store.ts'
import { LEASE_MS, type Membership } from './membership.ts'

export function shareOf(destinationId: string, maxInFlight: number, membership: Pick<Membership, 'count' | 'rank' | 'isAssured'>): number {
  // Whether others have taken what this node holds is not known: nothing more is begun until it is.
  return membership.isAssured ? dealt(destinationId, maxInFlight, membership) : 0
}

/** Tells when the shares are others than before: a node came or went, or this one was not sure of its own for a while. */
export function onShares(membership: Membership, changed: () => void): void {
  let known = ''
  let sureUntil = 0
  membership.onChange(() => {
    const { holder, rank, count, isAssured } = membership
    const seen = `${holder} ${rank}/${count} ${isAssured}`
    const now = performance.now()
    const isSame = seen === known && now < sureUntil
    known = seen
    sureUntil = now + LEASE_MS / 2
    if (!isSame) changed()
  })
}
