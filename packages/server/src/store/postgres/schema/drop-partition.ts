// Drops one partition. If its whole day is before the cutoff, its rows are counted first, without a lock, because no rows are
// added to it any more. Then one transaction locks the parent table, moves the rows that must be kept to the table `…_rest`, adds the
// counts to the archive, and drops the partition. Others wait for that transaction, so it must not read much. If many rows of
// a day must be kept, or rows have no partition of their own, they are deleted row by row.
// Invariant: rows and archive together give the same counts at every moment: see tables/recount.ts.

import { type Ask, transact } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'
import { COUNTS } from '../tables/recount.ts'
import { WITH_HOLDERS } from '../tables/shipment-holders.ts'
import { PARTITIONED, type PartitionedTable } from './migrations.ts'

/** How long other statements may have to queue behind a lock request that is not granted. */
const LOCK_TIMEOUT_MS = 150
/** Autovacuum releases a table after one second. No other statement queues behind the lock that is requested with this timeout. */
const VACUUM_TIMEOUT_MS = 3_000
/** The most that is moved while other statements wait. */
const MOVED_ROWS = 1_000
const MOVED_BYTES = 16 * 2 ** 20
const COUNTED_PER_STEP = 20_000
const DROPPED_PER_STEP = 1_000

const STATES = ['owed', 'delivered', 'failed', 'expired', 'cancelled'] as const

/** The counts of one destination. */
type Counts = { destination: string } & Record<(typeof STATES)[number], number>

const COUNTED: Partial<Record<PartitionedTable, (typeof COUNTS)['segments']>> = COUNTS

const ARCHIVE = `INSERT INTO ledger_archive AS l (destination, ${STATES.join(', ')})`
const ADD = `ON CONFLICT (destination) DO UPDATE SET ${STATES.map((state) => `${state} = l.${state} + excluded.${state}`).join(', ')}`
const ARCHIVE_COUNTS = statement({
  parameters: {
    counts: plainColumns({
      destination: 'bigint',
      owed: 'bigint',
      delivered: 'bigint',
      failed: 'bigint',
      expired: 'bigint',
      cancelled: 'bigint',
    }),
  },
  text: ({ counts }) => `${ARCHIVE} SELECT * FROM ${counts.unnest} ${ADD}`,
})

export class PartitionDropper {
  readonly #ask: Ask
  readonly #cutoff: string
  readonly #since: string
  /** SQL conditions for old rows that must be kept. */
  readonly #keep: Record<PartitionedTable, string>

