// The system under fault: nodes of the service in their own processes, on SQLite (one node) or PostgreSQL (several), a steady load
// through the tracking API, and one destination for each way to deliver.
//
//   await using system = await startSystem({ store: 'postgres', random })
//   await system.traffic.more(100)
//   await system.node(1).kill(); await system.node(1).start()
//   const audit = await auditSystem(system, { faults })                 audit.ts

import type { PostgresServer } from '../../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { type Cluster, Node, startCluster } from '../../cluster/cluster.ts'
import { startTraffic, type Traffic } from '../../cluster/traffic.ts'
import { callControl, type ServiceOptions, startService, TOKEN } from '../../system/service.ts'
import { eventually } from '../../system/signals.ts'
import {
  type PlannedDestination,
  startDestinations,
  startTalliedGateway,
  type TalliedDestination,
  USUAL_DESTINATIONS,
} from './destinations.ts'
import { numberedMessage, numberOf } from './numbered-message.ts'
import type { Random } from './random.ts'
import { allLoaded, type LoadedWarehouse, type Warehouses } from './warehouses.ts'

export type StoreKind = 'sqlite' | 'postgres'

export interface SystemOptions {
  store: StoreKind
  random: Random
  /** On PostgreSQL; 2 by default. */
  nodes?: number
  /** Messages per second; 40 by default. */
  perSecond?: number
  /** Each node connects to PostgreSQL through its own proxy. */
  proxied?: boolean
  /** PostgreSQL has a synchronous standby. */
  standby?: boolean
  /** Where the SQLite file is; a temporary folder by default. */
  folder?: string
  /** A running PostgreSQL server for the nodes, which is not stopped; a new one by default. */
  server?: PostgresServer
  /** The usual ones by default. */
  destinations?: readonly PlannedDestination[]
  /** Whether one of the destinations is an integration; true by default. It needs a host process for each node. */
  integration?: boolean
  /** None by default. */
  warehouses?: Warehouses
  /** Further settings of each node, from 1. */
  service?: (nth: number) => Pick<ServiceOptions, 'env' | 'execArgv'>
  /** Called for each message before its first call. */
  onSent?: (messageId: string) => void
  /** What sends the messages; calls of the tracking API without a client by default. */
  traffic?: (settings: TrafficSettings) => Promise<Traffic>
}

export interface TrafficSettings {
  random: Random
  /** Messages per second, in all. */
  perSecond: number
  writeKey: string
  /** The URLs of the running nodes. */
  targets: () => string[]
  api: System['api']
}

export interface System extends AsyncDisposable {
  store: StoreKind
  nodes: readonly Node[]
  /** The node with this number, from 1. */
  node(nth: number): Node
  /** Only on PostgreSQL. */
  cluster: Cluster | undefined
  sourceId: string
  writeKey: string
  traffic: Traffic
  destinations: readonly TalliedDestination[]
  warehouses: readonly LoadedWarehouse[]
  /** Problems that receivers found in requests. */
  problems: string[]
  /** The URLs of the running nodes. */
  urls(): string[]
  api<T = unknown>(path: string, init?: { method?: string; body?: unknown }): Promise<T>
  /** Resolves when everything that has been acknowledged so far was accepted by every destination that must get it. */
  caughtUp(deadlineMs?: number): Promise<void>
  /** Resolves when every warehouse has recorded as many loaded messages as have been acknowledged so far. */
  loaded(deadlineMs?: number): Promise<void>
  /** Called when the system is stopped. */
  defer(end: () => Promise<void>): void
}

const CAUGHT_UP_MS = 120_000
/** The context of such a call is stored once, and is part of each message that is sent. */
const LARGE_CALLS = { every: 60, messages: 30, contextBytes: 24_000 }

