// Accepting: batches that come at the same time are one statement, which is one round trip and one commit. In it, keys that are
// new go in and those that are not make their messages duplicates; segments, shipments and books follow from that. What this
// node will deliver itself is stored as held by it, and handed over after the commit with nothing read back.
//
// Duplicates are looked for in today's and yesterday's keys, so they are known for at least a day. Two nodes that accept the
// same message at once meet at the key: one of them waits for the other's commit. Around midnight they might meet in
// different days; so in the first minute of a day a key is put into the day before, too.

import { packBody } from '../../encoding/body-bytes.ts'
import { FINGERPRINT_WORDS, type Seed, sourceSeed } from '../../encoding/fingerprint.ts'
import { KEY_WORDS, writeKeys } from '../../encoding/segment-keys.ts'
import { writeTrace } from '../../encoding/trace-column.ts'
import { Tallies, type Tally } from '../../history/tallies.ts'
import {
  type AcceptBatch,
  type AcceptResult,
  type Configuration,
  type Rejection,
  type SegmentContent,
  type Shipment,
  type Skip,
  StoreUnavailable,
} from '../../store.ts'
import type { Membership } from '../cluster/membership.ts'
import { owedIndexes, type Routes } from '../rows/rows.ts'
import { bools, byteas, int4s, int8s, texts, uuids } from '../session/binary-arrays.ts'
import { PostgresUnavailable } from '../session/connection.ts'
import type { Database } from '../session/database.ts'
import type { Parts } from '../session/parts.ts'
import { writeText } from '../session/texts.ts'
import type { Claiming } from './claiming.ts'
import { Grouping } from './grouping.ts'
import { keyBytes, openSeed } from './message-keys.ts'
import { MARKER, SOURCE_COUNTS } from './owing.ts'
import { recordRepeats } from './repeats.ts'

interface Tools {
  database: Database
  membership: Membership
  claiming: Claiming
  /** A destination that was planned for is gone: what is configured has to be looked at again. */
  refresh: () => Promise<void>
  onState: (problem: string | null) => void
  onCommit: (commitMs: number, batches: number) => void
}

interface Reply {
  result: AcceptResult
  /** Those that this node holds, claimed. */
  owned: Shipment[]
  /** Destinations for which work was left in the store. */
  left: string[]
}

interface Item {
  batch: AcceptBatch
  keys: Uint32Array
  wanted: { destinationId: string; own: boolean }[]
  /** Whether the taker was asked what it wants of it. */
  asked: boolean
  /** What it was planned by, and the users were suppressed by. */
  configuration: Configuration
}

interface Planned {
  id: string
  item: Item
  segment: string
  destinationId: string
  indexes: readonly number[] | null
  count: number
  own: boolean
}

const GROUP_BYTES = 4 * 1024 * 1024
const GROUP_BATCHES = 500
const WAITING_BYTES = 64 * 1024 * 1024
const DAY_MS = 86_400_000
const TURN_MS = 60_000
const TALLY_AGAIN_MS = 1_000