  /** `since`: replays that were not pinned yet have later row ids than this. */
  constructor(ask: Ask, cutoff: string, since: string) {
    this.#ask = ask
    this.#cutoff = cutoff
    this.#since = since
    const pinned = (column: string): string => `EXISTS (SELECT 1 FROM pinned WHERE pinned.segment = g.${column})`
    // A row that was created by a node whose clock is behind may belong to a segment after the cutoff.
    const byRow = `(g.segment >= ${cutoff} OR ${pinned('segment')})`
    this.#keep = {
      segments: pinned('seq'),
      attempts: byRow,
      failures: byRow,
      replays: byRow,
      repeats: pinned('segment'),
      message_keys: 'false',
    }
  }

  /** Counts the rows of the partition. The returned function drops it; it can be called again after a lock timeout. */
  async dayOf(table: PartitionedTable, partition: string): Promise<() => Promise<boolean>> {
    const kept = await this.#kept(table, partition)
    if (kept === null) return this.rowsOf(table, partition, null)
    if (table === 'attempts') await this.#keepFinals(partition, null)
    const counts = await this.#count(table, partition)
    const byRows = this.rowsOf(table, partition, null)
    let isTooMuch = false
    return async () => {
      if (isTooMuch) return byRows()
      isTooMuch = !(await transact(this.#ask, () => this.#dropWhole(table, partition, kept, counts)))
      return !isTooMuch
    }
  }

  /** Returns a function that drops some of the rows before a key, or of all rows if `below` is null. It resolves to true when none are left. */
  rowsOf(table: PartitionedTable, partition: string, below: string | null): () => Promise<boolean> {
    const key = PARTITIONED[table]
    let from = '0'
    return async () => {
      const range = await this.#range(table, partition, from, below, DROPPED_PER_STEP)
      if (range === null) return true
      if (table === 'message_keys') await this.#dropKeys(partition, range.below)
      else {
        const goes = `g.${key} >= ${range.from} AND g.${key} < ${range.below} AND NOT ${this.#keep[table]}`
        const { rows } = await this.#ask(`SELECT 1 FROM ${partition} g WHERE ${goes} LIMIT 1`)
        if (rows.length > 0) await transact(this.#ask, () => this.#dropRows(table, partition, goes))
        from = range.below
      }
      return false
    }
  }

  async #dropRows(table: PartitionedTable, partition: string, goes: string): Promise<void> {
    if (table === 'segments') {
      await this.#makeVacuumYield(partition)
      await this.#ask(`LOCK TABLE ONLY ${partition} IN ACCESS EXCLUSIVE MODE`)
      await this.#pinNewReplays()
    }
    if (table === 'attempts') await this.#keepFinals(partition, goes)
    const counted = COUNTED[table]
    if (counted === undefined) await this.#ask(`DELETE FROM ${partition} g WHERE ${goes}`)
    else
      await this.#ask(
        `WITH gone AS (DELETE FROM ${partition} g WHERE ${goes} RETURNING ${counted.columns}) ${ARCHIVE} ${counted.select('gone')} ${ADD}`,
      )
  }

  /** Returns false if too many rows would have to be moved while other statements wait. */
  async #dropWhole(
    table: PartitionedTable,
    partition: string,
    kept: readonly string[],
    counts: ReadonlyMap<string, Counts>,
  ): Promise<boolean> {
    const ask = this.#ask
    await this.#makeVacuumYield(partition, `${table}_rest`)
    await ask(`LOCK TABLE ONLY ${table} IN ACCESS EXCLUSIVE MODE`)
    await ask(`LOCK TABLE ONLY ${partition}, ONLY ${table}_rest IN ACCESS EXCLUSIVE MODE`)
    let moved = kept
    if (table === 'segments' && (await this.#pinNewReplays())) {
      const now = await this.#kept(table, partition)
      if (now === null) return false
      moved = now
    }
    await ask(`ALTER TABLE ${table} DETACH PARTITION ${partition}`)
    const counted = COUNTED[table]
    if (moved.length > 0) {
      const those = `(SELECT * FROM ${partition} g WHERE g.${PARTITIONED[table]} = ANY('{${moved.join()}}'::bigint[]) AND ${this.#keep[table]}) AS kept`
      if (counted) {
        const { rows } = await ask<Counts>(counted.select(those))
        await this.#archive(sum(counts, rows, -1))
      }
      await ask(`INSERT INTO ${table}_rest SELECT * FROM ${those}`)
    } else if (counted) await this.#archive(counts)
    await ask(`DROP TABLE ${partition}`)
    return true
  }

  /** Only autovacuum can hold a lock that conflicts with this one, and it stops when another session waits for it. */
  async #makeVacuumYield(...tables: string[]): Promise<void> {
    await this.#ask(`SET LOCAL lock_timeout = ${VACUUM_TIMEOUT_MS}`)
    await this.#ask(`LOCK TABLE ${tables.map((table) => `ONLY ${table}`).join()} IN SHARE UPDATE EXCLUSIVE MODE`)
    await this.#ask(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`)
  }

  /**
   * A transaction that creates a replay has locked the segment it reads: it has ended by now, or it will find the segment gone. Only replays
   * created since all shipments were read are checked, which is fast. Returns true if there were any.
   */
  async #pinNewReplays(): Promise<boolean> {
    const { count } = await this.#ask(
      `INSERT INTO pinned SELECT DISTINCT segment FROM replays
       WHERE origin > $1 AND segment < $2 AND (state IS NULL OR state = 'retrying') ON CONFLICT DO NOTHING`,
      [this.#since, this.#cutoff],
    )
    const young = BigInt(this.#cutoff) > BigInt(this.#since) ? await this.#pinYoung() : 0
    return count + young > 0
  }

  /**
   * Only a wrong clock sets a cutoff this late. Segments with row ids before the cutoff may have been committed after all shipments
   * were read. Their shipments were committed with them, so they are read here; under the lock no such transaction is in progress.
   */
  async #pinYoung(): Promise<number> {
    const { count } = await this.#ask(
      `${WITH_HOLDERS}
       INSERT INTO pinned SELECT DISTINCT (part->>1)::bigint
         FROM (SELECT holder FROM holders UNION ALL SELECT 0) h JOIN shipments s ON s.holder = h.holder AND s.id > $1
         CROSS JOIN jsonb_array_elements(s.parts::jsonb) AS part WHERE (part->>1)::bigint < $2
       UNION SELECT segment FROM quarantine WHERE segment > $1 AND segment < $2 ON CONFLICT DO NOTHING`,
      [this.#since, this.#cutoff],
    )
    return count
  }

  /** Returns the keys of the rows that must be kept, or null if they are too many to be moved. */
  async #kept(table: PartitionedTable, partition: string): Promise<string[] | null> {
    const key = PARTITIONED[table]
    const kept = new Set<string>()
    if (table === 'message_keys') return []
    if (table === 'segments') {
      const { rows } = await this.#ask<{ key: string; bytes: number }>(
        `SELECT seq AS key, octet_length(body) AS bytes FROM ${partition} g WHERE seq IN (SELECT segment FROM pinned) LIMIT ${MOVED_ROWS + 1}`,
      )
      if (rows.length > MOVED_ROWS || rows.reduce((bytes, row) => bytes + row.bytes, 0) > MOVED_BYTES) return null
      return rows.map((row) => row.key)
    }
    for (let from = '0'; ; ) {
      const range = await this.#range(table, partition, from, null, COUNTED_PER_STEP)
      if (range === null) return [...kept]
      const { rows } = await this.#ask<{ key: string }>(
        `SELECT ${key} AS key FROM ${partition} g WHERE ${key} >= ${range.from} AND ${key} < ${range.below} AND ${this.#keep[table]} LIMIT ${MOVED_ROWS + 1}`,
      )
      for (const row of rows) kept.add(row.key)
      if (rows.length > MOVED_ROWS || kept.size > MOVED_ROWS) return null
      from = range.below
    }
  }

  /** Counts in steps, because a query that takes minutes would keep the server from vacuuming rows that were settled meanwhile. */
  async #count(table: PartitionedTable, partition: string): Promise<Map<string, Counts>> {
    const counted = COUNTED[table]
    let counts = new Map<string, Counts>()
    if (counted === undefined) return counts
    const key = PARTITIONED[table]
    for (let from = '0'; ; ) {
      const range = await this.#range(table, partition, from, null, COUNTED_PER_STEP)
      if (range === null) return counts
      const those = `(SELECT * FROM ${partition} WHERE ${key} >= ${range.from} AND ${key} < ${range.below}) AS counted`
      counts = sum(counts, (await this.#ask<Counts>(counted.select(those))).rows, 1)
      from = range.below
    }
  }

  /** Returns a range of keys with about `rows` rows, as SQL literals, or null if there are no more rows. */
  async #range(
    table: PartitionedTable,
    partition: string,
    from: string,
    below: string | null,
    rows: number,
  ): Promise<{ from: string; below: string } | null> {
    const key = PARTITIONED[table]
    const end = below === null ? '9223372036854775807' : below
    const next = (offset: number) =>
      this.#ask<{ key: string | number }>(
        `SELECT ${key} AS key FROM ${partition} WHERE ${key} >= ${from} AND ${key} < ${end} ORDER BY ${key} OFFSET ${offset} LIMIT 1`,
      )
    const first = (await next(0)).rows[0]
    if (first === undefined) return null
    // In message_keys, all rows of a day have the same key.
    const later = table === 'message_keys' ? undefined : (await next(rows)).rows[0]
    return { from: String(first.key), below: later === undefined ? end : String(later.key) }
  }

  async #dropKeys(partition: string, below: string): Promise<void> {
    await this.#ask(
      `DELETE FROM ${partition} WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${partition} WHERE day < ${below} LIMIT ${DROPPED_PER_STEP}))`,
    )
  }

  /** Copies the outcome of delete messages from the attempts before those are dropped. Doing it twice does no harm. */
  async #keepFinals(partition: string, goes: string | null): Promise<void> {
    const { rows } = await this.#ask('SELECT 1 FROM deletion_targets WHERE final IS NULL AND origin <> 0 LIMIT 1')
    if (rows.length === 0) return
    await this.#ask(
      `UPDATE deletion_targets t SET final = CASE WHEN g.delivered > 0 THEN 'delivered' WHEN g.failed > 0 THEN 'failed'
         WHEN g.expired > 0 THEN 'expired' ELSE 'cancelled' END
       FROM ${partition} g WHERE g.origin = t.origin AND t.final IS NULL AND g.delivered + g.failed + g.expired + g.cancelled > 0
         ${goes === null ? '' : `AND ${goes}`}`,
    )
  }

  async #archive(counts: ReadonlyMap<string, Counts>): Promise<void> {
    if (counts.size > 0) await this.#ask(ARCHIVE_COUNTS, ARCHIVE_COUNTS.values({ counts: [...counts.values()] }))
  }
}

function sum(counts: ReadonlyMap<string, Counts>, rows: readonly Counts[], sign: 1 | -1): Map<string, Counts> {
  const total = new Map(counts)
  for (const row of rows) {
    const own = { ...row }
    for (const state of STATES) own[state] = (total.get(row.destination)?.[state] ?? 0) + sign * row[state]
    total.set(row.destination, own)
  }
  return total
}
