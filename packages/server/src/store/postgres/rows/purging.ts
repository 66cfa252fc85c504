// Purges the messages of the users of a deletion request from the segments that contain them, in steps. Any node can make the next
// step of any purge, under a lock on the request's row. So each step is made once, and if a node dies in the middle, another node
// continues. A step reads the keys of segments, and rewrites only bodies that contain a message of a user. A purged
// message leaves an empty entry, so that indexes stay valid. Its pending deliveries are cancelled when they become due.
//
// The range of a purge. Everything committed before the request has a row id before the request's `mark`, whichever node wrote it, and
// is visible to every step. Without suppression, the purge ends at the mark: later messages are kept. With suppression, no new messages
// of the users may be accepted. But other nodes may accept some by their old configuration for up to a second, and commit them
// a little later, with row ids before and after the mark. So such a purge has a tail of TAIL_MS after the mark. It scans
// everything at once, and then scans again from TAIL_MS before the mark to the end of the tail, after the tail has passed and no writing
// transaction from it is left. In the tail, only users who are still suppressed are purged: if a suppression was
// removed meanwhile, somebody wanted these messages.

import { isSampleOf, withoutUsers } from '../../deletions/purged-content.ts'
import { sourceSeed, userHash } from '../../encoding/fingerprint.ts'
import { candidates } from '../../encoding/segment-keys.ts'
import { withoutViolations } from '../../encoding/violations-column.ts'
import { portions } from '../../history/paging.ts'
import { forgetHeads } from '../../ordering/change-key.ts'
import type { StoreContext } from '../cluster/store-context.ts'
import { int8s } from '../session/binary-arrays.ts'
import type { Ask } from '../session/database.ts'
import { readText, writeText } from '../session/text-columns.ts'
import { type RewrittenSegment, rewriteSegments, type SegmentToRewrite } from '../tables/rewrite-segments.ts'
import { orderChanges } from './order-rows.ts'
import { dropPurged } from './quarantine-rows.ts'

/** Longer than a node can take to learn of a new configuration, plus the time to commit messages that it accepted by the old one. */
const TAIL_MS = 5_000
/** TAIL_MS as a difference of row ids. */
export const TAIL = BigInt(TAIL_MS) << 21n
/** Longer than any transaction that accepts messages. */
const LONGEST_ACCEPT_MS = 60_000

const SEGMENTS_PER_STEP = 1_000
const MESSAGES_PER_STEP = 200_000
const BODY_BYTES_PER_STEP = 8 * 1024 * 1024
/** The size of bodies that are read and rewritten at once, so that the event loop is not blocked for long. */
const BODY_BYTES_AT_ONCE = 512 * 1024
/** Every body counts as at least this many bytes, so that the number of bodies is limited too. */
const LEAST_BODY_BYTES = 5 * 1024

const SERVER_MS = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
/** For a row of `deletions`: whether its tail has passed. */
const TAIL_IS_OVER = `(NOT suppress OR (${SERVER_MS} > purge_end >> 21 AND (${SERVER_MS} > (purge_end >> 21) + ${LONGEST_ACCEPT_MS}
  OR NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
    AND backend_xid IS NOT NULL AND (extract(epoch FROM xact_start) * 1000)::bigint <= purge_end >> 21))))`
/** For a row of `deletions`: whether the first scan has finished. */
const IS_AT_TAIL = `(suppress AND purge_cursor >= purge_end - ${2n * TAIL})`

/** What a row of `deletions` says of the messages to purge. */
export interface RequestRow {
  suppress: boolean
  every_source: boolean
  user_ids: string
  sources: string
  purge_end: string
}

/** The data that all steps of a purge share. */
interface Purge {
  num: string
  end: string
  mark: string
  /** Where the second scan starts, after the tail has passed. */
  again: string
  userIds: readonly string[]
  sources: ReadonlyMap<string, string>
  /** The hashes of the users in segment keys, per source. Computed when the first segment of a source is read. */
  hashes: Map<string, Set<number>>
  /** Whether this is the last scan. */
  last: boolean
}

interface Step {
  /** The row id of the last segment that was scanned. */
  position: string
  over: boolean
}

interface Found {
  seq: string
  source: string
  bytes: number
}

interface Rewritten extends RewrittenSegment {
  source: string
}

export class Purging {
  readonly #context: StoreContext
  readonly #running = new Set<string>()

  constructor(context: StoreContext) {
    this.#context = context
  }

  /** Returns the end of a new request's purge. Must be called as late as possible in its transaction, because the tail begins when other nodes can learn of the request. */
  static async end(ask: Ask, now: string, suppress: boolean): Promise<string> {
    // Clocks differ: the last segment of another node may have a later row id than a request that came after it.
    const { rows } = await ask<{ mark: string }>('SELECT greatest($1::bigint, max(seq) + 1) AS mark FROM segments WHERE seq >= $1', [now])
    const mark = BigInt(rows[0]?.mark ?? now)
    return String(suppress ? mark + TAIL : mark)
  }

