// What an event costs the database: round trips as the node counts them, and rows written as the server counts them.

import type { Postgres } from '../service/environment/databases.ts'
import { createFolder, pause, removeFolder } from '../service/environment/processes.ts'
import { CONNECTIONS, createTraffic } from '../service/environment/traffic.ts'
import { deliver } from '../service/scenarios/delivery.ts'
import { startNodes } from './programs.ts'

export interface TripsRun {
  eventsPerRequest: number
  events: number
  eventsPerSecond: number
  tripsPerEvent: number
  commitsPerEvent: number
  inserted: number
  updated: number
  deleted: number
  walBytesPerEvent: number
}

const WARM_UP_EVENTS = 3_000
/** The server updates its statistics about once a second. */
const TOLD_AFTER_MS = 1_500

export async function measureTrips(postgres: Postgres, events: number, eventsPerRequest: number): Promise<TripsRun> {
  const folder = createFolder()
  const traffic = await createTraffic()
  const load = { eventsPerRequest, connections: CONNECTIONS }
  try {
    const running = await startNodes(postgres, 1, { folder, receiverUrl: traffic.receiverUrl })
    try {
      await deliver(traffic, running, WARM_UP_EVENTS, load)
      const before = await facts()
      const { sent, endedAtMs } = await deliver(traffic, running, events, load)
      const after = await facts()
      const per = (name: keyof typeof after): number => (after[name] - before[name]) / events
      return {
        eventsPerRequest,
        events,
        eventsPerSecond: events / ((endedAtMs - sent.startedAtMs) / 1_000),
        tripsPerEvent: per('trips'),
        commitsPerEvent: per('commits'),
        inserted: per('inserted'),
        updated: per('updated'),
        deleted: per('deleted'),
        walBytesPerEvent: per('walBytes'),
      }
    } finally {
      await running.stop()
    }

    async function facts() {
      const trips = await Promise.all(running.nodes.map((node) => node.metric('switchyard_store_round_trips_total')))
      await pause(TOLD_AFTER_MS)
      const [row] = await postgres.query(`SELECT
        (SELECT sum(n_tup_ins) FROM pg_stat_user_tables WHERE schemaname = 'switchyard')::float8 AS inserted,
        (SELECT sum(n_tup_upd) FROM pg_stat_user_tables WHERE schemaname = 'switchyard')::float8 AS updated,
        (SELECT sum(n_tup_del) FROM pg_stat_user_tables WHERE schemaname = 'switchyard')::float8 AS deleted,
        (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())::float8 AS commits,
        (pg_current_wal_lsn() - '0/0')::float8 AS wal`)
      const number = (name: string): number => Number(row?.[name])
      return {
        trips: trips.reduce((sum, count) => sum + count, 0),
        inserted: number('inserted'),
        updated: number('updated'),
        deleted: number('deleted'),
        commits: number('commits'),
        walBytes: number('wal'),
      }
    }
  } finally {
    await traffic.close()
    removeFolder(folder)
  }
}