const ACCEPT = {
  name: 'accept',
  text: `
WITH k AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::integer[]) AS k (key, segment, idx)
), turning AS (
  INSERT INTO message_keys (day, key, segment) SELECT $5::integer - 1, k.key, k.segment FROM k WHERE $6 AND k.key IS NOT NULL
  ORDER BY k.key ON CONFLICT DO NOTHING RETURNING key
), new AS (
  INSERT INTO message_keys (day, key, segment)
  SELECT $5, k.key, k.segment FROM k
  -- Not as NOT EXISTS, which may be planned as one pass over all keys of a day.
  WHERE k.key IS NOT NULL AND (SELECT y.segment FROM message_keys y WHERE y.key = k.key AND y.day = $5 - 1 LIMIT 1) IS NULL
    AND (NOT $6 OR EXISTS (SELECT FROM turning t WHERE t.key = k.key))
  -- In one order everywhere, so that two nodes do not wait for each other in a ring.
  ORDER BY k.key ON CONFLICT DO NOTHING RETURNING key
), dup AS MATERIALIZED (
  SELECT k.segment, array_agg(k.idx ORDER BY k.idx) AS absent FROM k LEFT JOIN new ON new.key = k.key WHERE new.key IS NULL GROUP BY k.segment
), s AS MATERIALIZED (
  SELECT s.*, d.absent, coalesce(cardinality(d.absent), 0) AS gone
  FROM unnest($7::bigint[], $8::bigint[], $9::bigint[], $10::integer[], $11::boolean[], $12::text[], $13::text[], $14::text[], $15::bytea[], $16::bytea[])
    AS s (seq, source, received_at, count, browser, ip, trace, routes, keys, body)
  LEFT JOIN dup d ON d.segment = s.seq
), seg AS (
  INSERT INTO segments (seq, source, received_at, count, browser, absent, ip, trace, routes, keys, body)
  SELECT seq, source, received_at, count, browser, absent, ip, trace, routes, keys, body FROM s WHERE count = 0 OR gone < count
), p AS MATERIALIZED (
  SELECT p.*, CASE WHEN d.absent IS NULL THEN 0 WHEN p.indexes IS NULL THEN cardinality(d.absent)
    ELSE (SELECT count(*) FROM unnest(d.absent) a WHERE a = ANY (p.indexes::integer[])) END AS gone
  FROM unnest($17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::integer[], $22::integer[], $23::text[], $24::text[])
    AS p (holder, id, segment, destination, count, bytes, indexes, parts)
  LEFT JOIN dup d ON d.segment = p.segment
), ship AS (
  INSERT INTO shipments (holder, id, destination, claim, count, bytes, parts)
  SELECT holder, id, destination, CASE WHEN holder = 0 THEN 0 ELSE 1 END, count - gone, bytes, parts FROM p WHERE count > gone
), books AS (
  INSERT INTO deltas (id, kind, subject, counts)
  SELECT b.id, 0, b.subject, ARRAY[o.owed, 0, o.owed, 0, 0, 0]
  FROM unnest($25::bigint[], $26::bigint[]) AS b (id, subject)
  JOIN (SELECT destination, sum(count - gone)::bigint AS owed FROM p GROUP BY destination) o ON o.destination = b.subject AND o.owed > 0
  UNION ALL
  SELECT b.id, 1, b.subject, ARRAY[c.accepted, c.duplicates, 0, 0]
  FROM unnest($27::bigint[], $28::bigint[]) AS b (id, subject)
  JOIN (SELECT source, sum(count - gone)::bigint AS accepted, sum(gone)::bigint AS duplicates FROM s GROUP BY source) c ON c.source = b.subject
)
SELECT (SELECT json_agg(json_build_object('segment', segment::text, 'absent', absent)) FROM dup) AS dups,
  CASE WHEN NOT EXISTS (SELECT FROM nodes WHERE holder = $1) THEN refuse('this node was given up')
       WHEN EXISTS (SELECT FROM destinations WHERE num = ANY ($26::bigint[]) AND deleted) THEN refuse('destination gone') END AS refused`,
}

const DESTINATION_GONE = 'destination gone'

export class Accepting {
  readonly #parts: Parts
  readonly #tools: Tools
  readonly #grouping: Grouping<Item, Reply>
  readonly #tallies: Tallies
  readonly #writing = new Set<Promise<Reply>>()
  readonly #seeds = new Map<string, Seed>()
  #seed: Seed = [0, 0, 0, 0]
  #problem: string | null = null

