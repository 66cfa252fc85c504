// Accepts messages. Batches that arrive at the same time are written by one statement, which is one round trip and one commit. The statement
// inserts the new keys; messages whose key exists are duplicates. The segments, shipments and deltas are derived from that. Shipments that this
// node will deliver itself are stored as held by it, and handed over after the commit without reading anything back.
//
// Today's and yesterday's keys are searched, so duplicates are recognized for at least a day. If two nodes accept the same message at
// the same time, both insert the same key, and one of them waits for the other's commit. Around midnight they might insert it for
// different days. So in the first minute of a day, each key is inserted for the previous day too.

import { PARTITIONS, partitionOf } from '../../../model/order/order-key.ts'
import { type Accepted, cancelReservations, freshShipment, handToDelivery } from '../../delivery/hand-to-delivery.ts'
import { keylessCounts, type PlannedShipment, plannedShipments } from '../../delivery/ordered-shipments.ts'
import { MAX_WAITING_BYTES } from '../../delivery/waiting-items.ts'
import { FINGERPRINT_WORDS, type Seed, type SourceSeeds, sourceSeeds } from '../../encoding/fingerprint.ts'
import { withoutQuarantined } from '../../encoding/quarantine-routes.ts'
import { KEY_WORDS, writeKeys } from '../../encoding/segment-keys.ts'
import { owedIndexes, type Routes, storedSkips } from '../../encoding/stored-parts.ts'
import { type CountBatch, DeferredCounts } from '../../history/deferred-counts.ts'
import { type AcceptBatch, type AcceptResult, type IngestStore, type Shipment, type Skip, StoreUnavailable } from '../../store.ts'
import type { OrderPartitions } from '../cluster/order-partitions.ts'
import type { SharedConfiguration } from '../cluster/shared-configuration.ts'
import type { MessageContext } from '../cluster/store-context.ts'
import { PostgresUnavailable } from '../session/connection.ts'
import { writeText } from '../session/text-columns.ts'
import { addDelta, MARKER, SOURCE_COUNTS } from '../tables/ledger-deltas.ts'
import { keyBytes } from '../tables/message-keys.ts'
import { UNDIVIDED } from '../tables/ordered-rows.ts'
import {
  ACCEPT,
  ACCEPT_QUARANTINED,
  DESTINATION_DELETED,
  type Item,
  type Planned,
  type PlannedSegment,
  type QuarantinedRow,
} from './accept-statement.ts'
import type { Claiming } from './claiming.ts'
import { Grouping } from './grouping.ts'
import { recordDuplicates } from './repeats.ts'

interface Tools {
  claiming: Claiming
  /** The partitions of ordered destinations of which this node claims shipments. */
  owned: Pick<OrderPartitions, 'claimable'>
  /** Reads the configuration again, after a destination that the messages are routed to turned out to be deleted. */
  shared: Pick<SharedConfiguration, 'refresh'>
  onState: (problem: string | null) => void
  onCommit: (commitMs: number, batches: number) => void
}

const GROUP_BATCHES = 500
const DAY_MS = 86_400_000
/** For this long after midnight, keys are inserted for the previous day too. */
const AFTER_MIDNIGHT_MS = 60_000
const TALLY_RETRY_MS = 1_000

export class Accepting implements IngestStore {
  readonly #context: MessageContext
  readonly #tools: Tools
  readonly #grouping: Grouping<Item, Accepted>
  readonly #tallies: DeferredCounts
  readonly #writing = new Set<Promise<Accepted>>()
  #seed: Seed = [0, 0, 0, 0]
  #seedOf: SourceSeeds = sourceSeeds(this.#seed)
  #problem: string | null = null

