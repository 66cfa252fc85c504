// Purges: the messages of the users of deletion requests go from the segments that have them, in steps. Any node takes the next
// step of any purge, under a lock on the request's row, so that each is made once and a node that ends in the middle leaves
// nothing undone. The segments' keys are read, and only bodies that hold a message of a user are rewritten. A purged
// message leaves its place empty, so that indexes keep their meaning; what was still owed of it is cancelled when its turn comes.
//
// How far a purge goes. Everything committed before the request lies before the request's `mark`, whichever node made it, and
// is visible to every step. Without suppression the mark is the end: what comes later stays. With suppression nothing
// of the users may come in any more, but other nodes go on accepting by the configuration they know, for a second at most, and what
// they accepted so is committed a little later, under names from before and after the mark. So such a purge has a tail of TAIL_MS
// after the mark. It goes through what there is at once, and once more, from TAIL_MS before the mark to the tail's end, when the tail is
// over and no transaction that writes is left from it. In the tail only those go who are suppressed still: who was let in again
// meanwhile came back by somebody's will.

import { type PurgedContent, withoutUsers } from '../../deletions/purged-content.ts'
import { sourceSeed, userHash } from '../../encoding/fingerprint.ts'
import { candidates } from '../../encoding/segment-keys.ts'
import { int8s } from '../session/binary-arrays.ts'
import type { Ask } from '../session/database.ts'
import { Columns, statement } from '../session/row-parameters.ts'
import type { StoreContext } from '../session/store-context.ts'
import { readText, writeText } from '../session/text-columns.ts'

/** Longer than a configuration stays unknown to a node, and than what was accepted by it takes to be committed. */
const TAIL_MS = 5_000
/** As a difference of row names. */
export const TAIL = BigInt(TAIL_MS) << 21n
/** A transaction that takes longer than this is not one that accepts. */
const LONGEST_ACCEPT_MS = 60_000

const SEGMENTS_PER_STEP = 1_000
const MESSAGES_PER_STEP = 200_000
const BODY_BYTES_PER_STEP = 8 * 1024 * 1024
/** Bodies that are read and rewritten at once: between them the event loop goes on. */
const BODY_BYTES_AT_ONCE = 512 * 1024
const BODIES_AT_ONCE = 100

const SERVER_MS = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
/** Of a row of deletions: whether its tail is over. */
const TAIL_IS_OVER = `(NOT suppress OR (${SERVER_MS} > purge_end >> 21 AND (${SERVER_MS} > (purge_end >> 21) + ${LONGEST_ACCEPT_MS}
  OR NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
    AND backend_xid IS NOT NULL AND (extract(epoch FROM xact_start) * 1000)::bigint <= purge_end >> 21))))`
/** Of a row of deletions: what there is has been gone through. */
const IS_AT_TAIL = `(suppress AND purge_cursor >= purge_end - ${2n * TAIL})`

/** What is the same in all its steps. */
interface Purge {
  num: string
  end: string
  mark: string
  /** Where it begins again when its tail is over. */
  again: string
  userIds: readonly string[]
  sources: ReadonlyMap<string, string>
  /** By source, the hashes that the keys of the users' messages carry: made when the first segment of a source is met. */
  hashes: Map<string, Set<number>>
  /** Whether this is the time it is gone through to its end. */
  last: boolean
}

interface Step {
  /** Up to where it went. */
  position: string
  over: boolean
}

interface Found {
  seq: string
  source: string
  bytes: number
}

export class Purging {
  readonly #context: StoreContext
  readonly #running = new Set<string>()

  constructor(context: StoreContext) {
    this.#context = context
  }

  /** The end of a new request's purge. To be asked as late as can be in its transaction: the tail begins when others can know. */
  static async end(ask: Ask, now: string, suppress: boolean): Promise<string> {
    // Clocks differ, and another node's last segment may have a later name than a request that came after it.
    const { rows } = await ask<{ mark: string }>('SELECT greatest($1::bigint, max(seq) + 1) AS mark FROM segments WHERE seq >= $1', [now])
    const mark = BigInt(rows[0]?.mark ?? now)
    return String(suppress ? mark + TAIL : mark)
  }