  constructor(parts: Parts, tools: Tools) {
    this.#parts = parts
    this.#tools = tools
    this.#tallies = new Tallies((tally) => this.#tally(tally))
    this.#grouping = new Grouping({
      run: (items) => this.#run(items),
      depth: 2,
      early: 8,
      maxItems: GROUP_BATCHES,
      maxBytes: GROUP_BYTES,
      waitingBytes: WAITING_BYTES,
      lingerMs: 0,
      bytesOf: ({ batch }) => batch.body.length + batch.messageIds.length * KEY_WORDS * 4,
    })
  }

  async load(): Promise<void> {
    this.#seed = await openSeed(this.#parts.database)
  }

  async accept(batch: AcceptBatch): Promise<AcceptResult> {
    const { content, messageIds, plan } = batch
    const keys = new Uint32Array(messageIds.length * KEY_WORDS)
    writeKeys(messageIds, content.items, this.#seedOf(content.sourceId), keys, 0)
    const wanted = plan.shipments.map(({ destinationId }) => ({ destinationId, own: false }))
    const bytes = batch.body.length
    const writing = this.#grouping.push({ batch, keys, wanted, asked: false, configuration: this.#parts.configuration() })
    this.#writing.add(writing)
    let reply: Reply
    try {
      reply = await writing
    } catch (error) {
      const taker = this.#parts.taker()
      for (const { destinationId, own } of wanted) if (own) taker?.lost(destinationId, bytes)
      throw error
    } finally {
      this.#writing.delete(writing)
    }
    this.#hand(reply, wanted, content, bytes)
    return reply.result
  }

  /** Resolves when everything that was given before is committed, or has failed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#writing)
  }

  reject(rejection: Rejection): void {
    this.#tallies.reject(rejection)
  }

  suppressed(sourceId: string, count: number): void {
    this.#tallies.suppressed(sourceId, count)
  }

  async close(): Promise<void> {
    await this.#grouping.close()
    await this.#tallies.flush()
  }

  // ── A group ──

  async #run(items: readonly Item[]): Promise<(Reply | Error)[]> {
    const taker = this.#parts.taker()
    for (const item of items) {
      // Asked once, also when the group has to be made again: what was wanted is counted by whoever wants it.
      if (item.asked) continue
      item.asked = true
      for (const shipment of item.wanted) shipment.own = taker?.wants(shipment.destinationId, item.batch.body.length) ?? false
    }
    const isKnown = ({ batch }: Item): boolean => this.#parts.names.num('sources', batch.content.sourceId) !== undefined
    const known = items.filter(isKnown)
    const replies = known.length === 0 ? [] : await this.#write(known)
    return items.map((item) => (isKnown(item) ? (replies.shift() as Reply) : new Error(`unknown source ${item.batch.content.sourceId}`)))
  }

  async #write(items: readonly Item[]): Promise<Reply[]> {
    for (let nth = 1; ; nth++) {
      let group: Group | undefined
      try {
        if (!this.#tools.membership.isAssured) await this.#assure(items)
        group = new Group(items, this.#parts, this.#tools.membership)
        const started = performance.now()
        const absent = await group.write(this.#tools.database)
        this.#tools.onCommit(performance.now() - started, items.length)
        this.#told(null)
        const replies = group.replies(absent)
        for (const { id } of replies.flatMap(({ owned }) => owned)) this.#tools.claiming.hold(id as string, 1, group.bytesOf(id as string))
        if (absent.size > 0) await recordRepeats(this.#tools.database, group.repeats(absent)).catch(() => {})
        return replies
      } catch (error) {
        if (error instanceof PostgresUnavailable) {
          if (error.doubtful && group !== undefined) this.#tools.claiming.doubt(group.ownedIds)
          this.#told(error.message)
          throw error
        }
        const { code, message } = error as { code?: string; message?: string }
        if (code !== 'SY001' || nth === 3) throw code === 'SY001' ? new StoreUnavailable(message) : error
        if (message === DESTINATION_GONE) await this.#tools.refresh()
        else await this.#assure(items)
      }
    }
  }

  /** Others may have made a change without waiting for this node. What was planned before it must not be stored after it. */
  async #assure(items: readonly Item[]): Promise<void> {
    await this.#tools.membership.assure()
    if (items.some(({ configuration }) => configuration !== this.#parts.configuration())) {
      throw new StoreUnavailable('the configuration was changed while the lease of this node had expired')
    }
  }

  #told(problem: string | null): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.#tools.onState(problem)
  }

  /** New work to whoever wanted it, and word of the rest. */
  #hand({ result, owned, left }: Reply, wanted: Item['wanted'], content: SegmentContent, bytes: number): void {
    const taker = this.#parts.taker()
    if (taker === null) return
    const isDuplicate = new Set(result.duplicates)
    const present =
      isDuplicate.size === 0 ? content : { ...content, items: content.items.map((item, at) => (isDuplicate.has(at) ? null : item)) }
    for (const shipment of owned) {
      taker.take({ shipment, contents: new Map([[result.segment as string, present]]), bytes })
    }
    if (owned.length < wanted.length) {
      for (const { destinationId, own } of wanted) {
        if (own && !owned.some((shipment) => shipment.destinationId === destinationId)) taker.lost(destinationId, bytes)
      }
    }
    for (const destinationId of left) taker.wake(destinationId)
  }

  #seedOf(sourceId: string): Seed {
    let seed = this.#seeds.get(sourceId)
    if (seed === undefined) {
      seed = sourceSeed(sourceId, this.#seed)
      this.#seeds.set(sourceId, seed)
    }
    return seed
  }

  // ── Counts that nobody waits for ──

  async #tally({ rejections, suppressed }: Tally): Promise<void> {
    const { names, ids, database } = this.#parts
    const num = (sourceId: string | null): string => (sourceId === null ? '0' : (names.num('sources', sourceId) ?? '0'))
    // By which it is known to have been made, should the answer be lost.
    const name = ids.next()
    let isDoubtful = false
    for (;;) {
      try {
        if (isDoubtful && (await database.query('SELECT 1 FROM deltas WHERE id = $1', [name])).count > 0) return
        return await database.transaction(async (ask) => {
          await ask("INSERT INTO deltas (id, kind, subject, counts) VALUES ($1, $2, 0, '{}')", [name, MARKER])
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
          for (const [subject, counts] of changes) {
            await ask('INSERT INTO deltas (id, kind, subject, counts) VALUES ($1, $2, $3, $4)', [
              ids.next(),
              SOURCE_COUNTS,
              subject,
              counts,
            ])
          }
        })
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || this.#parts.isClosed()) throw error
        isDoubtful ||= error instanceof PostgresUnavailable && error.doubtful
        await new Promise((resolve) => setTimeout(resolve, TALLY_AGAIN_MS).unref())
      }
    }
  }
}

