// An empty database that takes over the rows of a SQLite file, in transactions of some thousand, each with how far it has come:
// killed at any moment, it goes on from there. No node works here meanwhile: see moving-state.ts. What rows look like is told by
// whoever brings them: see store-migration.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import type { LedgerRow } from '../../store.ts'
import { writeAudit } from '../rows/audit-rows.ts'
import { readLedger, recount } from '../rows/recount.ts'
import { describeAddress, parsePostgresAddress } from '../session/address.ts'
import { ADVISORY_LOCKS } from '../session/advisory-locks.ts'
import type { Connection } from '../session/connection.ts'
import { type Ask, Database } from '../session/database.ts'
import { plainColumns, statement } from '../session/row-parameters.ts'
import { ARRIVING, type ArrivingRow, type ArrivingTable, insertion } from './arriving-columns.ts'
import { RowIds } from './ids.ts'
import { migrate } from './migrate.ts'
import type { PartitionedTable } from './migrations.ts'
import { forgetMoving, type MovingState, readMoving, writeMoving } from './moving-state.ts'
import { createPartitions, preparePartitions } from './partitions.ts'

const STATEMENT_MS = 600_000

/** What a person can mend. */
export class ArrivalProblem extends Error {
  override name = 'ArrivalProblem'
}

export interface MessageKey {
  day: number
  key: Uint8Array
  segment: string
}

export class Arriving {
  /** Without a login. */
  readonly place: string
  readonly #database: Database
  readonly #guard: Connection

  private constructor(place: string, database: Database, guard: Connection) {
    this.place = place
    this.#database = database
    this.#guard = guard
  }

  /** With the schema up to date. Only looking: none is made, and undefined says that there is none. */
  static async open(
    url: string,
    { secretBox, onlyLook = false }: { secretBox: SecretBox; onlyLook?: boolean },
  ): Promise<Arriving | undefined> {
    const address = parsePostgresAddress(url)
    const database = new Database({ address, connections: 2, statementMs: STATEMENT_MS })
    try {
      const guard = await database.connect(STATEMENT_MS)
      try {
        if (onlyLook) {
          const { rows } = await guard.query<{ there: boolean }>("SELECT to_regclass('switchyard.stats') IS NOT NULL AS there")
          if (!rows[0]?.there) {
            guard.destroy()
            database.close()
            return undefined
          }
        } else await migrate(guard, { secretBox })
        const { rows } = await guard.query<{ mine: boolean }>('SELECT pg_try_advisory_lock($1) AS mine', [ADVISORY_LOCKS.arrival])
        if (!rows[0]?.mine) throw new ArrivalProblem('Another switchyard migrate-store is at work on this database.')
        return new Arriving(describeAddress(address), database, guard)
      } catch (error) {
        guard.destroy()
        throw error
      }
    } catch (error) {
      database.close()
      throw error
    }
  }

  state(): Promise<MovingState | undefined> {
    return readMoving(this.#database.ask)
  }

  /** How far the server's clock is behind a time, in milliseconds. */
  async behindMs(ms: number): Promise<number> {
    const { rows } = await this.#database.query<{ now_ms: number }>(
      'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms',
    )
    return ms - (rows[0]?.now_ms ?? 0)
  }

  /** What is in the way, in words; undefined when nothing is. */
  async obstacle(): Promise<string | undefined> {
    const { rows } = await this.#database.query<{ name: string }>('SELECT name FROM nodes WHERE expires_at > now() ORDER BY num')
    if (rows.length > 0) {
      return `Nodes run on this database: ${rows.map(({ name }) => name).join(', ')}. Stop all of them first; one that was killed counts as running for ten seconds.`
    }
    for (const table of Object.keys(ARRIVING)) {
      const { rows: found } = await this.#database.query(
        `SELECT 1 FROM ${table} WHERE ${table === 'settings' ? "name <> 'moved_from_sqlite'" : 'true'} LIMIT 1`,
      )
      if (found.length > 0) {
        return 'The database is not empty: a store of Switchyard is in it. Give an empty one, or, if nothing in it is of use, drop the schema first: DROP SCHEMA switchyard CASCADE;'
      }
    }
    return undefined
  }

  /** From nothing. What an earlier move left is taken away. */
  async begin(state: MovingState, before: MovingState | null): Promise<void> {
    await this.#database.transaction(async (ask) => {
      if (before !== null) await empty(ask)
      await forgetMoving(ask)
      if (!(await writeMoving(ask, state, null))) throw new ArrivalProblem(OVERTAKEN)
    })
    // After it is written that a move goes on: a node that starts looks for that after it is among these.
    const obstacle = await this.obstacle()
    if (obstacle === undefined) return
    await this.#database.transaction(forgetMoving)
    throw new ArrivalProblem(obstacle)
  }

  /** So that what is old enough is dropped as it is for what was accepted here. */
  async partition(table: PartitionedTable, days: readonly number[]): Promise<void> {
    if (days.length > 0) await createPartitions(this.#database, table, days)
  }

  async write(
    table: ArrivingTable,
    rows: readonly ArrivingRow[],
    keys: readonly MessageKey[],
    state: MovingState,
    before: MovingState,
  ): Promise<void> {
    const { text, values } = insertion(table, rows)
    await this.#database.transaction(async (ask) => {
      if (!(await writeMoving(ask, state, before))) throw new ArrivalProblem(OVERTAKEN)
      await ask(text, values)
      if (keys.length > 0) await ask(INSERT_KEYS, INSERT_KEYS.values({ keys }))
    })
  }

  async step(state: MovingState, before: MovingState): Promise<void> {
    if (!(await writeMoving(this.#database.ask, state, before))) throw new ArrivalProblem(OVERTAKEN)
  }

  async count(table: ArrivingTable): Promise<number> {
    const { rows } = await this.#database.query<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)
    return rows[0]?.count ?? 0
  }

  ledger(): Promise<LedgerRow[]> {
    return readLedger(this.#database.ask)
  }

  recount(): Promise<LedgerRow[]> {
    return recount(this.#database.ask)
  }

  /** Nodes may start from now on, with the key of this id. */
  async end(state: MovingState, before: MovingState, secretKeyId: string): Promise<void> {
    await preparePartitions(this.#database)
    // The server knows nothing of what came, and would guess.
    await this.#database.query(`ANALYZE ${[...Object.keys(ARRIVING), 'message_keys'].join(', ')}`)
    const ids = new RowIds(0, () => Date.now())
    await this.#database.transaction(async (ask) => {
      if (!(await writeMoving(ask, state, before))) throw new ArrivalProblem(OVERTAKEN)
      await ask('UPDATE configuration SET secret_key = $1', [secretKeyId])
      const after = { from: state.from, rows: state.rows }
      await writeAudit(
        ask,
        ids,
        { actor: { id: 'maintenance', name: 'maintenance' }, action: 'store.migrate', subject: null, before: null, after },
        Date.now(),
      )
    })
  }

  close(): void {
    this.#guard.destroy()
    this.#database.close()
  }
}

const OVERTAKEN = 'Another switchyard migrate-store has gone on with this move.'

/** A message that came again after a day is under both days. */
const INSERT_KEYS = statement({
  parameters: { keys: plainColumns({ day: 'integer', key: 'uuid', segment: 'bigint' }) },
  text: ({ keys }) => `INSERT INTO message_keys (${keys.names}) SELECT * FROM ${keys.unnest} ON CONFLICT DO NOTHING`,
})

async function empty(ask: Ask): Promise<void> {
  await ask(`TRUNCATE ${[...Object.keys(ARRIVING), 'message_keys', 'deltas', 'replay_outcomes'].join(', ')}`)
}
