// How many requests to a destination each node may have in flight, so that all nodes together stay within its limit. The limit is divided
// among the live nodes (see shareOf in ../../port/nodes.ts). When a node joins or leaves, the nodes briefly disagree on which ones are
// alive. Then the sum can differ from the limit, but by at most one full limit for each node that only some of them see.

import { shareOf as shareAmongNodes } from '../../store.ts'
import { LEASE_MS, type Membership } from './membership.ts'

export function shareOf(
  destinationId: string,
  maxInFlight: number,
  membership: Pick<Membership, 'count' | 'rank' | 'isLeaseValid'>,
  isOrdered = false,
): number {
  // Without a valid lease, other nodes may have taken over this node's work, so it starts nothing new.
  if (!membership.isLeaseValid) return 0
  // Ordered messages of this node's partitions are delivered by no other node.
  return Math.max(shareAmongNodes(destinationId, maxInFlight, membership), isOrdered ? 1 : 0)
}

/** Calls `changed` when the shares may have changed: a node joined or left, or this node's lease was not valid for a while. */
export function onShares(membership: Membership, changed: () => void): void {
  let known = ''
  let validUntil = 0
  membership.onChange(() => {
    const { holder, rank, count, isLeaseValid } = membership
    const seen = `${holder} ${rank}/${count} ${isLeaseValid}`
    const now = performance.now()
    const isSame = seen === known && now < validUntil
    known = seen
    validUntil = now + LEASE_MS / 2
    if (!isSame) changed()
  })
}
