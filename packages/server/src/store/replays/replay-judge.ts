// Decides whether deliveries can be replayed, and which of a message's deliveries is repeated. Checks many deliveries at once, with a few queries.
// Runs inside the transaction that acts on the result. Until the commit, the rows of destinations are locked against deletion, and those of
// segments against being dropped.

import type { ResolvedDelivery, RowAndIndex } from '../history/delivery-ids.ts'
import type { FinalStateName, ReplaySkipReason, RowId } from '../store.ts'
import type { Repeatable } from './replay-budget.ts'
import { finalStatesOf, type StoredMessages, storedMessages } from './replay-final-states.ts'
import type { ReplayRows, SameMessage } from './replay-rows.ts'

export interface ReplayCandidate<Id extends RowId> extends ResolvedDelivery<Id> {
  state: FinalStateName
  /** Whether the delivery was selected by its id. */
  byId: boolean
}

/** `bytes`: how much was read, which counts against the step's budget. Undefined if there was too much to read for one step. */
export type ReplayVerdict<Id extends RowId> = { found: ReplaySkipReason | Pick<Repeatable<Id>, 'newest'>; bytes: number } | undefined

/** The maximum size of the stored bodies that one call reads. The first one is read whatever its size. */
const BYTES_AT_ONCE = 1024 * 1024

interface JudgedJob<Id extends RowId> {
  num: Id
  bound: Id
  /** Whether a message that was delivered again since is replayed all the same. One that is pending is not. */
  includeReplayed: boolean
}

/** Belongs to one transaction, and reads nothing twice. */
export class ReplayJudge<Id extends RowId> {
  readonly #rows: ReplayRows<Id>
  readonly #job: JudgedJob<Id>
  /** Ids of destinations by row id; null if the destination is deleted. */
  readonly #destinations = new Map<Id, string | null>()
  readonly #warehouses = new Set<Id>()
  /** The sizes of the locked segments; null if a segment is no longer stored. */
  readonly #segments = new Map<Id, number | null>()
  readonly #bodies = new Map<Id, StoredMessages>()
  #mayBePurged: boolean | undefined

  constructor(rows: ReplayRows<Id>, job: JudgedJob<Id>) {
    this.#rows = rows
    this.#job = job
  }

  /** The stored size of a segment that was found. */
  bytesOf(segment: Id): number {
    return this.#segments.get(segment) ?? 0
  }

  /** The id of a destination that was found. */
  idOf(destination: Id): string {
    return this.#destinations.get(destination) as string
  }

