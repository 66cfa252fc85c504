// Several processes on one store, as the stages see them: who is alive, what each tells the others about once a second, and a
// way to say something to all at once. A store for one process has none of it. What is told is small, may be a second or two
// old, and decides nothing that must be exact: that is the store's.

export interface NodeSummary {
  num: number
  name: string
  version: string
  startedAtMs: number
  /** When it last gave a sign of life, by the store's clock. */
  seenAtMs: number
  /** What it tells the others. Of another version, perhaps: whoever reads it checks what is in it. */
  doc: Readonly<Record<string, unknown>>
  isSelf: boolean
}

export interface Nodes {
  /** Every node that is alive, this one too. */
  readonly nodes: readonly NodeSummary[]
  others(): readonly NodeSummary[]
  readonly count: number
  /** This node's place among those that are alive, from 0. */
  readonly rank: number
  /** Told to the others with the next sign of life; undefined: no longer. */
  tell(key: string, value: unknown): void
  /** Called about once a second: who is alive, or what they tell, may have changed. */
  onChange(listener: () => void): void
}

/** To all nodes at once, this one left out, and without a promise that it arrives. */
export interface Channel {
  /** At most this many bytes of UTF-8 in one message. */
  readonly maxBytes: number
  publish(text: string): void
  onMessage(listener: (text: string) => void): void
}

/** What a database server says of itself, for whoever looks after it. */
export interface ServerFacts {
  version: string
  /** How much its clock is ahead of this machine's. */
  clockAheadMs: number
  connections: { used: number; max: number }
  /** The standbys that commits wait for, as they are configured; empty: none. */
  synchronousStandbys: string
  standbys: readonly { name: string; state: string; sync: string; lagMs: number | null }[]
}

/**
 * How much of a limit that holds for all nodes together is this node's. The shares of nodes that agree on who is alive add up
 * to the limit; who gets one more differs by subject, so that not all small limits are one node's.
 */
export function shareOf(subject: string, limit: number, { rank, count }: Pick<Nodes, 'rank' | 'count'>): number {
  const place = placeOf(subject, { rank, count })
  return Math.floor(limit / count) + (place < limit % count ? 1 : 0)
}

/** This node's place for a subject, from 0: each node has another one, and each subject another order. */
export function placeOf(subject: string, { rank, count }: Pick<Nodes, 'rank' | 'count'>): number {
  return (rank + hash(subject)) % count
}

/** FNV-1a: the same on every node and in every version. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0
  return value
}
