// Facts about the PostgreSQL server for diagnostics: version, clock, connections in use, and standbys. Read-only. What this
// login has no permission to see is left out.

import type { ServerFacts } from '../../store.ts'
import type { Database } from './database.ts'

const DEADLINE_MS = 5_000

export async function serverFacts(database: Database): Promise<ServerFacts> {
  const startedAtMs = Date.now()
  const { rows } = await database.query<{ version: string; nowMs: number; used: number; max: number; synchronous: string }>(
    `SELECT current_setting('server_version') AS version, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "nowMs",
       (SELECT count(*)::integer FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
       current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer AS max,
       current_setting('synchronous_standby_names') AS synchronous`,
    [],
    DEADLINE_MS,
  )
  const endedAtMs = Date.now()
  const { rows: standbys } = await database.query<ServerFacts['standbys'][number]>(
    `SELECT coalesce(application_name, '') AS name, coalesce(state, 'unknown') AS state, coalesce(sync_state, 'unknown') AS sync,
       (extract(epoch FROM replay_lag) * 1000)::bigint AS "lagMs"
     FROM pg_stat_replication ORDER BY application_name`,
    [],
    DEADLINE_MS,
  )
  const { version, nowMs, used, max, synchronous } = rows[0] as (typeof rows)[number]
  return {
    version,
    clockAheadMs: Math.round(nowMs - (startedAtMs + endedAtMs) / 2),
    connections: { used, max },
    synchronousStandbys: synchronous,
    standbys,
  }
}
