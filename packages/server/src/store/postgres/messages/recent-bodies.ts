// The bodies that this node has just accepted for ordered destinations. Their shipments are claimed from the store, nearly always within milliseconds, and
// a claim that finds the body here need not read it. Only what is in its row is kept, so it makes no difference to a claim where a body comes from,
// except that messages which were purged since are still in it. Nothing is kept for longer than a deletion is remembered: delivery/common-delivery-store.ts
// leaves out the messages of deleted users, wherever their bodies come from.

import { type SegmentAbout, SegmentBody } from '../../port/stored-messages.ts'
import type { AcceptBatch } from '../../store.ts'

/** What a claim needs of a segment. */
export interface ClaimedSegment {
  count: number
  absent: readonly number[]
  body: SegmentBody
  bytes: number
}

interface RecentBody extends Omit<ClaimedSegment, 'body'> {
  stored: Uint8Array
  /** How much memory it takes. */
  size: number
  about: SegmentAbout
  /** How many shipments of it this node is going to claim. */
  left: number
  sinceMs: number
}

const MOST_BYTES = 4 * 1024 * 1024
const KEPT_MS = 5_000
/** What an entry takes beside its body. */
export const ENTRY_BYTES = 512

export class RecentBodies {
  /** By segment, the oldest first. */
  readonly #bodies = new Map<string, RecentBody>()
  readonly #nowMs: () => number
  #bytes = 0

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Called after the commit. If there is no room, the body is not kept: the oldest are claimed first. `shipments`: how many of the segment this node is
   * going to claim.
   */
  add(segment: string, { content, body, messageIds }: AcceptBatch, absent: readonly number[], shipments: number): void {
    this.expire()
    const { sourceId, receivedAtMs, ip, browser, trace, violations } = content
    const size = ENTRY_BYTES + body.length + (violations === undefined ? 0 : 2 * JSON.stringify(violations).length)
    if (shipments === 0 || this.#bytes + size > MOST_BYTES) return
    const about: SegmentAbout = { sourceId, receivedAtMs, ip, browser, trace }
    if (violations !== undefined) about.violations = violations
    // It may be a small part of a buffer with all that an ingest thread has sent, which would stay in memory with it.
    const stored = body.length * 2 < body.buffer.byteLength ? new Uint8Array(body) : body
    this.#bodies.set(segment, {
      count: messageIds.length,
      absent,
      stored,
      about,
      bytes: body.length,
      size,
      left: shipments,
      sinceMs: this.#nowMs(),
    })
    this.#bytes += size
  }

  /** Forgets what is too old. Called with every heartbeat, too. */
  expire(): void {
    const nowMs = this.#nowMs()
    for (const [oldest, { sinceMs }] of this.#bodies) {
      if (nowMs - sinceMs <= KEPT_MS) break
      this.#remove(oldest)
    }
  }

  /** For so many of its shipments, which were claimed. Undefined if the body must be read from the store. */
  take(segment: string, shipments: number): ClaimedSegment | undefined {
    const found = this.#bodies.get(segment)
    if (found === undefined) return undefined
    const { count, absent, stored, about, bytes, sinceMs } = found
    found.left -= shipments
    if (found.left <= 0) this.#remove(segment)
    if (this.#nowMs() - sinceMs > KEPT_MS) return undefined
    return { count, absent, body: new SegmentBody(stored, about, absent), bytes }
  }

  clear(): void {
    this.#bodies.clear()
    this.#bytes = 0
  }

  #remove(segment: string): void {
    this.#bytes -= this.#bodies.get(segment)?.size ?? 0
    this.#bodies.delete(segment)
  }
}
