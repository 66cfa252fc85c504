// What the server says of itself, for diagnostics: its version, its clock, how many connections it has left, and the standbys.
// Only read. What it hides from this login is left out.

import type { ServerFacts } from '../../store.ts'
import type { Database } from './database.ts'

interface FactsRow {
  version: string
  now_ms: number
  used: number
  max: number
  synchronous: string
}

interface StandbyRow {
  name: string | null
  state: string | null
  sync: string | null
  lag_ms: number | null
}

const DEADLINE_MS = 5_000

export async function serverFacts(database: Database): Promise<ServerFacts> {
  const startedAtMs = Date.now()
  const { rows } = await database.query<FactsRow>(
    `SELECT current_setting('server_version') AS version, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms,
       (SELECT count(*)::integer FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
       current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer AS max,
       current_setting('synchronous_standby_names') AS synchronous`,
    [],
    DEADLINE_MS,
  )
  const endedAtMs = Date.now()
  const { rows: standbys } = await database.query<StandbyRow>(
    `SELECT application_name AS name, state, sync_state AS sync, (extract(epoch FROM replay_lag) * 1000)::bigint AS lag_ms
     FROM pg_stat_replication ORDER BY application_name`,
    [],
    DEADLINE_MS,
  )
  const row = rows[0] as FactsRow
  return {
    version: row.version,
    clockAheadMs: Math.round(row.now_ms - (startedAtMs + endedAtMs) / 2),
    connections: { used: row.used, max: row.max },
    synchronousStandbys: row.synchronous,
    standbys: standbys.map(({ name, state, sync, lag_ms }) => ({
      name: name ?? '',
      state: state ?? 'unknown',
      sync: sync ?? 'unknown',
      lagMs: lag_ms,
    })),
  }
}
