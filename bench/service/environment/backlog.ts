// Fills stores before anything is measured: with messages that have no destination, or with deliveries pending for a dead destination. Each
// store also has a healthy destination, on the source named `default`, for the measured traffic.

import { cpSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { closedPort } from './closed-port.ts'
import { EVENTS_PER_LARGE_REQUEST } from './events.ts'
import type { Sent } from './load-generator.ts'
import { createFolder } from './processes.ts'
import { type Service, startService } from './service.ts'
import { requireAll, type Traffic } from './traffic.ts'

export type BacklogKind = 'stored' | 'pending'

/** A SQLite store in a folder, or a PostgreSQL store on a separate server. */
export interface StorePlace {
  folder: string
  start(): Promise<Service>
  /** To measure the CPU time of the database. */
  databasePids(): number[]
  bytes(): Promise<number>
}

export interface Backlog {
  kind: BacklogKind
  events: number
  place: StorePlace
  healthyId: string
  /** Missing if nothing is pending for it. */
  deadId: string | undefined
  fillSeconds: number
  /** The size of the events as sent, as JSON. */
  dataBytes: number
  storeBytes: number
}

const FILL_CONNECTIONS = 4
/** After each step, the progress is shown. */
const EVENTS_PER_STEP = 500_000

export interface FillOptions {
  place?: StorePlace
  eventsPerRequest?: number
  onProgress?: (filled: number) => void
  /** The dead destination is ordered, and its events are of so many users. */
  keys?: number | undefined
}

export function sqliteIn(folder: string): StorePlace {
  return { folder, start: () => startService(folder), databasePids: () => [], bytes: async () => bytesOf(folder) }
}

/**
 * `stored` fills the same source that is measured later, so that its index of ids is as large as possible. `pending` fills a
 * separate source, because events of `default` must not go to the dead destination too.
 */
export async function createBacklog(traffic: Traffic, kind: BacklogKind, events: number, options: FillOptions = {}): Promise<Backlog> {
  const { place = sqliteIn(createFolder()), eventsPerRequest = EVENTS_PER_LARGE_REQUEST, onProgress, keys } = options
  const service = await place.start()
  try {
    const measured = await service.defaultSource()
    const source = kind === 'stored' ? measured : await service.createSource('backlog')
    const order = keys === undefined ? {} : { order: {} }
    const deadId =
      kind === 'pending' ? await service.createDestination('dead', `http://127.0.0.1:${await closedPort()}/`, source, order) : undefined
    const { dataBytes, fillSeconds } = await fill()
    const line = (await service.ledger()).find(({ destinationId }) => destinationId === deadId)
    if (deadId !== undefined && line?.pending !== events) throw new Error(`${line?.pending} pending after filling ${events}`)
    const healthyId = await service.createDestination('healthy', `${traffic.receiverUrl}/`, measured)
    if (!(await service.stop())) throw new Error('the service did not exit with code 0 after its store was filled')
    return { kind, events, place, healthyId, deadId, fillSeconds, dataBytes, storeBytes: await place.bytes() }

    async function fill() {
      const target = service.targetOf(source)
      const sent: Sent[] = []
      const send = async (count: number, perRequest: number, connections: number) => {
        sent.push(requireAll(await traffic.fill(target, count, perRequest, connections, keys)))
        onProgress?.(sent.reduce((sum, { acknowledged }) => sum + acknowledged, 0))
      }
      const large = events - (events % eventsPerRequest)
      const stepEvents = eventsPerRequest * Math.ceil(EVENTS_PER_STEP / eventsPerRequest)
      for (let first = 0; first < large; first += stepEvents)
        await send(Math.min(stepEvents, large - first), eventsPerRequest, FILL_CONNECTIONS)
      if (events > large) await send(events - large, events - large, 1)
      return {
        dataBytes: sent.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0),
        fillSeconds: sent.reduce((sum, { startedAtMs, lastAnswerAtMs }) => sum + (lastAnswerAtMs - startedAtMs) / 1_000, 0),
      }
    }
  } finally {
    await service.stop('SIGKILL')
  }
}

/** Returns a copy of a small SQLite store, so that the original stays small while the copy grows during the measurement. */
export function copyOf(backlog: Backlog): StorePlace {
  const folder = createFolder()
  cpSync(backlog.place.folder, folder, { recursive: true })
  return sqliteIn(folder)
}

function bytesOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}
