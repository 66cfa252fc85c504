// Claims shipments and releases them. A claim scans the rows of one destination in order, and skips rows that other
// nodes are claiming at the same moment. Keeps in memory which shipments this node holds, and the claim number of
// each. Claims of the same moment are sent in one statement.

import type { HeldShipment } from '../../delivery/common-delivery-store.ts'
import { unpackBody } from '../../encoding/body-bytes.ts'
import type { StoredPart } from '../../encoding/stored-parts.ts'
import { bodyOf, type StoredContent, selectContent } from '../../history/segment-rows.ts'
import type { SegmentBody } from '../../port/stored-messages.ts'
import { type Claim, type ClaimedShipment, type ClaimRequest, type RowId, StoreUnavailable } from '../../store.ts'
import type { MessageContext } from '../cluster/store-context.ts'
import { int4s, int8s } from '../session/binary-arrays.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'
import { Grouping } from './grouping.ts'
import { type ClaimedSegment, RecentBodies } from './recent-bodies.ts'
import { ScanPositions } from './scan-positions.ts'
import { type ShipmentRow, shipmentOf } from './shipment-row.ts'

interface ClaimRow {
  more: boolean[] | null
  next: (number | null)[] | null
  claimed: ShipmentRow[] | null
}

interface ClaimResult {
  rows: ShipmentRow[]
  moreFresh: boolean
  nextRetryAtMs: number | null
}

interface Held {
  claim: number
  /** The stored size of its segments. */
  bytes: number
}

const MAX_CLAIMS = 64
/** The server may still commit a statement whose connection was lost, for as long as statements may take. */
const UNCERTAIN_MS = 60_000
const RELEASE_RETRY_MS = 250
const FREED_AT_ONCE = 5_000
/** Longer than the timeout of any statement, so that shipments claimed by a statement that is still in flight are known here by then. */
const STRAYS_EVERY_MS = 15_000

const REQUESTS = plainColumns({
  ord: 'integer',
  destination: 'bigint',
  max_fresh: 'integer',
  after: 'bigint',
  max_retries: 'integer',
  now: 'bigint',
  max_bytes: 'bigint',
})

const CLAIM = statement({
  name: 'claim',
  parameters: { holder: 'value', requests: REQUESTS },
  text: ({ holder, requests }) => `
WITH q AS MATERIALIZED (
  SELECT * FROM ${requests.as('q')}
), found AS MATERIALIZED (
  SELECT q.ord, q.max_bytes, 0 AS class, r.nth, r.id, r.due, r.bytes, r.nth > q.max_retries AS beyond FROM q CROSS JOIN LATERAL (
    SELECT id, due, bytes, row_number() OVER (ORDER BY due, id) AS nth FROM (
      SELECT s.id, s.due, s.bytes FROM shipments s
      WHERE s.holder < 1 AND s.attempt > 0 AND s.destination = q.destination AND s.due <= q.now
      ORDER BY s.due, s.id LIMIT q.max_retries + 1 FOR UPDATE SKIP LOCKED) l) r
  UNION ALL
  SELECT q.ord, q.max_bytes, 1, f.nth, f.id, 0, f.bytes, f.nth > q.max_fresh FROM q CROSS JOIN LATERAL (
    SELECT id, bytes, row_number() OVER (ORDER BY id) AS nth FROM (
      SELECT s.id, s.bytes FROM shipments s
      WHERE s.holder < 1 AND s.attempt = 0 AND s.destination = q.destination AND s.id > q.after
      ORDER BY s.id LIMIT q.max_fresh + 1 FOR UPDATE SKIP LOCKED) l) f
), weighed AS (
  SELECT *, sum(CASE WHEN beyond THEN 0 ELSE bytes END) OVER (PARTITION BY ord ORDER BY class, nth) - CASE WHEN beyond THEN 0 ELSE bytes END AS before
  FROM found
), picked AS MATERIALIZED (
  SELECT *, NOT beyond AND before <= max_bytes AS mine FROM weighed
), claimed AS (
  UPDATE shipments s SET holder = ${holder}, claim = s.claim + 1
  WHERE s.holder = 0 AND s.id = ANY (ARRAY(SELECT id FROM picked WHERE mine))
  RETURNING s.id, s.claim, s.attempt, s.first_attempt, s.due, s.bytes, s.unit, s.replay, s.urls, s.parts
)
SELECT
  (SELECT array_agg(EXISTS (SELECT FROM picked p WHERE p.ord = q.ord AND p.class = 1 AND NOT p.mine) ORDER BY q.ord) FROM q) AS more,
  (SELECT json_agg(coalesce((SELECT min(p.due) FROM picked p WHERE p.ord = q.ord AND p.class = 0 AND NOT p.mine),
     (SELECT s.due FROM shipments s WHERE s.holder < 1 AND s.attempt > 0 AND s.destination = q.destination AND s.due > q.now ORDER BY s.due LIMIT 1))
     ORDER BY q.ord) FROM q) AS next,
  (SELECT json_agg(json_build_object('ord', p.ord, 'id', t.id::text, 'claim', t.claim, 'attempt', t.attempt, 'first_attempt', t.first_attempt, 'due', t.due,
     'bytes', t.bytes, 'unit', t.unit, 'replay', t.replay, 'urls', t.urls, 'parts', t.parts) ORDER BY p.ord, p.class, p.nth)
   FROM claimed t JOIN picked p ON p.id = t.id) AS claimed,
  CASE WHEN NOT EXISTS (SELECT FROM nodes WHERE holder = ${holder}) THEN refuse('this node was declared dead') END AS refused`,
})