/** One statement's worth: the names that its rows get, its values, and what its answer means. */
class Group {
  readonly #items: readonly Item[]
  readonly #parts: Parts
  readonly #membership: Membership
  readonly #segments: string[] = []
  readonly #planned: Planned[] = []
  readonly #routes: string[] = []
  readonly ownedIds: string[] = []

  constructor(items: readonly Item[], parts: Parts, membership: Membership) {
    this.#items = items
    this.#parts = parts
    this.#membership = membership
    for (const item of items) this.#name(item)
  }

  bytesOf(id: string): number {
    return this.#planned.find((planned) => planned.id === id)?.item.batch.body.length ?? 0
  }

  /** A segment's shipments are named right after it: see origins.ts. */
  #name(item: Item): void {
    const { ids, names, configuration } = this.#parts
    const { plan, messageIds } = item.batch
    const segment = ids.next()
    this.#segments.push(segment)
    const routes: Routes = { s: [] }
    const skips: Skip[] = [...plan.skips]
    for (const [at, { destinationId, indexes }] of plan.shipments.entries()) {
      const num = names.num('destinations', destinationId)
      // Planned with a configuration that a deletion has overtaken.
      if (num === undefined || !configuration().destinations.has(destinationId)) {
        skips.push({ destinationId, reason: 'destination_deleted', indexes })
        continue
      }
      const count = indexes === null ? messageIds.length : indexes.length
      if (count === 0) continue
      const own = item.wanted[at]?.own ?? false
      const id = ids.next()
      if (own) this.ownedIds.push(id)
      this.#planned.push({ id, item, segment, destinationId, indexes, count, own })
      routes.s.push([num, id, indexes ?? 0, count])
    }
    if (skips.length > 0) {
      routes.k = skips.map(({ destinationId, reason, rule, indexes }) => [
        destinationId === null ? '0' : (names.num('destinations', destinationId) ?? '0'),
        rule === undefined ? reason : `${reason} ${rule}`,
        indexes ?? 0,
      ])
    }
    this.#routes.push(JSON.stringify(routes))
  }

  /** Resolves after the commit with the duplicates of each segment that has any. */
  async write(database: Database): Promise<Map<string, number[]>> {
    const { names, ids } = this.#parts
    const keys: (Uint8Array | null)[] = []
    const keySegments: string[] = []
    const keyIndexes: number[] = []
    const seen = new Set<string>()
    for (const [at, { keys: words, batch }] of this.#items.entries()) {
      const segment = this.#segments[at] as string
      for (let index = 0; index < batch.messageIds.length; index++) {
        const bytes = keyBytes(words, index * KEY_WORDS)
        const text = bytes.toString('latin1')
        // Null: its like comes earlier in this very statement.
        keys.push(seen.has(text) ? null : bytes)
        seen.add(text)
        keySegments.push(segment)
        keyIndexes.push(index)
      }
    }
    const contents = this.#items.map(({ batch }) => batch.content)
    const source = ({ sourceId }: SegmentContent): string => names.num('sources', sourceId) as string
    const destinations = [...new Set(this.#planned.map(({ destinationId }) => names.num('destinations', destinationId) as string))]
    const sources = [...new Set(contents.map(source))]
    const serverMs = this.#membership.serverMs()
    const { rows } = await database.query<{ dups: { segment: string; absent: number[] }[] | null }>(ACCEPT, [
      this.#membership.holder,
      uuids(keys),
      int8s(keySegments),
      int4s(keyIndexes),
      Math.floor(serverMs / DAY_MS),
      serverMs % DAY_MS < TURN_MS,
      int8s(this.#segments),
      int8s(contents.map(source)),
      int8s(contents.map(({ receivedAtMs }) => Math.floor(receivedAtMs))),
      int4s(this.#items.map(({ batch }) => batch.messageIds.length)),
      bools(contents.map(({ browser }) => browser)),
      texts(contents.map(({ ip }) => ip)),
      texts(contents.map(({ trace }) => writeTrace(trace))),
      texts(this.#routes),
      byteas(this.#items.map(({ keys: words }) => new Uint8Array(words.buffer, words.byteOffset, words.byteLength))),
      byteas(this.#items.map(({ batch }) => packBody(batch.body))),
      int8s(this.#planned.map(({ own }) => (own ? this.#membership.holder : '0'))),
      int8s(this.#planned.map(({ id }) => id)),
      int8s(this.#planned.map(({ segment }) => segment)),
      int8s(this.#planned.map(({ destinationId }) => names.num('destinations', destinationId) as string)),
      int4s(this.#planned.map(({ count }) => count)),
      int4s(this.#planned.map(({ item }) => item.batch.body.length)),
      texts(this.#planned.map(({ indexes }) => (indexes === null ? null : `{${indexes.join(',')}}`))),
      texts(this.#planned.map(({ id, segment, indexes }) => `[["${id}","${segment}",${indexes === null ? 0 : `[${indexes.join(',')}]`}]]`)),
      int8s(destinations.map(() => ids.next())),
      int8s(destinations),
      int8s(sources.map(() => ids.next())),
      int8s(sources),
    ])
    return new Map((rows[0]?.dups ?? []).map(({ segment, absent }) => [segment, absent]))
  }

  replies(absent: ReadonlyMap<string, readonly number[]>): Reply[] {
    const replies = this.#items.map(({ batch }, at): Reply => {
      const segment = this.#segments[at] as string
      const duplicates = absent.get(segment) ?? []
      const nothing = batch.messageIds.length > 0 && duplicates.length === batch.messageIds.length
      return { result: { segment: nothing ? null : segment, duplicates }, owned: [], left: [] }
    })
    const bySegment = new Map(this.#segments.map((segment, at) => [segment, replies[at] as Reply]))
    for (const { id, item, segment, destinationId, indexes, own } of this.#planned) {
      const reply = bySegment.get(segment) as Reply
      const kept = owedIndexes(indexes ?? 0, item.batch.messageIds.length, reply.result.duplicates)
      if (kept.length === 0) continue
      if (!own) {
        reply.left.push(destinationId)
        continue
      }
      reply.owned.push({
        id,
        claim: 1,
        destinationId,
        attempt: 0,
        firstAttemptAtMs: null,
        dueAtMs: 0,
        unit: false,
        urls: null,
        replay: false,
        parts: [{ origin: id, segment, indexes: kept }],
      })
    }
    return replies
  }

  /** Of each batch that had duplicates, the keys of those, and when it came. */
  repeats(absent: ReadonlyMap<string, readonly number[]>): { keys: Uint32Array[]; atMs: number }[] {
    return this.#items.flatMap(({ keys, batch }, at) => {
      const indexes = absent.get(this.#segments[at] as string)
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