  /** Continues purges that can go on; costs one small query if there are none. Returns all unfinished purges. */
  async resume(): Promise<ReadonlySet<string>> {
    const { rows } = await this.#context.database.query<{ num: string; ready: boolean }>({
      name: 'open-purges',
      text: `SELECT num, NOT ${IS_AT_TAIL} OR ${TAIL_IS_OVER} AS ready FROM deletions WHERE purge_cursor < purge_end ORDER BY num`,
    })
    for (const { num, ready } of rows) if (ready) this.begin(num)
    return new Set(rows.map(({ num }) => num))
  }

  /** Purges step by step, unless another node is doing it. */
  begin(num: string): void {
    if (this.#running.has(num) || this.#context.isClosed()) return
    this.#running.add(num)
    this.#context.run(this.#purge(num).finally(() => this.#running.delete(num)))
  }

  async #purge(num: string): Promise<void> {
    const purge = await this.#read(num)
    if (purge === undefined) return
    for (let position = '0'; !this.#context.isClosed(); ) {
      const step = await this.#context.database.transaction((ask) => this.#step(ask, purge, position))
      // Another node is making the step, or the purge has finished.
      if (step === null || step.over) return this.#wakeOrdered()
      position = step.position
    }
  }

  /** Keys whose heads were purged go on. */
  #wakeOrdered(): void {
    const { consumer, configuration } = this.#context
    for (const { id, order } of configuration().destinations.values()) if (order != null) consumer()?.wake(id)
  }

  async #read(num: string): Promise<Purge | undefined> {
    const { database } = this.#context
    const { rows } = await database.query<RequestRow & { last: boolean }>(
      `SELECT suppress, every_source, user_ids, sources, purge_end, ${TAIL_IS_OVER} AS last FROM deletions WHERE num = $1 AND purge_cursor < purge_end`,
      [num],
    )
    const [row] = rows
    if (row === undefined) return undefined
    // Messages of a deleted source are kept until retention drops them.
    const { rows: sources } = await database.query<{ num: string; id: string }>(
      'SELECT num, id FROM sources WHERE num = ANY($1::bigint[]) OR (deleted AND $2)',
      [JSON.parse(row.sources) as string[], row.every_source],
    )
    const mark = row.suppress ? BigInt(row.purge_end) - TAIL : BigInt(row.purge_end)
    return {
      num,
      end: row.purge_end,
      mark: String(mark),
      again: String(mark - TAIL),
      userIds: JSON.parse(row.user_ids) as string[],
      sources: new Map(sources.map((source) => [source.num, source.id])),
      hashes: new Map(),
      last: row.last,
    }
  }

  async #step(ask: Ask, purge: Purge, position: string): Promise<Step | null> {
    const { rows } = await ask<{ cursor: string }>(
      'SELECT purge_cursor::text AS cursor FROM deletions WHERE num = $1 AND purge_cursor < purge_end FOR UPDATE SKIP LOCKED',
      [purge.num],
    )
    if (rows[0] === undefined) return null
    const from = later(rows[0].cursor, position)
    const { rows: found } = await ask<Found & { count: number }>(
      `SELECT seq, source, count, octet_length(body) AS bytes FROM segments WHERE seq > $1 AND seq < $2 ORDER BY seq LIMIT ${SEGMENTS_PER_STEP}`,
      [from, purge.end],
    )
    let messages = 0
    const within = found.filter(({ count }, at) => at === 0 || (messages += count) <= MESSAGES_PER_STEP)
    const possible = await this.#possible(ask, purge, within)
    let bytes = 0
    const selected = possible.filter((segment, at) => (bytes += segment.bytes) <= BODY_BYTES_PER_STEP || at === 0)
    const purged = await this.#rewrite(ask, purge, selected)
    const isCut = selected.length < possible.length
    const over = found.length < SEGMENTS_PER_STEP && within.length === found.length && !isCut
    const reached = over ? purge.end : ((isCut ? selected : within).at(-1)?.seq ?? purge.end)
    const cursor = purge.last ? reached : later(rows[0].cursor, reached < purge.again ? reached : purge.again)
    if (over) await purgeSamples(ask, purge)
    await ask('UPDATE deletions SET purge_cursor = $2, purged = purged + $3 WHERE num = $1', [purge.num, cursor, purged])
    return { position: reached, over }
  }

  /** Returns the segments whose keys contain the hash of a user. */
  async #possible(ask: Ask, purge: Purge, found: readonly Found[]): Promise<Found[]> {
    const bySeq = new Map(found.filter(({ source }) => purge.sources.has(source)).map((segment) => [segment.seq, segment]))
    if (bySeq.size === 0) return []
    const seqs = [...bySeq.keys()]
    const { rows } = await ask<{ seq: string; keys: Buffer }>(
      'SELECT seq, keys FROM segments WHERE seq = ANY($1::bigint[]) AND seq BETWEEN $2 AND $3 ORDER BY seq',
      [int8s(seqs), seqs[0] as string, seqs.at(-1) as string],
    )
    const possible: Found[] = []
    for (const { seq, keys } of rows) {
      const segment = bySeq.get(seq) as Found
      if (candidates(keys, await this.#hashesOf(purge, segment.source)).length > 0) possible.push(segment)
    }
    return possible
  }

  /** Returns how many messages it removed. */
  async #rewrite(ask: Ask, purge: Purge, possible: readonly Found[]): Promise<number> {
    const all = new Set(purge.userIds)
    const late = possible.some(({ seq }) => seq >= purge.mark) ? await suppressedOf(ask, purge) : undefined
    let purged = 0
    for (const chunk of portions(possible, ({ bytes }) => Math.max(bytes, LEAST_BODY_BYTES), BODY_BYTES_AT_ONCE)) {
      const [first, last] = [(chunk[0] as Found).seq, (chunk.at(-1) as Found).seq]
      // Locks the rows, because the purge of another request may be rewriting them.
      const { rows } = await ask<SegmentToRewrite & { source: string }>(
        `SELECT seq, source, absent, keys, body, violations, routes FROM segments WHERE seq = ANY($1::bigint[]) AND seq BETWEEN $2 AND $3 ORDER BY seq FOR UPDATE`,
        [int8s(chunk.map(({ seq }) => seq)), first, last],
      )
      const rewritten: Rewritten[] = []
      for (const row of rows) {
        const users = row.seq < purge.mark ? all : late?.get(row.source)
        if (users === undefined) continue
        const possible = candidates(row.keys, await this.#hashesOf(purge, row.source))
        const left = withoutUsers({ ...row, absent: row.absent ?? [] }, possible, users)
        if (left === undefined) continue
        const { seq, source, routes } = row
        rewritten.push({ ...left, seq, source, routes, violations: withoutViolations(row.violations, left.indexes) })
        purged += left.indexes.length
      }
      if (rewritten.length === 0) continue
      await rewriteSegments(ask, rewritten)
      await dropPurged(ask, this.#context.ids, rewritten)
      await forgetHeads(
        orderChanges(ask, this.#context),
        rewritten.map(({ seq: segment, indexes }) => ({ segment, indexes })),
        this.#context.nowMs(),
      )
    }
    return purged
  }

  async #hashesOf(purge: Purge, source: string): Promise<Set<number>> {
    let hashes = purge.hashes.get(source)
    if (hashes === undefined) {
      const seed = sourceSeed(purge.sources.get(source) ?? '', await this.#context.seed())
      hashes = new Set(purge.userIds.map((userId) => userHash(userId, seed)))
      purge.hashes.set(source, hashes)
    }
    return hashes
  }
}

/** The store keeps the last rejected message for each source and code. */
async function purgeSamples(ask: Ask, { sources, userIds }: Purge): Promise<void> {
  const { rows } = await ask<{ source: string; code: string; sample: string }>(
    'SELECT source, code, last_sample AS sample FROM rejections WHERE source = ANY($1::bigint[])',
    [int8s([...sources.keys()])],
  )
  for (const { source, code, sample } of rows) {
    if (!isSampleOf(readText(sample), userIds)) continue
    // Unless another message was rejected meanwhile.
    await ask("UPDATE rejections SET last_sample = '' WHERE source = $1 AND code = $2 AND last_sample = $3", [source, code, sample])
  }
}

/** Returns the users of the request who are suppressed at the moment, per source. */
async function suppressedOf(ask: Ask, purge: Purge): Promise<Map<string, Set<string>>> {
  const { rows } = await ask<{ source: string; user_id: string }>(
    `SELECT source, user_id FROM suppressions WHERE source = ANY($1::bigint[])
       AND user_digest = ANY(ARRAY(SELECT digest_of(u) FROM unnest($2::text[]) AS u))`,
    [[...purge.sources.keys()], purge.userIds.map(writeText)],
  )
  const suppressed = new Map<string, Set<string>>()
  for (const { source, user_id } of rows) {
    const users = suppressed.get(source) ?? new Set()
    suppressed.set(source, users.add(readText(user_id)))
  }
  return suppressed
}

/** Row ids are compared as text. All have the same length, except '0'. */
function later(one: string, other: string): string {
  return one > other ? one : other
}
