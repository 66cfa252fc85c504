// Compares a store with many deliveries pending for a dead destination with an empty store: the CPU time of an event for a healthy destination, the time from
// kill -9 to ready, the response times of the dashboard's requests, the size of the store and the memory of the service.

import { existsSync, mkdirSync, readFileSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { type Backlog, createBacklog, type StorePlace, sqliteIn } from '../environment/backlog.ts'
import { type Postgres, startPostgres } from '../environment/databases.ts'
import { nowMs } from '../environment/http-message.ts'
import { peakRssBytes } from '../environment/process-stats.ts'
import { createFolder, pause } from '../environment/processes.ts'
import type { RoundRunner } from '../environment/rounds.ts'
import { type Service, startNode } from '../environment/service.ts'
import type { Traffic } from '../environment/traffic.ts'
import { type CostRound, measureCostAt, untilQuiet } from './cpu-cost.ts'
import { measureStarts, type StartTimes } from './dead-destination.ts'
import { measurePages, type PageTime } from './page-times.ts'

export const STORES = ['sqlite', 'postgres'] as const
export type StoreKind = (typeof STORES)[number]

export interface LargeBacklogOptions {
  store: StoreKind
  events: number
  eventsPerRequest: number
  rounds: number
  measuredEvents: number
  warmUpEvents: number
  /** The filled store is kept in this folder, and used again by the next run. */
  keep: string | undefined
  /** The dead destination is ordered, and its events are of so many users. */
  keys: number | undefined
}

export interface LargeBacklogRun {
  store: StoreKind
  backlog: Backlog
  /** Key 0 is the store without a backlog. */
  cost: CostRound[]
  starts: StartTimes | undefined
  pages: PageTime[]
  /** While the pages were read. */
  peakRssBytes: number
}

/** Estimates, rounded up, for events in large requests. Uncompressed events in small requests need about 1,100 and 1,400 bytes each. */
const BYTES_PER_EVENT = { sqlite: 260, postgres: 700 }
const BYTES_PER_EVENT_IN_SMALL_REQUESTS = { sqlite: 1_100, postgres: 1_600 }
/** PostgreSQL keeps up to max_wal_size of WAL. */
const MORE_BYTES = { sqlite: 1e9, postgres: 9e9 }
const LARGE_REQUEST = 100
const POSTGRES_WARM_UP_EVENTS = 150_000
const DELIVERED_LIMIT_MS = 120_000
const KEPT_FILE = 'backlog.json'

type CreatePlace = (folder: string) => Promise<StorePlace>
/** A full vacuum of what was filled may run after the fill. */
const CALM_AFTER_FILL_MS = 600_000

export async function measureLargeBacklog(
  traffic: Traffic,
  runner: RoundRunner,
  options: LargeBacklogOptions,
): Promise<LargeBacklogRun | undefined> {
  const { store, events, rounds, measuredEvents, warmUpEvents, keep } = options
  const servers: Postgres[] = []
  const createPlace = async (folder: string): Promise<StorePlace> => {
    if (store === 'sqlite') return sqliteIn(folder)
    // A server for each store, so that vacuuming the backlog does not count as work of the empty store.
    const server = await startPostgres({ folder })
    servers.push(server)
    return postgresOn(server, folder)
  }
  try {
    const none = await createBacklog(traffic, 'pending', 0, { place: await createPlace(createFolder()) })
    const filled =
      (await keptBacklog(traffic, keep, createPlace)) ??
      (await runner.attempt('backlog', `fill ${events} on ${store}`, () => fill(traffic, options, createPlace)))
    if (!filled) return undefined
    if (servers.length > 0) await untilQuiet(() => servers.flatMap((server) => server.pids()), CALM_AFTER_FILL_MS)
    // Until each page of the index of message ids was written once since the last checkpoint, PostgreSQL logs the whole page with a change.
    if (store === 'postgres')
      for (const { place, healthyId } of [none, filled])
        await measureCostAt(traffic, place, healthyId, POSTGRES_WARM_UP_EVENTS, warmUpEvents)
    const costing = [none, filled].map(({ place, healthyId, events: pending }) => ({
      key: pending,
      measure: () => measureCostAt(traffic, place, healthyId, measuredEvents, warmUpEvents),
    }))
    const cost = await runner.run('backlog', 'pending', rounds, costing)
    const starts = await runner.attempt('backlog', 'starts', () => measureStarts(traffic, none.place, filled.place, rounds))
    const read = await runner.attempt('backlog', 'pages', async () => {
      const service = await filled.place.start()
      try {
        await untilQuiet(() => [service.pid])
        const pages = await measurePages(service, filled)
        // Otherwise the next run with this store would receive events of this one.
        await untilDelivered(service, filled.healthyId)
        return { pages, peak: peakRssBytes(service.pid) }
      } finally {
        await service.stop()
      }
    })
    return { store, backlog: filled, cost, starts, pages: read?.pages ?? [], peakRssBytes: read?.peak ?? 0 }
  } finally {
    for (const server of servers) await server.stop()
  }
}

async function fill(traffic: Traffic, options: LargeBacklogOptions, createPlace: CreatePlace): Promise<Backlog> {
  const { events, eventsPerRequest, keep, keys } = options
  requireSpace(options)
  if (keep !== undefined) mkdirSync(keep, { recursive: true })
  const startedAtMs = nowMs()
  const onProgress = (filled: number) => console.error(progressText(filled, events, nowMs() - startedAtMs))
  const place = await createPlace(keep ?? createFolder())
  const backlog = await createBacklog(traffic, 'pending', events, { place, eventsPerRequest, onProgress, keys })
  if (keep !== undefined) writeFileSync(join(keep, KEPT_FILE), JSON.stringify({ ...backlog, place: undefined }))
  return backlog
}

/** The healthy destination gets the address of this run's receiver. */
async function keptBacklog(traffic: Traffic, keep: string | undefined, createPlace: CreatePlace): Promise<Backlog | undefined> {
  if (keep === undefined || !existsSync(join(keep, KEPT_FILE))) return undefined
  const place = await createPlace(keep)
  const kept: Backlog = { ...JSON.parse(readFileSync(join(keep, KEPT_FILE), 'utf8')), place }
  const service = await place.start()
  await service.setUrl(kept.healthyId, `${traffic.receiverUrl}/`)
  await service.stop()
  return kept
}

async function untilDelivered(service: Service, destinationId: string): Promise<void> {
  const limit = nowMs() + DELIVERED_LIMIT_MS
  const isPending = async () => (await service.ledger()).some((line) => line.destinationId === destinationId && line.pending > 0)
  while (await isPending()) {
    if (nowMs() > limit) throw new Error('events of a killed service were not delivered in time')
    await pause(100)
  }
}

function postgresOn(server: Postgres, folder: string): StorePlace {
  return {
    folder,
    start: () => startNode(server.connectionString, folder),
    databasePids: () => server.pids(),
    async bytes() {
      const [row] = await server.query('SELECT pg_database_size(current_database()) AS bytes')
      return Number(row?.bytes)
    },
  }
}

function requireSpace({ store, events, eventsPerRequest, keep = tmpdir() }: LargeBacklogOptions): void {
  const perEvent = (eventsPerRequest < LARGE_REQUEST ? BYTES_PER_EVENT_IN_SMALL_REQUESTS : BYTES_PER_EVENT)[store]
  const needed = events * perEvent + MORE_BYTES[store]
  const { bavail, bsize } = statfsSync(existsSync(keep) ? keep : dirname(resolve(keep)))
  const text = `${gigabytes(needed)} for ${events} events on ${store}; the disk of ${keep} has ${gigabytes(bavail * bsize)} free`
  console.error(`backlog  needs about ${text}`)
  if (bavail * bsize < needed)
    throw new Error(`not enough disk space: needs about ${text}. Set TMPDIR or --keep to a folder on a larger disk.`)
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`
}

function progressText(filled: number, events: number, tookMs: number): string {
  const perSecond = filled / (tookMs / 1_000)
  const left = Math.ceil((events - filled) / perSecond / 60)
  return `filling  ${filled.toLocaleString('en')} of ${events.toLocaleString('en')}  ${perSecond.toFixed(0)} events/s  about ${left} min left`
}