const POLL = {
  name: 'poll',
  text: `
SELECT d.destination,
  (SELECT s.id FROM shipments s WHERE s.holder < 1 AND s.attempt = 0 AND s.destination = d.destination AND s.id > d.after ORDER BY s.id LIMIT 1) AS fresh,
  (SELECT s.due FROM shipments s WHERE s.holder < 1 AND s.attempt > 0 AND s.destination = d.destination ORDER BY s.due LIMIT 1) AS due
FROM unnest($1::bigint[], $2::bigint[]) AS d (destination, after)`,
}

const RELEASE = {
  name: 'release',
  text: `UPDATE shipments SET holder = 0
    WHERE holder = $1 AND id = ANY ($2::bigint[]) AND (id, claim) IN (SELECT id, claim FROM unnest($2::bigint[], $3::integer[]) AS r (id, claim))`,
}

export class Claiming {
  readonly #context: MessageContext
  readonly #held = new Map<string, Held>()
  readonly #scanPositions: ScanPositions
  readonly #grouping: Grouping<ClaimRequest, ClaimResult>
  readonly recentBodies = new RecentBodies()
  /** Releases that are not written yet. A claim waits for them. */
  #releasing: Promise<void> = Promise.resolve()
  /** Shipments of groups that may have been committed: if they exist, this node holds them in the database, but not in memory. Until when to look for them. */
  readonly #uncertain = new Map<string, number>()
  /** Rows that the database showed as held by this node at the last check, but that were not in memory: `ID CLAIM`. */
  #strays = new Set<string>()
  #straysCheckedAt = 0
  /** The holder id under which this node was last declared dead. Until it has joined again, it has no other. */
  #lostHolder = ''

