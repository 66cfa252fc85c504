// Brings the schema up to date. Nodes that start at once wait for each other; each step is a transaction with its number.
// A node of the version before that is still running goes on: a step says from which version on code can work with it, and
// steps are made so that the version before can. A database that is too new for this code is refused with words.

import type { Connection } from './connection.ts'
import { SCHEMA } from './connection.ts'
import { MIGRATIONS, type Migration } from './migrations.ts'

/** What cannot be opened for a reason that a person can mend. */
export class SchemaProblem extends Error {
  override name = 'SchemaProblem'
}

/** Of all of PostgreSQL's advisory locks this one is the schema's: any fixed number. */
const LOCK = 7_311_994_520_117
const LOWEST_VERSION = 150_000
const STEP_MS = 600_000

/** How far the schema is: the steps made, and the oldest code that can use it. */
interface SchemaState {
  step: number
  worksFrom: number
}

export async function migrate(connection: Connection, migrations: readonly Migration[] = MIGRATIONS): Promise<void> {
  const ask = <T>(text: string, values: readonly string[] = []) => connection.query<T>({ text }, values, STEP_MS)
  const { rows } = await ask<{ version: string }>("SELECT current_setting('server_version_num') AS version")
  if (Number(rows[0]?.version) < LOWEST_VERSION) {
    throw new SchemaProblem('PostgreSQL is too old: version 15 or later is needed.')
  }
  // The usual start changes nothing and takes no lock.
  const found = await stateOf(connection)
  refuseNewer(found, migrations.length)
  if (found.step >= migrations.length) return
  await ask('SET statement_timeout = 0')
  await ask('SELECT pg_advisory_lock($1)', [String(LOCK)])
  try {
    await ask(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`)
    await ask(`CREATE TABLE IF NOT EXISTS ${SCHEMA}.schema_version (one boolean PRIMARY KEY DEFAULT true CHECK (one), step integer NOT NULL, works_from integer NOT NULL)`)
    const state = await stateOf(connection)
    refuseNewer(state, migrations.length)
    for (let step = state.step + 1; step <= migrations.length; step++) {
      const { sql, worksFrom } = migrations[step - 1] as Migration
      await ask('BEGIN')
      try {
        await ask(sql)
        await ask(
          'INSERT INTO schema_version (step, works_from) VALUES ($1, $2) ON CONFLICT (one) DO UPDATE SET step = excluded.step, works_from = excluded.works_from',
          [String(step), String(worksFrom)],
        )
        await ask('COMMIT')
      } catch (error) {
        await ask('ROLLBACK')
        throw error
      }
    }
  } finally {
    await ask('SELECT pg_advisory_unlock($1)', [String(LOCK)]).catch(() => {})
  }
}

async function stateOf(connection: Connection): Promise<SchemaState> {
  const { rows: tables } = await connection.query<{ there: boolean }>({ text: `SELECT to_regclass('${SCHEMA}.schema_version') IS NOT NULL AS there` })
  if (!tables[0]?.there) return { step: 0, worksFrom: 0 }
  const { rows } = await connection.query<{ step: number; works_from: number }>({ text: 'SELECT step, works_from FROM schema_version' })
  return { step: rows[0]?.step ?? 0, worksFrom: rows[0]?.works_from ?? 0 }
}

function refuseNewer({ step, worksFrom }: SchemaState, known: number): void {
  if (step > known && worksFrom > known) {
    throw new SchemaProblem(
      `The database was brought to schema ${step} by a newer version of Switchyard, and this one knows ${known}. Start the newer version.`,
    )
  }
}
