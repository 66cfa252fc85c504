// Claims shipments whose messages are delivered in order: of the partitions that this node owns, heads by due time, new shipments in the order of
// acceptance, and what waits behind others of keys that are draining. Messages of keys that are not free are moved behind those that wait.
// model/order/order-book.ts does the same in memory.
//
// New shipments that are not divided may have messages of any partition. A node that owns all partitions claims them as they are. Another one divides
// those that it finds, and claims nothing that comes after one that is not divided. So no other node claims such a shipment at the same time.
//
// A claim whose answer was lost may have been committed. Before the next one, the rows that this node holds only in the database are released: they
// must be claimed again before later messages of their keys.

import { longestAttemptMs } from '../../../destinations/kinds.ts'
import type { OrderKey } from '../../../model/order/order-key.ts'
import { PARTITIONS, partitionOf } from '../../../model/order/order-key.ts'
import { keysOf } from '../../delivery/ordered-shipments.ts'
import type { StoredPart } from '../../encoding/stored-parts.ts'
import {
  type ClaimedShipment,
  type CrowdedHead,
  type OrderedClaim,
  type OrderedClaimRequest,
  type OrderedPlace,
  type Part,
  StoreUnavailable,
} from '../../store.ts'
import type { OrderPartitions } from '../cluster/order-partitions.ts'
import type { MessageContext } from '../cluster/store-context.ts'
import { int8s } from '../session/binary-arrays.ts'
import { PostgresUnavailable, type Value } from '../session/connection.ts'
import type { Ask } from '../session/database.ts'
import { attemptsOf, UNDIVIDED } from '../tables/ordered-rows.ts'
import { LOCK_FOR_CLAIM, lockOwners } from '../tables/partition-owners.ts'
import type { Claiming } from './claiming.ts'
import { Grouping } from './grouping.ts'
import { divide, moveWaiting, setApart } from './moving-rows.ts'
import { byId, type Fresh, isUndivided, NO_FRONTIER, ROW, readFresh, takeDraining } from './ordered-reads.ts'
import type { ShipmentRow } from './shipment-row.ts'
import { type OrderedRow, Taking } from './taking.ts'

interface Found {
  claimed: OrderedRow[]
  more: boolean
  nextHeadAtMs: number | null
}

/**
 * `barrier`: the place of the first one that is not divided, if this node does not own all partitions. What comes after it is left out.
 * `most`: the limit of the read, which may return one row more. `skipped`: rows whose messages the lane would all give back at once.
 */
type Divided = Fresh & { barrier?: number; most: number; skipped: ReadonlySet<OrderedRow> }

interface PartRow {
  part: number
  startedForMs: number
  hasKeys: boolean
  alive: boolean
  firstDue: number | null
}

const NOTHING: OrderedClaim = { shipments: [], more: false, nextHeadAtMs: null }

/**
 * The partitions that this node owns, and which of them must wait for the requests of a dead node; whether the destination has keys that are not free; and
 * when the first head of these partitions is due.
 */
const PARTS = {
  name: 'order-parts',
  text: `SELECT p.part, coalesce(w.started_until - (extract(epoch FROM clock_timestamp()) * 1000)::bigint, -1e15::bigint) AS "startedForMs",
      EXISTS (SELECT FROM order_keys k WHERE k.destination = $2) AS "hasKeys",
      EXISTS (SELECT FROM nodes WHERE holder = $1) AS alive,
      (SELECT min(h.due) FROM unnest($3::integer[]) AS q (part) CROSS JOIN LATERAL (SELECT s.due FROM shipments s
        WHERE s.holder < 1 AND s.attempt < -1 AND s.destination = $2 AND s.partition = q.part ORDER BY s.due, s.id LIMIT 1) h) AS "firstDue"
    FROM order_partitions p LEFT JOIN order_waits w ON w.destination = $2 AND w.part = p.part
    WHERE p.owner = $1 AND p.part = ANY ($3::integer[]) ORDER BY p.part`,
}