export async function startSystem(options: SystemOptions): Promise<System> {
  const {
    store,
    random,
    nodes: count = 2,
    perSecond = 40,
    proxied = false,
    standby = false,
    integration = true,
    warehouses: places,
    service,
    folder,
    server,
    onSent,
    traffic: startOther,
    destinations: planned = USUAL_DESTINATIONS,
  } = options
  await using started = new AsyncDisposableStack()
  const gateway = integration ? started.use(await startTalliedGateway(random)) : undefined
  const settingsOf = (nth: number): Pick<ServiceOptions, 'env' | 'execArgv'> => {
    const { env, execArgv = [] } = service?.(nth) ?? {}
    return { env: { SWITCHYARD_INTEGRATION_HOSTS: '1', ...gateway?.gateway.env, ...env }, execArgv }
  }
  const cluster =
    store === 'postgres'
      ? started.use(
          await startCluster({
            nodes: count,
            proxied,
            standby,
            log: 'warn',
            service: settingsOf,
            ...(server !== undefined && { on: { server, database: 'postgres' } }),
          }),
        )
      : undefined
  const nodes = cluster?.nodes ?? [
    new Node(
      'node 1',
      started.use(await startService({ log: 'warn', ...settingsOf(1), ...(folder !== undefined && { folder }) })),
      undefined,
    ),
  ]
  const [first] = nodes as [Node]
  const { sourceId, writeKey } = first.service
  const running = (): Node[] => nodes.filter(({ isUp }) => isUp)
  const api = <T>(path: string, init?: { method?: string; body?: unknown }): Promise<T> =>
    callControl<T>((running()[0] ?? first).url, TOKEN, path, init)

  const problems: string[] = []
  const destinations = await startDestinations({ api, sourceId, random, planned, gateway, problems }, started)
  const warehouses = (await places?.add(api, sourceId)) ?? []
  for (const { url } of running()) {
    await eventually(
      () => callControl<{ data: unknown[] }>(url, TOKEN, '/destinations'),
      ({ data }) => data.length === destinations.length + warehouses.length,
      { what: 'every node knows all destinations' },
    )
  }
  const urls = (): string[] => running().map(({ url }) => url)
  const message = (id: string, nth: number): object => {
    onSent?.(id)
    return numberedMessage(id, nth)
  }
  const traffic =
    startOther === undefined
      ? started.use(startTraffic({ targets: urls, writeKey, perSecond, message, large: LARGE_CALLS }))
      : started.use(await startOther({ random, perSecond, writeKey, targets: urls, api }))
  const everything = started.move()
  return {
    store,
    nodes,
    node: (nth) => nodes[nth - 1] ?? first,
    cluster,
    sourceId,
    writeKey,
    traffic,
    destinations,
    warehouses,
    problems,
    urls,
    api,
    caughtUp: (deadlineMs) => allAccepted(destinations, traffic.acknowledged, deadlineMs),
    loaded: (deadlineMs = CAUGHT_UP_MS) => allLoaded(api, warehouses, traffic.acknowledged.size, deadlineMs),
    defer: (end) => everything.defer(end),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}

/** For faults that only PostgreSQL can have. */
export function clusterOf({ cluster }: System): Cluster {
  if (cluster === undefined) throw new Error('this fault needs PostgreSQL')
  return cluster
}

/** Resolves when every destination has accepted all of these messages that it must get. */
export async function allAccepted(
  destinations: readonly TalliedDestination[],
  messageIds: Iterable<string>,
  deadlineMs = CAUGHT_UP_MS,
): Promise<void> {
  const ids = [...messageIds]
  await Promise.all(destinations.map((destination) => allArrived(destination, ids, deadlineMs)))
}

/** Resolves when the destination has accepted all of these messages that it must get. */
function allArrived({ name, tally, expected }: TalliedDestination, ids: readonly string[], deadlineMs: number): Promise<void> {
  const missing = new Set(ids.filter((id) => expected(numberOf(id)) === 'delivered' && !tally.has(id)))
  return new Promise((resolve, reject) => {
    const look = (): void => {
      // The expected outcome of a message changes if a receiver refuses it meanwhile.
      for (const id of missing) if (tally.has(id) || expected(numberOf(id)) !== 'delivered') missing.delete(id)
      if (missing.size > 0) return
      clearTimeout(late)
      stop()
      resolve()
    }
    const stop = tally.watch(look)
    const late = setTimeout(() => {
      stop()
      reject(
        new Error(
          `${missing.size} acknowledged messages have not arrived at "${name}" within ${deadlineMs / 1_000} s: ${[...missing].slice(0, 10).join()}`,
        ),
      )
    }, deadlineMs)
    look()
  })
}
