// How fast a source may send: a bucket of one second's messages for each source. A batch is let in whole while the bucket
// has anything in it, and what it takes too much is owed, so a batch larger than the limit passes too, only more rarely.
// Only accepted messages are charged. So a request is first checked, and charged later for its messages.
// Where several nodes take its messages, each lets in what the others leave of the limit, and its even part in any case.

import type { Nodes } from '../store/store.ts'

export interface RateLimit {
  /** Seconds to wait before trying again; 0 when a request of the source may pass. */
  waitSeconds(sourceId: string, nowMs: number): number
  /** Charges messages to a source whose request may pass. A negative number refunds messages that were not stored after all. */
  charge(sourceId: string, messages: number): void
}

/** What the nodes let in, as they tell each other. */
export interface OtherNodes {
  readonly count: number
  /** Messages per second, by all others together. */
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
/** Of more sources, those that sent most. */
const MAX_TOLD = 500
const MAX_RATE = 1e9

/** A limit that holds for all nodes together, within what they know of each other: about two seconds old. */
export function createSharedRateLimit(messagesPerSecond: number, nodes: Nodes, nowMs: () => number): RateLimit {
  let taken = new Map<string, number>()
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
    const rates = [...taken].map(([sourceId, messages]): [string, number] => [sourceId, Math.ceil(messages / seconds)])
    if (rates.length > MAX_TOLD) rates.sort(([, a], [, b]) => b - a)
    nodes.announce(KEY, nodes.count === 1 || rates.length === 0 ? undefined : Object.fromEntries(rates.slice(0, MAX_TOLD)))
    taken = new Map()
    sinceMs = nowMs()
  })
  const others: OtherNodes = {
    get count() {
      return nodes.count
    },
    usedBy: (sourceId) => used.get(sourceId) ?? 0,
  }
  return createRateLimit(messagesPerSecond, others, (sourceId, messages) => taken.set(sourceId, (taken.get(sourceId) ?? 0) + messages))
}