  constructor(context: MessageContext) {
    this.#context = context
    this.#scanPositions = new ScanPositions(() => context.membership.serverMs())
    this.#grouping = new Grouping({
      run: (requests) => this.#claim(requests),
      depth: 2,
      early: 1,
      maxItems: MAX_CLAIMS,
    })
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    if (this.#context.idMap.num('destinations', request.destinationId) === undefined)
      return { shipments: [], moreFresh: false, nextRetryAtMs: null }
    await this.#releasing
    const { rows, moreFresh, nextRetryAtMs } = await this.#grouping.push(request)
    return { shipments: await this.filled(rows, request.destinationId), moreFresh, nextRetryAtMs }
  }

  async claimOverdue(destinationId: string, firstAttemptBeforeMs: number, limit: number): Promise<ClaimedShipment[]> {
    const destination = this.#context.idMap.num('destinations', destinationId)
    if (destination === undefined) return []
    await this.#releasing
    const { holder } = this.#context.membership
    const { rows } = await this.#context.fast.query<ShipmentRow>(
      {
        name: 'claim-overdue',
        text: `UPDATE shipments s SET holder = $1, claim = s.claim + 1
          WHERE s.holder = 0 AND EXISTS (SELECT FROM nodes WHERE holder = $1) AND s.id = ANY (ARRAY(
            SELECT id FROM shipments WHERE holder < 1 AND attempt > 0 AND destination = $2 AND first_attempt <= $3
            ORDER BY first_attempt LIMIT $4 FOR UPDATE SKIP LOCKED))
          RETURNING 0 AS ord, s.id, s.claim, s.attempt, s.first_attempt, s.due, s.bytes, s.unit, s.replay, s.urls, s.parts`,
      },
      [holder, destination, Math.floor(firstAttemptBeforeMs), limit],
    )
    this.assertHolder(holder)
    rows.sort((a, b) => (a.first_attempt ?? 0) - (b.first_attempt ?? 0))
    for (const { id, claim, bytes } of rows) this.hold(id, claim, bytes)
    return this.filled(rows, destinationId)
  }

  /** Resolves when all releases are written. */
  get released(): Promise<void> {
    return this.#releasing
  }

  /** Resolves when the release is written. Ignores shipments that are no longer held under this claim. */
  release(shipments: readonly HeldShipment[]): Promise<void> {
    const mine = shipments.filter(({ id, claim }) => this.holds(id as string, claim))
    for (const { id, destinationId } of mine) {
      this.#held.delete(id as string)
      this.#scanPositions.forget(destinationId)
    }
    if (mine.length === 0) return this.#releasing
    this.#releasing = this.#releasing.then(() => this.#release(mine))
    return this.#releasing
  }

  /** Releases rows that this node held only in the database, not in memory. Any node may claim them then. */
  async free(ids: readonly string[], destinationIds: readonly string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += FREED_AT_ONCE) {
      await this.#context.database.query('UPDATE shipments SET holder = 0 WHERE holder = $1 AND id = ANY ($2::bigint[])', [
        this.#context.membership.holder,
        int8s(ids.slice(at, at + FREED_AT_ONCE)),
      ])
    }
    for (const id of destinationIds) this.#scanPositions.forget(id)
  }

  // ── Shipments that this node holds ──

  hold(id: string, claim: number, bytes: number): void {
    this.#held.set(id, { claim, bytes })
  }

  holds(id: string, claim: number): boolean {
    return this.#held.get(id)?.claim === claim
  }

  bytesOf(id: string): number {
    return this.#held.get(id)?.bytes ?? 0
  }

  /** The shipment was settled. */
  ended(id: string): void {
    this.#held.delete(id)
  }

  /** Whether what a statement gave to this holder still belongs to this node, now that its answer has arrived. */
  isHolder(holder: string): boolean {
    return holder === this.#context.membership.holder && holder !== this.#lostHolder
  }

  /** These shipments may have been committed as held by this node, but nothing in this process has them. */
  addUncertain(ids: readonly string[]): void {
    for (const id of ids) this.#uncertain.set(id, performance.now() + UNCERTAIN_MS)
  }

  /** This node was declared dead, and other nodes may have taken over what it held. */
  fenced(): void {
    this.#lostHolder = this.#context.membership.holder
    this.#held.clear()
    this.recentBodies.clear()
    this.#scanPositions.clear()
    this.#uncertain.clear()
    this.#strays.clear()
    this.#context.consumer()?.claimsLost?.()
  }

  // ── Polling ──

  /** Another node may have released shipments that this node would not scan for a while. */
  forgetPositions(): void {
    this.#scanPositions.clear()
  }

  /** Called once a second. Releases rows that this node holds only in the database, not in memory. */
  async releaseLost(): Promise<void> {
    await this.#releaseUncertain()
    await this.#releaseStrays()
  }

  /** Called a few times a second. Finds work that other nodes have left in the store, and retries that have become due. */
  async poll(): Promise<void> {
    const consumer = this.#context.consumer()
    const destinations = [...this.#context.configuration().destinations.values()].filter(({ enabled, paused }) => enabled && !paused)
    const nums = destinations.flatMap(({ id }) => this.#context.idMap.num('destinations', id) ?? [])
    if (consumer === null || nums.length === 0) return
    const ids = nums.map((num) => this.#context.idMap.id('destinations', num) as string)
    const from = ids.map((id) => this.#scanPositions.from(id))
    const started = performance.now()
    const { rows } = await this.#context.fast.query<{ destination: string; fresh: string | null; due: number | null }>(POLL, [
      int8s(nums),
      int8s(from),
    ])
    const tookMs = performance.now() - started
    const found = new Map(rows.map((row) => [row.destination, row]))
    const soonMs = this.#context.scheduleMs() + 1_000
    for (const [at, id] of ids.entries()) {
      const { fresh = null, due = null } = found.get(nums[at] as string) ?? {}
      if (fresh === null) this.#scanPositions.scanned(id, from[at] as string, null, tookMs)
      // A claim would not scan this row.
      else if (fresh <= this.#scanPositions.from(id)) this.#scanPositions.forget(id)
      if (fresh !== null || (due !== null && due <= soonMs)) consumer.wake(id)
    }
  }

  async #releaseUncertain(): Promise<void> {
    if (this.#uncertain.size === 0) return
    const now = performance.now()
    const ids = [...this.#uncertain.keys()].filter((id) => !this.#held.has(id))
    const { rows } = await this.#context.fast.query<{ id: string }>(
      // Under a later claim, it was released before, and the answer to that was lost. Then this node has claimed it, and may not know that yet.
      'UPDATE shipments SET holder = 0 WHERE holder = $1 AND claim = 1 AND id = ANY ($2::bigint[]) RETURNING id',
      [this.#context.membership.holder, int8s(ids)],
    )
    for (const { id } of rows) this.#uncertain.delete(id)
    for (const [id, untilMs] of this.#uncertain) if (untilMs < now) this.#uncertain.delete(id)
  }

  /** If the answer to a claim is lost, this node does not know which rows it claimed. They are found as rows that two successive checks show as held by this node but not in memory. */
  async #releaseStrays(): Promise<void> {
    if (performance.now() - this.#straysCheckedAt < STRAYS_EVERY_MS) return
    const { holder } = this.#context.membership
    const { rows } = await this.#context.fast.query<{ id: string; claim: number }>(
      { name: 'strays', text: 'SELECT id, claim FROM shipments WHERE holder = $1' },
      [holder],
    )
    // Not when the query was sent: if it was slow, it may have seen rows that were claimed only just now.
    this.#straysCheckedAt = performance.now()
    if (!this.isHolder(holder)) return
    const before = this.#strays
    const unknown = rows.filter(({ id, claim }) => !this.holds(id, claim))
    this.#strays = new Set(unknown.map(({ id, claim }) => `${id} ${claim}`))
    const strays = unknown.filter(({ id, claim }) => before.has(`${id} ${claim}`))
    if (strays.length === 0) return
    await this.#context.fast.query(RELEASE, [holder, int8s(strays.map(({ id }) => id)), int4s(strays.map(({ claim }) => claim))])
  }

  /** Retries while the database is unavailable. Stops if this node is declared dead, because then everything it held is released. */
  async #release(shipments: readonly HeldShipment[]): Promise<void> {
    const { holder } = this.#context.membership
    const ids = int8s(shipments.map(({ id }) => id as string))
    const claims = int4s(shipments.map(({ claim }) => claim))
    while (holder === this.#context.membership.holder) {
      try {
        await this.#context.fast.query(RELEASE, [holder, ids, claims])
        return
      } catch {
        if (this.#context.isClosed()) return
        await new Promise((resolve) => setTimeout(resolve, RELEASE_RETRY_MS).unref())
      }
    }
  }

  // ── Claims ──

  /** A statement does not skip rows that it has locked itself, so it contains each destination only once. */
  async #claim(requests: readonly ClaimRequest[]): Promise<(ClaimResult | Error)[]> {
    const answers = new Map<ClaimRequest, ClaimResult | Error>()
    for (let left = requests; left.length > 0; ) {
      const first = new Map(left.map((request) => [request.destinationId, request]))
      const asked = [...first.values()]
      try {
        for (const [at, answer] of (await this.#claimOnce(asked)).entries()) answers.set(asked[at] as ClaimRequest, answer)
      } catch (error) {
        // Requests that were answered before the error still get their shipments.
        if (answers.size === 0) throw error
        for (const request of left) answers.set(request, error as Error)
        break
      }
      left = left.filter((request) => first.get(request.destinationId) !== request)
    }
    return requests.map((request) => answers.get(request) as ClaimResult | Error)
  }

  async #claimOnce(requests: readonly ClaimRequest[]): Promise<ClaimResult[]> {
    const now = performance.now()
    const { holder } = this.#context.membership
    const parameters = requests.map(({ destinationId, nowMs, maxFresh, maxRetries, maxBytes }, ord) => ({
      ord,
      destination: this.#context.idMap.num('destinations', destinationId) ?? '0',
      max_fresh: maxFresh,
      after: this.#scanPositions.from(destinationId),
      max_retries: maxRetries,
      now: Math.floor(nowMs),
      max_bytes: Math.min(Math.floor(maxBytes), Number.MAX_SAFE_INTEGER),
    }))
    const { rows } = await this.#context.fast.query<ClaimRow>(CLAIM, CLAIM.values({ holder, requests: parameters }))
    this.assertHolder(holder)
    const tookMs = performance.now() - now
    const [row] = rows
    const claimed = row?.claimed ?? []
    for (const { id, claim, bytes } of claimed) this.hold(id, claim, bytes)
    return requests.map(({ destinationId, maxFresh }, ord) => {
      const own = claimed.filter((shipment) => shipment.ord === ord)
      const moreFresh = row?.more?.[ord] ?? false
      if (maxFresh > 0) {
        const last = own.reduce<string | null>((newest, { id, attempt }) => (attempt === 0 && id > (newest ?? '') ? id : newest), null)
        // If nothing was claimed, other nodes may hold the rows, or they exceed the limits of the request. Neither says anything about the position.
        if (last !== null) this.#scanPositions.scanned(destinationId, (parameters[ord] as { after: string }).after, last, tookMs)
      }
      return { rows: own, moreFresh, nextRetryAtMs: row?.next?.[ord] ?? null }
    })
  }

  /** If this node was declared dead since the statement was sent, what the statement claimed is released, and others may have it. */
  assertHolder(holder: string): void {
    if (!this.isHolder(holder)) throw new StoreUnavailable('this node was declared dead')
  }

  async filled(rows: readonly ShipmentRow[], destinationId: string): Promise<ClaimedShipment[]> {
    if (rows.length === 0) return []
    const stored = rows.map(({ parts }) => JSON.parse(parts) as StoredPart<string>[])
    const sharers = sharersOf(rows, stored)
    const segments = new Map<string, ClaimedSegment>()
    const unknown: string[] = []
    for (const segment of new Set(stored.flat().map(([, of]) => of))) {
      const known = this.recentBodies.take(segment, sharers.get(segment) ?? 0)
      if (known === undefined) unknown.push(segment)
      else segments.set(segment, known)
    }
    try {
      if (unknown.length > 0) for (const [segment, found] of await this.#readSegments(unknown)) segments.set(segment, found)
    } catch (error) {
      // The shipments were claimed, but the caller will not get them.
      void this.release(rows.map((row, at) => shipmentOf(row, destinationId, stored[at] as StoredPart<string>[], segments, true)))
      throw error
    }
    const fill = (row: ShipmentRow, parts: readonly StoredPart<string>[]): ClaimedShipment => {
      const own = new Map<RowId, SegmentBody>()
      let bytes = 0
      for (const [, segment] of parts) {
        const found = segments.get(segment)
        if (found === undefined) continue
        own.set(segment, found.body)
        bytes += Math.ceil(found.bytes / (sharers.get(segment) ?? 1))
      }
      return { shipment: shipmentOf(row, destinationId, parts, segments, false), bodies: own, bytes }
    }
    return rows.flatMap((row, at) => {
      // This node was declared dead meanwhile.
      if (!this.holds(row.id, row.claim)) return []
      try {
        return [fill(row, stored[at] as StoredPart<string>[])]
      } catch (error) {
        // The unreadable shipment stays held, so that it is not claimed again and again. The other shipments are returned.
        this.#context.run(Promise.reject(new Error(`shipment ${row.id} cannot be read`, { cause: error })))
        return []
      }
    })
  }

  async #readSegments(segments: readonly string[]): Promise<[string, ClaimedSegment][]> {
    const { rows } = await this.#context.fast.query<StoredContent<string>>(
      { name: 'segments', text: `${selectContent()} WHERE g.seq = ANY ($1::bigint[])` },
      [int8s(segments)],
    )
    return rows.map((row) => {
      const { seq, count, absent, body } = row
      return [seq, { count, absent, body: bodyOf(row, unpackBody(body)), bytes: body.length }]
    })
  }
}

/** How many of the ordered shipments refer to each segment. The messages of a request are in a shipment for each partition, and share its body. */
function sharersOf(rows: readonly ShipmentRow[], stored: readonly (readonly StoredPart<string>[])[]): Map<string, number> {
  const sharers = new Map<string, number>()
  for (const [at, { order }] of rows.entries()) {
    if (order === undefined) continue
    for (const [, segment] of stored[at] as readonly StoredPart<string>[]) sharers.set(segment, (sharers.get(segment) ?? 0) + 1)
  }
  return sharers
}
