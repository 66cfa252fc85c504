// Several processes that share one store: which nodes are alive, the values that each node announces with its heartbeat about once a second,
// and a channel to all nodes. A store for one process has neither. Announced values are small and may be a second or two old. Nothing
// that must be exact may depend on them; the store decides that.

export interface NodeSummary {
  num: number
  name: string
  version: string
  startedAtMs: number
  /** The time of its last heartbeat, by the store's clock. */
  seenAtMs: number
  /** The values that it announces. The node may run another version, so readers must validate them. */
  doc: Readonly<Record<string, unknown>>
  isSelf: boolean
}

export interface Nodes {
  /** Every node that is alive, including this one. */
  readonly nodes: readonly NodeSummary[]
  others(): readonly NodeSummary[]
  readonly count: number
  /** This node's position among the nodes that are alive, from 0. */
  readonly rank: number
  /** Sends the value to the other nodes with every heartbeat from the next one on. Undefined removes it. */
  announce(key: string, value: unknown): void
  /** Called about once a second, when the nodes that are alive or their announced values may have changed. */
  onChange(listener: () => void): void
}

/** Sends messages to all other nodes. Delivery is not guaranteed. */
export interface Channel {
  /** The maximum size of one message, in bytes of UTF-8. */
  readonly maxBytes: number
  publish(text: string): void
  onMessage(listener: (text: string) => void): void
}

/** Facts about a database server, for its operators. */
export interface ServerFacts {
  version: string
  /** How far its clock is ahead of this machine's clock. */
  clockAheadMs: number
  connections: { used: number; max: number }
  /** The setting synchronous_standby_names: the standbys that commits wait for. Empty if there are none. */
  synchronousStandbys: string
  standbys: readonly { name: string; state: string; sync: string; lagMs: number | null }[]
}

/**
 * This node's share of a limit that applies to all nodes together. The shares of nodes that agree on which nodes are alive add up to the limit.
 * Which nodes get the remainder differs by subject, so that one node does not get all the small limits.
 */
export function shareOf(subject: string, limit: number, { rank, count }: Pick<Nodes, 'rank' | 'count'>): number {
  const position = positionOf(subject, { rank, count })
  return Math.floor(limit / count) + (position < limit % count ? 1 : 0)
}

/** This node's position for a subject, from 0. Every node has a different position, and the order of the nodes differs by subject. */
export function positionOf(subject: string, { rank, count }: Pick<Nodes, 'rank' | 'count'>): number {
  return (rank + hash(subject)) % count
}

/** FNV-1a. Must give the same result on every node and in every version. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0
  return value
}
