// Throughput of a destination with `order`, beside the same destination without: live traffic, a receiver that answers after 1 ms, 50 requests in
// flight. Every message must arrive once, except those of the user whose events the receiver refuses.

import type { Postgres } from '../environment/databases.ts'
import { EVENTS_PER_REQUEST, userOf } from '../environment/events.ts'
import { nowMs } from '../environment/http-message.ts'
import { cpuUs } from '../environment/process-stats.ts'
import { createFolder, pause, removeFolder } from '../environment/processes.ts'
import type { Round } from '../environment/rounds.ts'
import { cliOf, type Service, startNode, startService } from '../environment/service.ts'
import { CONNECTIONS, createTraffic, requireAll, type Traffic } from '../environment/traffic.ts'

export interface OrderCase {
  name: OrderCaseName
  users: number
  /** Whether the destination is ordered. */
  isOrdered?: boolean
  /** The receiver answers 503 to all events of one user. */
  refuses?: boolean
  /** The version of --before, which has no order. */
  isBefore?: boolean
  events: number
}

export type OrderCaseName =
  | 'without order, 1,000 users'
  | 'without order before'
  | '1,000 keys'
  | '1,000 keys, one failing'
  | 'without order, 100,000 users'
  | '100,000 keys'
  | 'one key'

export interface OrderRun {
  events: number
  eventsPerSecond: number
  cpuUsPerEvent: number
  databaseCpuUsPerEvent: number
  complaints: string[]
}

export type OrderRound = Round<OrderCaseName, OrderRun>

const EVENTS = 30_000
const ONE_KEY_EVENTS = 1_500
const WARM_UP_EVENTS = 6_000
const ANSWER_MS = 1
const MAX_IN_FLIGHT = 50
const LIMIT_MS = 180_000
const REFUSED_USER = 7

export const ORDER_CASES: readonly OrderCase[] = [
  { name: 'without order, 1,000 users', users: 1_000, events: EVENTS },
  { name: '1,000 keys', users: 1_000, isOrdered: true, events: EVENTS },
  { name: '1,000 keys, one failing', users: 1_000, isOrdered: true, refuses: true, events: EVENTS },
  { name: 'without order, 100,000 users', users: 100_000, events: EVENTS },
  { name: '100,000 keys', users: 100_000, isOrdered: true, events: EVENTS },
  { name: 'one key', users: 1, isOrdered: true, events: ONE_KEY_EVENTS },
  { name: 'without order before', users: 1_000, isBefore: true, events: EVENTS },
]

export interface OrderOptions {
  /** SQLite if undefined. */
  server: Postgres | undefined
  before: string | undefined
  scale: number
}

export async function measureOrder(one: OrderCase, { server, before, scale }: OrderOptions): Promise<OrderRun> {
  const { users, isOrdered = false, refuses = false, isBefore = false } = one
  const folder = createFolder()
  const traffic = await createTraffic({ answerAfterMs: ANSWER_MS })
  await server?.reset()
  try {
    const cli = isBefore && before !== undefined ? cliOf(before) : undefined
    const service = server === undefined ? await startService(folder, {}, cli) : await startNode(server.connectionString, folder, cli)
    try {
      const source = await service.defaultSource()
      const settings = { maxInFlight: MAX_IN_FLIGHT, ...(isOrdered && { order: {} }) }
      await service.createDestination('receiver', `${traffic.receiverUrl}/`, source, settings)
      await send(traffic, service, Math.min(WARM_UP_EVENTS, one.events), users, false)
      const pids = [[service.pid], server?.pids() ?? []] as const
      const cpuBefore = pids.map((some) => cpuUs([...some]))
      const events = Math.ceil((one.events * scale) / EVENTS_PER_REQUEST) * EVENTS_PER_REQUEST
      const { ms, missing, duplicates, owed } = await send(traffic, service, events, users, refuses)
      const [cpu = 0, databaseCpu = 0] = pids.map((some, at) => (cpuUs([...some]) - (cpuBefore[at] ?? 0)) / owed)
      const complaints = [...(missing > 0 ? [`lost ${missing}`] : []), ...(duplicates > 0 ? [`${duplicates} arrived twice`] : [])]
      return { events: owed, eventsPerSecond: owed / (ms / 1_000), cpuUsPerEvent: cpu, databaseCpuUsPerEvent: databaseCpu, complaints }
    } finally {
      await service.stop()
    }
  } finally {
    await traffic.close()
    removeFolder(folder)
  }
}

/** Sends events, and waits until all have arrived and nothing else is pending. Events that the receiver refuses do not count. */
async function send(traffic: Traffic, service: Service, events: number, users: number, refuses: boolean) {
  const refused = refuses ? { user: REFUSED_USER, users } : undefined
  const target = service.targetOf(await service.defaultSource())
  const complete = traffic.expectNext(events, LIMIT_MS, refused)
  const load = { eventsPerRequest: EVENTS_PER_REQUEST, connections: CONNECTIONS, users }
  const [sent] = await Promise.all([traffic.burst(target, events, load).then(requireAll), complete])
  const isOfRefused = (sequence: number): boolean => refuses && userOf(sequence, users) === REFUSED_USER
  let waiting = 0
  for (let sequence = sent.first; sequence < sent.first + events; sequence += 1) if (isOfRefused(sequence)) waiting += 1
  const limit = nowMs() + LIMIT_MS
  while ((await service.ledger()).reduce((sum, { pending }) => sum + pending, 0) > waiting) {
    if (nowMs() > limit) throw new Error('deliveries are pending after all events arrived')
    await pause(10)
  }
  const ms = nowMs() - sent.startedAtMs
  const { missing, duplicates } = await traffic.received(sent)
  return { ms, missing: missing - waiting, duplicates, owed: events - waiting }
}