const HEADS = {
  name: 'order-heads',
  text: `SELECT h.* FROM unnest($2::integer[]) AS p (part) CROSS JOIN LATERAL (SELECT ${ROW} FROM shipments s
    WHERE s.holder < 1 AND s.attempt < -1 AND s.destination = $1 AND s.partition = p.part AND s.due <= $3 ORDER BY s.due, s.id LIMIT $4) h`,
}

const NEXT_HEAD = {
  name: 'order-next-head',
  text: `SELECT min(h.due) AS due FROM unnest($2::integer[]) AS p (part) CROSS JOIN LATERAL (SELECT s.due FROM shipments s
    WHERE s.holder < 1 AND s.attempt < -1 AND s.destination = $1 AND s.partition = p.part AND s.due > $3 ORDER BY s.due, s.id LIMIT 1) h`,
}

const HAVE_ROWS = {
  name: 'order-any',
  text: `SELECT d.destination::text AS destination FROM unnest($1::bigint[]) AS d (destination)
    WHERE (SELECT s.id FROM shipments s WHERE s.holder < 1 AND s.attempt < 0 AND s.destination = d.destination LIMIT 1) IS NOT NULL`,
}
const MAX_ASKED = 1_000

/** Of so many rows, the size of the next ones can be estimated. A claim reads so many times what fits by this estimate, but at least so many. */
const ENOUGH_ROWS = 16
const READ_AHEAD = 1.5
/** A claim reads at most this many shipments to find some behind those that it skips. */
const MOST_SKIPPED = 4_096

const CLAIM = {
  name: 'order-claim',
  text: 'UPDATE shipments SET holder = $1, claim = claim + 1 WHERE holder = 0 AND id = ANY ($2::bigint[]) RETURNING id::text AS id, claim',
}

/**
 * Heads that end without another attempt may be of partitions that other nodes own: nothing is sent. Work that a dead node had in flight is attempted
 * once before it may end so.
 */
const WAS_IN_FLIGHT = `EXISTS (SELECT FROM order_waits w WHERE w.destination = h.destination AND w.part = h.partition
  AND w.started_until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 3600000)`
const CLAIM_HEADS = (which: string): string => `UPDATE shipments s SET holder = $1, claim = s.claim + 1
  WHERE s.holder = 0 AND EXISTS (SELECT FROM nodes WHERE holder = $1) AND s.id = ANY (ARRAY(
    SELECT h.id FROM ${which} AND NOT ${WAS_IN_FLIGHT} LIMIT $4 FOR UPDATE OF h SKIP LOCKED))
  RETURNING ${ROW}`
const OVERDUE_HEADS = {
  name: 'order-overdue',
  text: CLAIM_HEADS('shipments h WHERE h.holder < 1 AND h.attempt < -1 AND h.destination = $2 AND h.first_attempt <= $3'),
}
const CROWDED_HEADS = {
  name: 'order-crowded',
  // The second condition on the number of waiting messages is that of the index. Heads of other keys may be due at the same time, of the same request, too.
  text: CLAIM_HEADS(`order_keys k JOIN shipments h ON h.destination = k.destination AND h.due = k.due
    WHERE k.destination = $2 AND k.waiting > $3 AND k.waiting > 99 AND k.state = 'waiting' AND h.holder < 1 AND h.attempt < -1
      AND h.partition = ANY (ARRAY(SELECT generate_series(0, 15))) AND strpos(h.parts, k.origin::text) > 0
      AND jsonb_path_exists(h.parts::jsonb, '$[*][3][*] ? (@ == $key)', jsonb_build_object('key', k.key))`),
}

export class OrderedClaiming {
  readonly #context: MessageContext
  readonly #claiming: Claiming
  readonly #partitions: OrderPartitions
  /** Destinations of which a claim may have been committed although its answer was lost. */
  readonly #uncertain = new Set<string>()
  /** Destinations that had ordered shipments. The setting may be removed while there are some. */
  readonly #seen = new Set<string>()
  /** How much a row of the last claims of a destination took: a claim need not read many more than fit. */
  readonly #bytesPerRow = new Map<string, number>()
  /** When a partition moves, all lanes claim at once, also those of destinations without `order`. They share a query. */
  readonly #asking: Grouping<string, boolean>