  constructor(context: MessageContext, tools: Tools) {
    this.#context = context
    this.#tools = tools
    this.#tallies = new DeferredCounts((tally) => this.#tally(tally))
    this.#grouping = new Grouping({
      run: (items) => this.#run(items),
      depth: 2,
      early: 8,
      maxItems: GROUP_BATCHES,
      waitingBytes: MAX_WAITING_BYTES,
      bytesOf: ({ batch }) => batch.body.length + batch.messageIds.length * KEY_WORDS * 4,
    })
  }

  async load(): Promise<void> {
    this.#seed = await this.#context.seed()
    this.#seedOf = sourceSeeds(this.#seed)
  }

  async accept(given: AcceptBatch): Promise<AcceptResult> {
    const batch = given.quarantined === undefined ? given : withoutQuarantined(given)
    const { content, messageIds } = batch
    const keys = new Uint32Array(messageIds.length * KEY_WORDS)
    writeKeys(messageIds, content.items, this.#seedOf(content.sourceId), keys, 0)
    const configuration = this.#context.configuration()
    // While this node delivers all partitions, the messages of a request need not be divided. If it no longer does when they are claimed, they are then.
    const isAll = this.#tools.owned.claimable.length === PARTITIONS
    const shipments = plannedShipments(batch, configuration, this.#seed, isAll ? () => UNDIVIDED : partitionOf)
    const wanted = shipments.map(({ destinationId }) => ({ destinationId, isReserved: false }))
    const bytes = batch.body.length
    const writing = this.#grouping.push({ batch, keys, shipments, wanted, hasCalledReserve: false, configuration })
    this.#writing.add(writing)
    let accepted: Accepted
    try {
      accepted = await writing
    } catch (error) {
      cancelReservations(this.#context.consumer(), wanted, bytes)
      throw error
    } finally {
      this.#writing.delete(writing)
    }
    this.#leaveLost(accepted)
    this.#remember(accepted, batch, shipments)
    handToDelivery(this.#context.consumer(), accepted, wanted, batch)
    const { segment, duplicates } = accepted
    const keyless = keylessCounts(shipments, duplicates)
    return keyless === undefined ? { segment, duplicates } : { segment, duplicates, keyless }
  }

  /** Resolves when all batches that were given before are committed or have failed. */
  async writesFinished(): Promise<void> {
    await Promise.allSettled(this.#writing)
  }

  readonly reject: IngestStore['reject'] = (rejection) => this.#tallies.reject(rejection)
  readonly suppressed: IngestStore['suppressed'] = (sourceId, count) => this.#tallies.suppressed(sourceId, count)

  async close(): Promise<void> {
    await this.#grouping.close()
    await this.#tallies.flush()
  }

  // ── Writing a group ──

  async #run(items: readonly Item[]): Promise<(Accepted | Error)[]> {
    const consumer = this.#context.consumer()
    for (const item of items) {
      // Called only once per shipment, even if the group is retried, because every call that returns true reserves memory.
      if (item.hasCalledReserve) continue
      item.hasCalledReserve = true
      // Ordered shipments are claimed from the store, where they are in order.
      for (const [at, shipment] of item.wanted.entries())
        shipment.isReserved =
          item.shipments[at]?.keys === undefined &&
          (consumer?.reserve(shipment.destinationId, item.batch.body.length, item.batch.content.items.length) ?? false)
    }
    const isKnown = ({ batch }: Item): boolean => this.#context.idMap.num('sources', batch.content.sourceId) !== undefined
    const known = items.filter(isKnown)
    const replies = known.length === 0 ? [] : await this.#write(known)
    return items.map((item) => (isKnown(item) ? (replies.shift() as Accepted) : new Error(`unknown source ${item.batch.content.sourceId}`)))
  }

  async #write(items: readonly Item[]): Promise<Accepted[]> {
    for (let nth = 1; ; nth++) {
      let group: Group | undefined
      try {
        if (!this.#context.membership.isLeaseValid) await this.#ensureLease(items)
        group = new Group(items, this.#context)
        const started = performance.now()
        const absent = await group.write()
        this.#tools.onCommit(performance.now() - started, items.length)
        this.#context.writes.wrote(true)
        this.#reportState(null)
        const replies = group.replies(absent)
        if (this.#tools.claiming.isHolder(group.holder))
          for (const { id } of replies.flatMap(({ claimed }) => claimed))
            this.#tools.claiming.hold(id as string, 1, group.bytesOf(id as string))
        if (absent.size > 0) await recordDuplicates(this.#context.fast, group.duplicates(absent)).catch(() => {})
        return replies
      } catch (error) {
        if (error instanceof PostgresUnavailable) {
          if (error.mayHaveCommitted && group !== undefined) this.#tools.claiming.addUncertain(group.ownedIds)
          this.#context.writes.wrote(false)
          this.#reportState(error.message)
          throw error
        }
        const { code, message } = error as { code?: string; message?: string }
        if (code !== 'SY001' || nth === 3) throw code === 'SY001' ? new StoreUnavailable(message) : error
        if (message === DESTINATION_DELETED) await this.#tools.shared.refresh()
        else await this.#ensureLease(items)
      }
    }
  }

  /** Called before delivery learns that there are ordered shipments to claim. */
  #remember({ segment, duplicates }: Accepted, batch: AcceptBatch, shipments: readonly PlannedShipment[]): void {
    if (segment === null || !shipments.some(({ keys }) => keys !== undefined)) return
    const { claiming, owned } = this.#tools
    const own = new Set(owned.claimable)
    if (own.size === PARTITIONS) own.add(UNDIVIDED)
    const { destinations } = this.#context.configuration()
    const isSent = (destinationId: string): boolean => {
      const destination = destinations.get(destinationId)
      return destination?.enabled === true && !destination.paused
    }
    const claimed = shipments.filter(
      ({ keys, partition, destinationId }) => keys !== undefined && own.has(partition as number) && isSent(destinationId),
    )
    claiming.recentBodies.add(segment as string, batch, duplicates, claimed.length)
  }

  /** If this node was declared dead meanwhile, other nodes may hold the shipments that were stored as held by it. */
  #leaveLost(accepted: Accepted): void {
    const isHeld = ({ id, claim }: Shipment): boolean => this.#tools.claiming.holds(id as string, claim)
    if (accepted.claimed.every(isHeld)) return
    accepted.unclaimed.push(...accepted.claimed.filter((shipment) => !isHeld(shipment)).map(({ destinationId }) => destinationId))
    accepted.claimed = accepted.claimed.filter(isHeld)
  }

  /** While the lease was expired, other nodes may have made a change without waiting for this one. A batch that was planned before the change must not be stored after it. */
  async #ensureLease(items: readonly Item[]): Promise<void> {
    await this.#context.membership.ensureLease()
    if (items.some(({ configuration }) => configuration !== this.#context.configuration())) {
      throw new StoreUnavailable('the configuration changed while the lease of this node had expired')
    }
  }

  #reportState(problem: string | null): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.#tools.onState(problem)
  }

  // ── Counts, written in the background ──

  async #tally({ rejections, suppressed }: CountBatch): Promise<void> {
    const { idMap, ids, database } = this.#context
    const num = (sourceId: string | null): string => (sourceId === null ? '0' : (idMap.num('sources', sourceId) ?? '0'))
    // Marks the transaction as committed, in case the answer is lost.
    const marker = ids.next()
    let mayBeCommitted = false
    for (;;) {
      try {
        if (mayBeCommitted && (await database.query('SELECT 1 FROM deltas WHERE id = $1', [marker])).count > 0) return
        return await database.transaction(async (ask) => {
          await addDelta(ask, marker, MARKER, '0', [])
          const sorted = [...rejections].sort((a, b) => (num(a.sourceId) + a.code < num(b.sourceId) + b.code ? -1 : 1))
          for (const { sourceId, code, count, sample, atMs } of sorted) {
            await ask(
              `INSERT INTO rejections (source, code, count, last_at, last_sample) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (source, code) DO UPDATE SET count = rejections.count + excluded.count, last_at = excluded.last_at, last_sample = excluded.last_sample`,
              [num(sourceId), code, count, Math.floor(atMs), writeText(sample)],
            )
          }
          const changes = [
            ...rejections.map(({ sourceId, count }) => [num(sourceId), [0, 0, count, 0]] as const),
            ...suppressed.map(([sourceId, count]) => [num(sourceId), [0, 0, 0, count]] as const),
          ]
          for (const [subject, counts] of changes) await addDelta(ask, ids.next(), SOURCE_COUNTS, subject, counts)
        })
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || this.#context.isClosed()) throw error
        mayBeCommitted ||= error instanceof PostgresUnavailable && error.mayHaveCommitted
        await new Promise((resolve) => setTimeout(resolve, TALLY_RETRY_MS).unref())
      }
    }
  }
}

/** The batches of one statement: assigns their row ids, builds the values, and interprets the result. */
class Group {
  readonly #context: MessageContext
  readonly #segments: PlannedSegment[] = []
  readonly #planned: Planned[] = []
  readonly ownedIds: string[] = []
  readonly holder: string

  constructor(items: readonly Item[], context: MessageContext) {
    this.#context = context
    this.holder = context.membership.holder
    for (const item of items) this.#assignIds(item)
  }

  bytesOf(id: string): number {
    return this.#planned.find((planned) => planned.id === id)?.item.batch.body.length ?? 0
  }

  /** The row ids of a segment's shipments follow right after that of the segment: see resolve-origins.ts. */
  #assignIds(item: Item): void {
    const { ids, idMap, configuration } = this.#context
    const { routing, messageIds } = item.batch
    const segment = ids.next()
    const routes: Routes<string> = { s: [] }
    const skips: Skip[] = [...routing.skips]
    // The ordered messages for a destination are in a shipment for each partition, but share an origin, so they have one route and one attempt.
    const shared = new Map<string, Routes<string>['s'][number]>()
    for (const [at, { destinationId, indexes, keys, partition }] of item.shipments.entries()) {
      const num = idMap.num('destinations', destinationId)
      // The destination was deleted after the batch was planned.
      if (num === undefined || !configuration().destinations.has(destinationId)) {
        skips.push({ destinationId, reason: 'destination_deleted', indexes })
        continue
      }
      const count = indexes === null ? messageIds.length : indexes.length
      if (count === 0) continue
      const own = item.wanted[at]?.isReserved ?? false
      const id = ids.next()
      if (own) this.ownedIds.push(id)
      const holder = own ? this.holder : '0'
      const route = keys === undefined ? undefined : shared.get(num)
      const origin = route?.[1] ?? id
      this.#planned.push({ id, origin, item, segment, destinationId, destination: num, indexes, keys, partition, count, own, holder })
      if (route !== undefined) {
        route[2] = [...(route[2] as readonly number[]), ...(indexes as readonly number[])].sort((a, b) => a - b)
        route[3] += count
        continue
      }
      const added: Routes<string>['s'][number] = [num, id, indexes ?? 0, count]
      if (keys !== undefined) shared.set(num, added)
      routes.s.push(added)
    }
    if (skips.length > 0) routes.k = storedSkips(skips, (destinationId) => idMap.num('destinations', destinationId) ?? '0', '0')
    const source = idMap.num('sources', item.batch.content.sourceId) as string
    this.#segments.push({ seq: segment, source, item, routes: JSON.stringify(routes) })
  }

  /** Resolves after the commit, with the indexes of the duplicates of each segment that has any. */
  async write(): Promise<Map<string, number[]>> {
    const { ids, fast, membership } = this.#context
    const keys: { key: Uint8Array | null; segment: string; idx: number }[] = []
    const seen = new Set<string>()
    for (const { seq, item } of this.#segments) {
      for (let idx = 0; idx < item.batch.messageIds.length; idx++) {
        const bytes = keyBytes(item.keys, idx * KEY_WORDS)
        const text = bytes.toString('latin1')
        // Null if the same key comes earlier in this statement.
        keys.push({ key: seen.has(text) ? null : bytes, segment: seq, idx })
        seen.add(text)
      }
    }
    const deltasOf = (nums: readonly string[]) => [...new Set(nums)].map((subject) => ({ id: ids.next(), subject }))
    const serverMs = membership.serverMs()
    const sources = this.#segments.map(({ source }) => source)
    const values = {
      holder: this.holder,
      day: Math.floor(serverMs / DAY_MS),
      isAfterMidnight: serverMs % DAY_MS < AFTER_MIDNIGHT_MS,
      keys,
      segments: this.#segments,
      shipments: this.#planned,
      destinations: deltasOf(this.#planned.map(({ destination }) => destination)),
      sources: deltasOf(sources),
    }
    const quarantined = this.#quarantined()
    const { rows } = await fast.query<{ dups: { segment: string; absent: number[] }[] | null }>(
      ...(quarantined.length === 0
        ? ([ACCEPT, ACCEPT.values(values)] as const)
        : ([ACCEPT_QUARANTINED, ACCEPT_QUARANTINED.values({ ...values, quarantined, holding: deltasOf(sources) })] as const)),
    )
    return new Map((rows[0]?.dups ?? []).map(({ segment, absent }) => [segment, absent]))
  }

  #quarantined(): QuarantinedRow[] {
    return this.#segments.flatMap(({ seq, source, item: { batch } }) =>
      (batch.quarantined ?? []).map(({ index, planId, violations }) => ({
        segment: seq,
        idx: index,
        source,
        plan: writeText(planId),
        rule: writeText(violations[0]?.rule ?? ''),
      })),
    )
  }

  replies(absent: ReadonlyMap<string, readonly number[]>): Accepted[] {
    const replies = this.#segments.map(({ seq, item: { batch } }): Accepted => {
      const duplicates = absent.get(seq) ?? []
      const nothing = batch.messageIds.length > 0 && duplicates.length === batch.messageIds.length
      return { segment: nothing ? null : seq, duplicates, claimed: [], unclaimed: [], ordered: [] }
    })
    const bySegment = new Map(this.#segments.map(({ seq }, at) => [seq, replies[at] as Accepted]))
    for (const { id, item, segment, destinationId, indexes, keys, own } of this.#planned) {
      const reply = bySegment.get(segment) as Accepted
      const kept = owedIndexes(indexes ?? 0, item.batch.messageIds.length, reply.duplicates)
      if (kept.length === 0) continue
      if (!own) {
        const left = keys === undefined ? reply.unclaimed : reply.ordered
        left.push(destinationId)
        continue
      }
      reply.claimed.push(freshShipment(id, 1, destinationId, segment, kept))
    }
    return replies
  }

  /** For each batch with duplicates: their keys, and when the batch was received. */
  duplicates(absent: ReadonlyMap<string, readonly number[]>): { keys: Uint32Array[]; atMs: number }[] {
    return this.#segments.flatMap(({ seq, item: { keys, batch } }) => {
      const indexes = absent.get(seq)
      if (indexes === undefined) return []
      return [
        {
          keys: indexes.map((index) => keys.subarray(index * KEY_WORDS, index * KEY_WORDS + FINGERPRINT_WORDS)),
          atMs: Math.floor(batch.content.receivedAtMs),
        },
      ]
    })
  }
}
