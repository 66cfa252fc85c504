// The rate limit per source: a token bucket that holds the messages of one second. While the bucket is not empty, a batch is
// accepted as a whole, and the bucket may become negative. So batches larger than the limit are accepted too, only less often.
// Only accepted messages are charged, so a request is checked first and charged later for its messages.
// With several nodes, each node may accept the part of the limit that the others do not use, and always at least an equal share.

import type { Nodes } from '../../store/store.ts'

export interface RateLimit {
  /** Returns the seconds until the source may send again; 0 if it may send now. */
  waitSeconds(sourceId: string, nowMs: number): number
  /** Charges messages to a source. A negative number refunds messages that were not stored. */
  charge(sourceId: string, messages: number): void
}

/** The rates that the other nodes report. */
export interface OtherNodes {
  readonly count: number
  /** Messages per second that all other nodes together accept from a source. */
  usedBy(sourceId: string): number
}

interface Bucket {
  left: number
  atMs: number
}

const ALONE: OtherNodes = { count: 1, usedBy: () => 0 }

export function createRateLimit(
  messagesPerSecond: number,
  others: OtherNodes = ALONE,
  onCharge?: (sourceId: string, messages: number) => void,
): RateLimit {
  const buckets = new Map<string, Bucket>()
  return {
    waitSeconds(sourceId, nowMs) {
      const rate = Math.max(messagesPerSecond / others.count, messagesPerSecond - others.usedBy(sourceId))
      let bucket = buckets.get(sourceId)
      if (bucket === undefined) {
        bucket = { left: rate, atMs: nowMs }
        buckets.set(sourceId, bucket)
      }
      bucket.left = Math.min(rate, bucket.left + ((nowMs - bucket.atMs) * rate) / 1_000)
      bucket.atMs = nowMs
      return bucket.left > 0 ? 0 : Math.max(1, Math.ceil(-bucket.left / rate))
    },

    charge(sourceId, messages) {
      const bucket = buckets.get(sourceId)
      if (bucket === undefined) return
      bucket.left -= messages
      onCharge?.(sourceId, messages)
    },
  }
}

const KEY = 'rates'
/** The number of sources that a node reports. If there are more, it reports those that sent the most. */
const MAX_REPORTED = 500
const MAX_RATE = 1e9

/** A limit for all nodes together. It is approximate, because the rates that nodes report to each other are about two seconds old. */
export function createSharedRateLimit(messagesPerSecond: number, nodes: Nodes, nowMs: () => number): RateLimit {
  let accepted = new Map<string, number>()
  let sinceMs = nowMs()
  let used = new Map<string, number>()
  nodes.onChange(() => {
    used = new Map()
    for (const { doc } of nodes.others()) {
      for (const [sourceId, rate] of Object.entries(doc[KEY] ?? {}) as [string, unknown][]) {
        if (typeof rate === 'number' && rate > 0 && rate <= MAX_RATE) used.set(sourceId, (used.get(sourceId) ?? 0) + rate)
      }
    }
    const seconds = Math.max(0.1, (nowMs() - sinceMs) / 1_000)
    const rates = [...accepted].map(([sourceId, messages]): [string, number] => [sourceId, Math.ceil(messages / seconds)])
    if (rates.length > MAX_REPORTED) rates.sort(([, a], [, b]) => b - a)
    nodes.announce(KEY, nodes.count === 1 || rates.length === 0 ? undefined : Object.fromEntries(rates.slice(0, MAX_REPORTED)))
    accepted = new Map()
    sinceMs = nowMs()
  })
  const others: OtherNodes = {
    get count() {
      return nodes.count
    },
    usedBy: (sourceId) => used.get(sourceId) ?? 0,
  }
  return createRateLimit(messagesPerSecond, others, (sourceId, messages) =>
    accepted.set(sourceId, (accepted.get(sourceId) ?? 0) + messages),
  )
}
