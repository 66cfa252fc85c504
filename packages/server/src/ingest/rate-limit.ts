// How fast a source may send: a bucket of one second's messages for each source. A batch is let in whole while the bucket
// has anything in it, and what it takes too much is owed, so a batch larger than the limit passes too, only more rarely.

export interface RateLimit {
  /** Seconds to wait before trying again; 0 when the messages are let in. */
  take(sourceId: string, messages: number, nowMs: number): number
}

interface Bucket {
  left: number
  atMs: number
}

export function createRateLimit(messagesPerSecond: number): RateLimit {
  const buckets = new Map<string, Bucket>()
  return {
    take(sourceId, messages, nowMs) {
      let bucket = buckets.get(sourceId)
      if (bucket === undefined) {
        bucket = { left: messagesPerSecond, atMs: nowMs }
        buckets.set(sourceId, bucket)
      }
      bucket.left = Math.min(messagesPerSecond, bucket.left + ((nowMs - bucket.atMs) * messagesPerSecond) / 1_000)
      bucket.atMs = nowMs
      if (bucket.left <= 0) return Math.max(1, Math.ceil(-bucket.left / messagesPerSecond))
      bucket.left -= messages
      return 0
    },
  }
}