  /**
   * Of the deliveries of one message to one destination, at most one is pending. If a later one is pending or was delivered, those before it are
   * not repeated. If all have failed, the newest is repeated, whichever of them the job finds first. With `includeReplayed`, only a pending one
   * counts.
   */
  async judge(candidates: readonly ReplayCandidate<Id>[]): Promise<ReplayVerdict<Id>[]> {
    if (candidates.length === 0) return []
    await this.#loadDestinations(candidates)
    const same = await this.#rows.sameMessages(candidates, this.#job)
    const parents = await this.#parents(candidates, same)
    const { includeReplayed } = this.#job
    const verdicts = candidates.map(({ origin, destination, state }, at): ReplayVerdict<Id> => {
      const { hasPendingOrDelivered, hasPending, ofJob, newest } = same[at] as SameMessage<Id>
      if (this.#destinations.get(destination) === null) return { found: 'destination_gone', bytes: 0 }
      // Its rows would be in the tables twice, whatever the user asked for.
      if (this.#warehouses.has(destination) && !hasPending && (state === 'delivered' || hasPendingOrDelivered))
        return { found: 'already_loaded', bytes: 0 }
      // A job sends a message only once, however that ended.
      if (ofJob || (includeReplayed ? hasPending : hasPendingOrDelivered)) return { found: 'already_replayed', bytes: 0 }
      const parent = parents.get(at)
      if (parent === 'unread') return undefined
      // This delivery is itself a replay of a delivered one. Replaying "everything that was delivered" must not send its message twice.
      if (parent?.wasDelivered) return { found: 'already_replayed', bytes: parent.bytes }
      return { found: { newest: newest !== null && newest > origin ? newest : origin }, bytes: parent?.bytes ?? 0 }
    })
    const segments = new Set<Id>()
    for (const [at, { segment }] of candidates.entries()) if (typeof verdicts[at]?.found === 'object') segments.add(segment)
    await this.#lockSegments(segments)
    const mayBePurged = await this.#readBodies(segments)
    return verdicts.map((verdict, at): ReplayVerdict<Id> => {
      if (typeof verdict?.found !== 'object') return verdict
      const { found, bytes } = verdict
      const { segment, index } = candidates[at] as ReplayCandidate<Id>
      if (this.#segments.get(segment) == null) return { found: 'message_gone', bytes }
      if (!mayBePurged) return verdict
      const body = this.#bodies.get(segment)
      if (body === undefined) return undefined
      const read = bytes + body.bytes
      // The body is read once for all messages of the segment, so its size counts once.
      body.bytes = 0
      return { found: body.has(index) ? found : 'message_gone', bytes: read }
    })
  }

  async #loadDestinations(candidates: readonly ReplayCandidate<Id>[]): Promise<void> {
    const unknown = new Set<Id>()
    for (const { destination } of candidates) if (!this.#destinations.has(destination)) unknown.add(destination)
    if (unknown.size === 0) return
    for (const num of unknown) this.#destinations.set(num, null)
    for (const { num, id, deleted, isWarehouse } of await this.#rows.destinations([...unknown])) {
      this.#destinations.set(num, deleted ? null : id)
      if (isWarehouse) this.#warehouses.add(num)
    }
  }

  async #parents(
    candidates: readonly ReplayCandidate<Id>[],
    same: readonly SameMessage<Id>[],
  ): Promise<Map<number, { wasDelivered: boolean; bytes: number } | 'unread'>> {
    const parents = new Map<number, RowAndIndex<Id>>()
    for (const [at, { state, byId }] of candidates.entries()) {
      const parent = state === 'delivered' && !byId && !this.#job.includeReplayed ? same[at]?.parent : undefined
      if (parent !== undefined) parents.set(at, parent)
    }
    const ends = await finalStatesOf(
      this.#rows,
      [...parents.values()].map(({ row }) => row),
    )
    const answers = new Map<number, { wasDelivered: boolean; bytes: number } | 'unread'>()
    for (const [at, { row, index }] of parents) {
      const own = ends.get(row)
      answers.set(at, own === undefined ? 'unread' : { wasDelivered: own.states.get(index) === 'delivered', bytes: own.bytes })
      // Read once for all deliveries with the same origin, so it counts once.
      if (own) own.bytes = 0
    }
    return answers
  }

  async #lockSegments(segments: ReadonlySet<Id>): Promise<void> {
    const unknown = [...segments].filter((segment) => !this.#segments.has(segment))
    if (unknown.length === 0) return
    for (const segment of unknown) this.#segments.set(segment, null)
    for (const { seq, bytes } of await this.#rows.segments(unknown)) this.#segments.set(seq, bytes)
  }

  /** Returns whether messages may have been purged, which is so if there are deletion requests. Then it reads bodies, up to the limit. */
  async #readBodies(segments: ReadonlySet<Id>): Promise<boolean> {
    this.#mayBePurged ??= await this.#rows.hasDeletions()
    if (!this.#mayBePurged) return false
    const wanted: Id[] = []
    let bytes = 0
    for (const segment of segments) {
      if (this.#bodies.has(segment) || this.#segments.get(segment) == null) continue
      if (bytes >= BYTES_AT_ONCE) break
      wanted.push(segment)
      bytes += this.bytesOf(segment)
    }
    for (const [segment, body] of await storedMessages(this.#rows, wanted)) this.#bodies.set(segment, body)
    return true
  }
}