  constructor(context: MessageContext, claiming: Claiming, partitions: OrderPartitions) {
    this.#context = context
    this.#claiming = claiming
    this.#partitions = partitions
    this.#asking = new Grouping({ run: (destinations) => this.#haveRows(destinations), depth: 1, early: 1, maxItems: MAX_ASKED })
  }

  /** Whether the destination has, or had, ordered shipments. */
  isOrdered(destinationId: string): boolean {
    return this.#seen.has(destinationId) || this.#context.configuration().destinations.get(destinationId)?.order != null
  }

  async claim(request: OrderedClaimRequest): Promise<OrderedClaim> {
    const { destinationId } = request
    const { idMap, membership, fast } = this.#context
    const destination = idMap.num('destinations', destinationId)
    if (destination === undefined || this.#partitions.claimable.length === 0) return NOTHING
    if (!this.isOrdered(destinationId) && !(await this.#asking.push(destination))) return NOTHING
    await this.#claiming.released
    const { holder } = membership
    if (this.#uncertain.has(destinationId)) await this.#releaseUncertain(destinationId, destination, holder)
    let found: Found
    try {
      found = await fast.transaction((ask) => this.#find(ask, request, destination, holder), { first: LOCK_FOR_CLAIM })
    } catch (error) {
      if (error instanceof PostgresUnavailable && error.mayHaveCommitted) this.#uncertain.add(destinationId)
      throw (error as { code?: string }).code === 'SY001' ? new StoreUnavailable((error as Error).message, { cause: error }) : error
    }
    const { claimed, more, nextHeadAtMs } = found
    if (claimed.length > 0) this.#seen.add(destinationId)
    this.#claiming.assertHolder(holder)
    for (const { id, claim, bytes } of claimed) this.#claiming.hold(id, claim, bytes)
    const shipments = await this.#claiming.filled(claimed.map(shipmentRow), destinationId)
    return { shipments, more, nextHeadAtMs }
  }

  /** Called a few times a second. Returns the destinations that have work in the partitions of this node, which other nodes may have accepted. */
  async withWork(): Promise<string[]> {
    const parts = this.#partitions.claimable
    const ids: string[] = []
    for (const { id, enabled, paused } of this.#context.configuration().destinations.values())
      if (enabled && !paused && this.isOrdered(id)) ids.push(id)
    if (parts.length === 0 || ids.length === 0) return []
    const nums = ids.map((id) => this.#context.idMap.num('destinations', id) ?? '0')
    const { rows } = await this.#context.fast.query<{ place: number }>(
      {
        name: 'order-poll',
        text: `SELECT d.place FROM unnest($1::bigint[]) WITH ORDINALITY AS d (destination, place)
          WHERE EXISTS (SELECT FROM unnest($2::integer[]) AS p (part) WHERE EXISTS (SELECT FROM shipments s
            WHERE s.holder < 1 AND s.attempt = -1 AND s.key IS NULL AND s.destination = d.destination AND s.partition = p.part))
          OR EXISTS (SELECT FROM shipments s WHERE s.holder < 1 AND s.attempt = -1 AND s.key IS NULL AND s.destination = d.destination
            AND s.partition = ${UNDIVIDED})
          -- The head of several partitions was delivered by another node, or an operator asked another node to go on with the key.
          OR EXISTS (SELECT FROM order_keys k WHERE k.destination = d.destination AND k.state = 'draining' AND k.key % 16 = ANY ($2::integer[]))
          OR EXISTS (SELECT FROM unnest($2::integer[]) AS p (part) WHERE EXISTS (SELECT FROM shipments s
            WHERE s.holder < 1 AND s.attempt < -1 AND s.destination = d.destination AND s.partition = p.part AND s.due <= 0))`,
      },
      [int8s(nums), parts],
    )
    return rows.map(({ place }) => ids[place - 1] as string)
  }

  /** Heads whose first attempt was before a time. */
  async claimOverdue(destinationId: string, firstAttemptBeforeMs: number, limit: number): Promise<ClaimedShipment[]> {
    const destination = this.#context.idMap.num('destinations', destinationId)
    if (destination === undefined || limit <= 0 || !this.isOrdered(destinationId)) return []
    return this.#claimHeads(OVERDUE_HEADS, destinationId, [destination, Math.floor(firstAttemptBeforeMs), limit])
  }

  async claimCrowded(destinationId: string, maxWaiting: number, limit: number): Promise<CrowdedHead[]> {
    const destination = this.#context.idMap.num('destinations', destinationId)
    if (destination === undefined) return []
    const claimed = await this.#claimHeads(CROWDED_HEADS, destinationId, [destination, maxWaiting, limit])
    const keys = claimed.flatMap(({ shipment }) => keysOf(shipment.parts))
    const { rows } = await this.#context.fast.query<{ key: OrderKey }>(
      "SELECT key FROM order_keys WHERE destination = $1 AND key = ANY ($2::bigint[]) AND waiting > $3 AND state = 'waiting'",
      [destination, int8s(keys), maxWaiting],
    )
    const crowded = new Set(rows.map(({ key }) => key))
    return claimed.map((one) => ({ claimed: one, keys: new Set(keysOf(one.shipment.parts).filter((key) => crowded.has(key))) }))
  }

  async #claimHeads(statement: { name: string; text: string }, destinationId: string, values: Value[]): Promise<ClaimedShipment[]> {
    await this.#claiming.released
    const { holder } = this.#context.membership
    const { rows } = await this.#context.fast.query<OrderedRow>(statement, [holder, ...values])
    this.#claiming.assertHolder(holder)
    for (const { id, claim, bytes } of rows) this.#claiming.hold(id, claim, bytes)
    return this.#claiming.filled(rows.map(shipmentRow), destinationId)
  }

  fenced(): void {
    this.#uncertain.clear()
  }

  /** Whether there are ordered shipments of each of these destinations, which do not have the setting `order`. */
  async #haveRows(destinations: readonly string[]): Promise<boolean[]> {
    const { rows } = await this.#context.fast.query<{ destination: string }>(HAVE_ROWS, [int8s(destinations)])
    const found = new Set(rows.map(({ destination }) => destination))
    return destinations.map((destination) => found.has(destination))
  }

  async #releaseUncertain(destinationId: string, destination: string, holder: string): Promise<void> {
    await this.#context.fast.transaction(async (ask) => {
      // Waits for the claim, if it is still in progress.
      await lockOwners(ask)
      const { rows } = await ask<{ id: string; claim: number }>(
        'SELECT id::text AS id, claim FROM shipments WHERE holder = $1 AND destination = $2 AND attempt < 0',
        [holder, destination],
      )
      const unknown = rows.filter(({ id, claim }) => !this.#claiming.holds(id, claim)).map(({ id }) => id)
      await ask('UPDATE shipments SET holder = 0 WHERE holder = $1 AND id = ANY ($2::bigint[])', [holder, int8s(unknown)])
    })
    this.#uncertain.delete(destinationId)
  }

  async #find(ask: Ask, request: OrderedClaimRequest, destination: string, holder: string): Promise<Found> {
    const { nowMs, maxHeads, maxWaiting, maxFresh, maxBytes, destinationId, leaving = [] } = request
    const { rows } = await ask<PartRow>(PARTS, [holder, destination, this.#partitions.claimable])
    if (rows.some(({ alive }) => !alive)) throw new StoreUnavailable('this node was declared dead')
    const found = this.#context.configuration().destinations.get(destinationId)
    const limitMs = found === undefined ? 0 : longestAttemptMs(found)
    const waits = rows.map(({ startedForMs }) => startedForMs + limitMs).filter((waitMs) => waitMs > 0)
    const parts = rows.filter(({ startedForMs }) => startedForMs + limitMs <= 0).map(({ part }) => part)
    const afterWait = waits.length === 0 ? null : nowMs + Math.min(...waits)
    if (parts.length === 0) return { claimed: [], more: false, nextHeadAtMs: afterWait }
    const taking = new Taking(maxBytes)
    const now = Math.floor(nowMs)
    const firstDue = rows[0]?.firstDue ?? null
    const nextHead = firstDue === null || firstDue > now ? firstDue : await this.#takeHeads(ask, destination, parts, now, maxHeads, taking)
    const isKeyed = rows[0]?.hasKeys ?? false
    const most = this.#mostThatFit(destination, maxFresh, maxBytes)
    const fresh = await this.#readDivided(ask, destination, parts, most, isKeyed, leaving)
    const frontiers = await this.#takeFresh(ask, destination, parts, most, fresh, isKeyed, taking)
    const hasMoreFresh = maxFresh > 0 && [...frontiers.values()].some((ord) => ord !== NO_FRONTIER)
    const hasMoreWaiting = isKeyed && (await takeDraining(ask, destination, frontiers, maxWaiting, leaving, taking))
    if (taking.rows.length >= ENOUGH_ROWS) this.#bytesPerRow.set(destination, taking.bytes / taking.rows.length)
    const { rows: claims } = await ask<{ id: string; claim: number }>(CLAIM, [holder, int8s(taking.rows.map(({ id }) => id))])
    const byId = new Map(claims.map(({ id, claim }) => [id, claim]))
    const claimed = taking.rows.flatMap((row) => {
      const claim = byId.get(row.id)
      return claim === undefined ? [] : [{ ...row, claim }]
    })
    const next = [nextHead, afterWait].filter((atMs) => atMs !== null)
    return { claimed, more: hasMoreFresh || hasMoreWaiting, nextHeadAtMs: next.length === 0 ? null : Math.min(...next) }
  }

  #mostThatFit(destination: string, most: number, maxBytes: number): number {
    const bytesPerRow = this.#bytesPerRow.get(destination)
    return bytesPerRow === undefined ? most : Math.min(most, Math.max(ENOUGH_ROWS, Math.ceil((READ_AHEAD * maxBytes) / bytesPerRow)))
  }

  /** Returns when the first head that was not taken is due; null if there is none. */
  async #takeHeads(ask: Ask, destination: string, parts: number[], now: number, most: number, taking: Taking): Promise<number | null> {
    const { rows } = await ask<OrderedRow>(HEADS, [destination, parts, now, most + 1])
    rows.sort((a, b) => a.due - b.due || byId(a, b))
    for (const [at, row] of rows.entries()) if (at === most || !taking.take(row)) return row.due
    const { rows: next } = await ask<{ due: number | null }>(NEXT_HEAD, [destination, parts, now])
    return next[0]?.due ?? null
  }