  /** Continues purges that can go on; costs one small query if there are none. Returns those that are not over. */
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
      // Another node is at it, or it is over.
      if (step === null || step.over) return
      position = step.position
    }
  }

  async #read(num: string): Promise<Purge | undefined> {
    const { database } = this.#context
    const { rows } = await database.query<{
      suppress: boolean
      every_source: boolean
      user_ids: string
      sources: string
      purge_end: string
      last: boolean
    }>(
      `SELECT suppress, every_source, user_ids, sources, purge_end, ${TAIL_IS_OVER} AS last FROM deletions WHERE num = $1 AND purge_cursor < purge_end`,
      [num],
    )
    const [row] = rows
    if (row === undefined) return undefined
    // What came by a source stays when the source is deleted, until it is as old as the rest.
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
    const taken = possible.filter((segment, at) => (bytes += segment.bytes) <= BODY_BYTES_PER_STEP || at === 0)
    const purged = await this.#rewrite(ask, purge, taken)
    const isCut = taken.length < possible.length
    const over = found.length < SEGMENTS_PER_STEP && within.length === found.length && !isCut
    const reached = over ? purge.end : ((isCut ? taken : within).at(-1)?.seq ?? purge.end)
    const cursor = purge.last ? reached : later(rows[0].cursor, reached < purge.again ? reached : purge.again)
    await ask('UPDATE deletions SET purge_cursor = $2, purged = purged + $3 WHERE num = $1', [purge.num, cursor, purged])
    return { position: reached, over }
  }

  /** Those whose keys have a user's hash. */
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
    for (let at = 0; at < possible.length; ) {
      let bytes = 0
      const chunk: Found[] = []
      while (at < possible.length && chunk.length < BODIES_AT_ONCE && (chunk.length === 0 || bytes < BODY_BYTES_AT_ONCE)) {
        const next = possible[at++] as Found
        bytes += next.bytes
        chunk.push(next)
      }
      const [first, last] = [(chunk[0] as Found).seq, (chunk.at(-1) as Found).seq]
      // Another request's purge may be rewriting the same ones.
      const { rows } = await ask<{ seq: string; source: string; absent: number[] | null; keys: Buffer; body: Buffer }>(
        `SELECT seq, source, absent, keys, body FROM segments WHERE seq = ANY($1::bigint[]) AND seq BETWEEN $2 AND $3 ORDER BY seq FOR UPDATE`,
        [int8s(chunk.map(({ seq }) => seq)), first, last],
      )
      const rewritten: (PurgedContent & { seq: string })[] = []
      for (const row of rows) {
        const users = row.seq < purge.mark ? all : late?.get(row.source)
        if (users === undefined) continue
        const possible = candidates(row.keys, await this.#hashesOf(purge, row.source))
        const left = withoutUsers({ ...row, absent: row.absent ?? [] }, possible, users)
        if (left === undefined) continue
        rewritten.push({ ...left, seq: row.seq })
        purged += left.indexes.length
      }
      if (rewritten.length > 0) await ask(REWRITE, REWRITE.values({ segments: rewritten, first, last }))
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

/** What the rows were before is in the server's files until it vacuums them. */
const REWRITE = statement({
  parameters: {
    segments: new Columns<PurgedContent & { seq: string }>({
      seq: ['bigint', ({ seq }) => seq],
      keys: ['bytea', ({ keys }) => keys],
      body: ['bytea', ({ body }) => body],
      is_empty: ['boolean', ({ isEmpty }) => isEmpty],
    }),
    first: 'value',
    last: 'value',
  },
  text: ({ segments, first, last }) => `
    UPDATE segments s SET keys = u.keys, body = u.body, ip = CASE WHEN u.is_empty THEN NULL ELSE s.ip END,
      trace = CASE WHEN u.is_empty THEN NULL ELSE s.trace END
    FROM ${segments.as('u')} WHERE s.seq = u.seq AND s.seq BETWEEN ${first} AND ${last}`,
})

/** By source, the request's users whose messages are dropped now. */
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

/** Names are compared as texts, which have the same length but for 0. */
function later(one: string, other: string): string {
  return one > other ? one : other
}