  /** Returns for each partition the place of the first new shipment that was not reached. */
  async #takeFresh(
    ask: Ask,
    destination: string,
    parts: number[],
    most: number,
    { rows, cut, barrier, most: read, skipped }: Divided,
    isKeyed: boolean,
    taking: Taking,
  ): Promise<Map<number, number>> {
    // What was not read comes after what was: of a partition that had its share, after its own, and otherwise after all.
    const unread = barrier ?? (rows.length > read ? (rows.at(-1) as OrderedRow).ord : NO_FRONTIER)
    const frontiers = new Map(parts.map((part) => [part, Math.min(unread, cut.get(part) ?? NO_FRONTIER)]))
    const found = rows
      .slice(0, read)
      .filter((row) => !skipped.has(row))
      .slice(0, most)
    const considered = new Set(found)
    const left = isKeyed ? await moveWaiting(ask, this.#context.ids, destination, found) : new Map(found.map((row) => [row.id, row]))
    for (const row of rows) {
      // The messages of their keys that wait are not taken either.
      if (skipped.has(row)) continue
      const kept = left.get(row.id)
      const isReached = considered.has(row) && (kept === undefined || taking.take(kept))
      if (isReached) continue
      for (const part of isUndivided(row) ? parts : [row.part]) frontiers.set(part, Math.min(frontiers.get(part) ?? NO_FRONTIER, row.ord))
    }
    return frontiers
  }

  /**
   * New shipments that this node may claim. Messages of keys that are `leaving` are in shipments of their own, and skipped until the
   * earlier ones are back. Otherwise each claim would return them instead of others, and they would go back only when the others of their shipment end.
   */
  async #readDivided(
    ask: Ask,
    destination: string,
    parts: number[],
    most: number,
    isKeyed: boolean,
    leaving: readonly OrderKey[],
  ): Promise<Divided> {
    const { ids } = this.#context
    const ownsAll = parts.length === PARTITIONS
    let limit = most
    const read = async (): Promise<Divided> => {
      const { rows, cut } = await readFresh(ask, destination, parts, limit)
      const at = ownsAll ? -1 : rows.findIndex(isUndivided)
      const found = { cut, most: limit, skipped: new Set<OrderedRow>() }
      return at === -1 ? { rows, ...found } : { rows: rows.slice(0, at), ...found, barrier: (rows[at] as OrderedRow).ord }
    }
    for (;;) {
      const { rows, cut } = await readFresh(ask, destination, parts, limit)
      let found: Divided = { rows, cut, most: limit, skipped: new Set() }
      const undivided = ownsAll ? [] : rows.filter(isUndivided)
      if (undivided.length > 0) {
        await divide(ask, ids, destination, undivided)
        found = await read()
      }
      if (leaving.length === 0) return found
      // Messages of keys that are not free are moved behind those that wait.
      const apart = new Set(isKeyed ? await freeOf(ask, destination, leaving) : leaving)
      const mixed = found.rows.filter((row) => isMixed(row, apart))
      if (mixed.length > 0) {
        await setApart(ask, ids, destination, mixed, apart)
        found = await read()
      }
      const skipped = new Set(found.rows.filter((row) => isOnlyOf(row, apart)))
      const isEnough = found.rows.length <= limit || (found.rows.length - skipped.size) * 2 > most
      if (isEnough) return { ...found, skipped }
      // If there are only such messages, the lane gives them back, and claims again later.
      if (limit >= MOST_SKIPPED) return skipped.size < found.rows.length ? { ...found, skipped } : found
      limit = Math.min(limit * 4, MOST_SKIPPED)
    }
  }
}

/** Whether a shipment has messages of these keys and also of others. */
function isMixed({ parts }: OrderedRow, keys: ReadonlySet<OrderKey>): boolean {
  const own = storedKeys(parts)
  return own.some((key) => keys.has(key)) && !own.every((key) => keys.has(key))
}

/** Whether a shipment has only messages of these keys. */
function isOnlyOf({ parts }: OrderedRow, keys: ReadonlySet<OrderKey>): boolean {
  const own = storedKeys(parts)
  return own.length > 0 && own.every((key) => keys.has(key))
}

function storedKeys(parts: string): OrderKey[] {
  return (JSON.parse(parts) as StoredPart<string>[]).flatMap(([, , , keys = []]) => keys)
}

async function freeOf(ask: Ask, destination: string, keys: readonly OrderKey[]): Promise<OrderKey[]> {
  const sql = { name: 'order-not-free', text: 'SELECT key FROM order_keys WHERE destination = $1 AND key = ANY ($2::bigint[])' }
  const { rows } = await ask<{ key: OrderKey }>(sql, [destination, int8s(keys)])
  const notFree = new Set(rows.map(({ key }) => key))
  return keys.filter((key) => !notFree.has(key))
}

function shipmentRow({ ord, part: _part, key, attempt, ...row }: OrderedRow): ShipmentRow {
  const place: OrderedPlace = key !== null ? { row: 'waiting', ord, key } : { row: attempt === -1 ? 'fresh' : 'head', ord }
  return { ...row, ord: 0, attempt: attemptsOf(attempt, row.first_attempt), order: place }
}

/** The columns of a shipment in the queue: its attempt, its place and its partition. */
export function orderColumns({ attempt, order, parts }: { attempt: number; order?: OrderedPlace | undefined; parts: readonly Part[] }): {
  attempt: number
  ord: number | null
  part: number | null
} {
  if (order === undefined) return { attempt, ord: null, part: null }
  const own = new Set(keysOf(parts).map(partitionOf))
  // A head may have keys of several partitions, if a batch had. The node that owns the first one attempts it again.
  const part = attempt === 0 && own.size > 1 ? UNDIVIDED : (own.values().next().value as number)
  return { attempt: -1 - attempt, ord: order.ord as number, part }
}
