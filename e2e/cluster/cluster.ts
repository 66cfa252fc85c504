// Runs several nodes of the service on one PostgreSQL server, each in its own process, and injects faults: nodes can be
// killed, stopped, frozen and disconnected from the database, and the server can be killed, restarted or replaced by its standby.
//
//   await using cluster = await startCluster({ nodes: 3, proxied: true })
//   await cluster.node(1).kill(); await cluster.node(1).start()
//   cluster.node(2).proxy.cut()
//   await cluster.killServer(); await cluster.server.run()
//   await cluster.killServer(); await cluster.promote(); await cluster.addStandby()
//   await cluster.known('/destinations/dst_…')                   every running node knows it
//
// Fault tests are slow, because a lease has to expire. `npm test` runs the shortest version that still tests the behaviour.
// SWITCHYARD_LONG_TESTS=1 runs them longer, more often and with more data: node --test e2e/cluster/

import { LEASE_MS } from '../../packages/server/src/store/postgres/cluster/membership.ts'
import { PostgresServer } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { childrenOf, killProcess } from '../system/child-processes.ts'
import { IS_LONG } from '../system/long-tests.ts'
import { callControl, type Ended, type LedgerRow, type Service, type ServiceOptions, startService, TOKEN } from '../system/service.ts'
import { eventually, type Waiting } from '../system/signals.ts'
import { DatabaseProxy } from './proxy.ts'

export { LEASE_MS }
/** Another node takes over the work of a dead node within this time. */
export const RESUME_MS = LEASE_MS + 5_000
/** How long a test waits for that. On a loaded machine the nodes may need longer, and a test prints how long they took. */
export const RESUME_DEADLINE_MS = IS_LONG ? RESUME_MS : 4 * RESUME_MS
/** The same if only its process was killed, which usually takes about a second. If the takeover waits for the lease, it takes longer than this. */
export const RESUME_KILLED_MS = LEASE_MS / 2

export const SECRET_KEY = 'secret-key-of-the-cluster-tests-0123456789'
const MAX_CONNECTIONS = 'max_connections=200'

export interface ClusterOptions {
  /** 3 by default. */
  nodes?: number
  /** Whether to start a synchronous standby. Every node then has the addresses of both servers. */
  standby?: boolean
  /** Whether each node connects to the database through its own proxy. */
  proxied?: boolean
  log?: string
  /** Further settings of each node, from 1. */
  service?: (nth: number) => Pick<ServiceOptions, 'env' | 'execArgv'>
  /** A running server and its database, which is not stopped. If missing, a separate server is started for this cluster. */
  on?: { server: PostgresServer; database: string }
}

export class Node {
  readonly name: string
  readonly proxy: DatabaseProxy
  #service: Service
  #isUp = true

  constructor(name: string, service: Service, proxy: DatabaseProxy | undefined) {
    this.name = name
    this.#service = service
    // Used only by tests that start the cluster with proxies.
    this.proxy = proxy as DatabaseProxy
  }

  /** The running process, or the last one that ran. */
  get service(): Service {
    return this.#service
  }

  get url(): string {
    return this.#service.url
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** Sends SIGKILL. */
  async kill(): Promise<Ended> {
    this.#service.kill('SIGKILL')
    return await this.#over(this.#service.ended)
  }

  /** Sends SIGTERM. */
  async stop(): Promise<Ended> {
    return await this.#over(this.#service.stop())
  }

  /** Senders notice by a failing call, like a load balancer: the node is not skipped before that. */
  async #over(ended: Promise<Ended>): Promise<Ended> {
    const end = await ended
    this.#isUp = false
    return end
  }

  /** Starts the next process, on a new port. */
  async start(): Promise<void> {
    this.#service = await this.#service.restart()
    this.#isUp = true
  }

  freeze(): void {
    this.#service.kill('SIGSTOP')
  }

  thaw(): void {
    this.#service.kill('SIGCONT')
  }

  /** The response of /readyz. */
  async readyz(timeoutMs = 60_000): Promise<{ status: number; retryAfter: string | null; ms: number }> {
    const since = performance.now()
    const response = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(timeoutMs) })
    await response.text()
    return { status: response.status, retryAfter: response.headers.get('retry-after'), ms: performance.now() - since }
  }

  /** Returns the milliseconds until /readyz answers with this status. */
  async becomes(status: number, waiting: Waiting = {}): Promise<number> {
    const since = performance.now()
    await eventually(
      () => this.readyz(),
      (answer) => answer.status === status,
      { what: `${this.name} answers /readyz with ${status}`, state: () => this.#service.stderr().slice(-4_000), ...waiting },
    )
    return performance.now() - since
  }
}

export interface Cluster extends AsyncDisposable {
  nodes: readonly Node[]
  /** The node with this number, from 1. */
  node(nth: number): Node
  /** The primary; after promote(), the former standby. */
  server: PostgresServer
  writeKey: string
  sourceId: string
  /** The URLs of the running nodes. */
  urls(): string[]
  /** Calls the control API of any running node. */
  api<T = unknown>(path: string, init?: { method?: string; body?: unknown }): Promise<T>
  /** Polls each running node until it no longer answers 404, because a change of the configuration takes a moment to reach every node. */
  known(path: string): Promise<void>
  ledger(options?: { recount?: boolean }): Promise<LedgerRow[]>
  /** Queries the database directly. */
  query<T extends object>(text: string, values?: unknown[]): Promise<T[]>
  /** Sends SIGKILL to the server and all its processes. */
  killServer(): Promise<void>
  /** The proxy between the primary and its standby. */
  replication: DatabaseProxy
  /** Whether there is a standby that can be promoted. */
  hasStandby: boolean
  /** Promotes the standby to primary. The former primary must have ended. */
  promote(): Promise<void>
  /** Replaces the former primary, after promote(), by a new standby at the same address. Resolves when commits wait for it. */
  addStandby(): Promise<void>
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { nodes: count = 3, standby: hasStandby = false, proxied = false, log = 'warn', service, on } = options
  await using started = new AsyncDisposableStack()
  const servers: PostgresServer[] = []
  started.defer(async () => void (await Promise.all(servers.map((each) => each.dispose()))))
  const own = (one: PostgresServer): PostgresServer => {
    servers.push(one)
    return one
  }
  let server = on?.server ?? own(await PostgresServer.start({ settings: ['synchronous_commit=on'] }))
  const database = on?.database ?? 'postgres'
  const replication = hasStandby ? started.use(await DatabaseProxy.start(server.port)) : undefined
  let standby = replication && own(await synchronousStandby(server, replication.port))
  /** The former primary, until a new standby has its address. */
  let former: PostgresServer | undefined
  const other = standby?.port

  const addressOf = (port: number): string => {
    if (other === undefined) return server.url(database).replace(`:${server.port}/`, `:${port}/`)
    return `${server.url(database).replace(`:${server.port}/`, `:${port},127.0.0.1:${other}/`)}?target_session_attrs=read-write`
  }
  const startNode = async (nth: number): Promise<Node> => {
    const proxy = proxied ? started.use(await DatabaseProxy.start(server.port)) : undefined
    const { env, execArgv = [] } = service?.(nth) ?? {}
    const settings: ServiceOptions = {
      log,
      env: { SWITCHYARD_STORE: addressOf(proxy?.port ?? server.port), SWITCHYARD_SECRET_KEY: SECRET_KEY, ...env },
      execArgv,
    }
    return new Node(`node ${nth}`, started.use(await startService(settings)), proxy)
  }
  // The first node creates the schema and the first source; the others start at the same time.
  const first = await startNode(1)
  const nodes = [first, ...(await Promise.all(Array.from({ length: count - 1 }, (_, at) => startNode(at + 2))))]

  const everything = started.move()
  const running = (): Node[] => nodes.filter(({ isUp }) => isUp)
  const api = async <T>(path: string, init?: { method?: string; body?: unknown }): Promise<T> => {
    const node = running()[0] ?? first
    try {
      return await callControl<T>(node.url, TOKEN, path, init)
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${node.name} logged:\n${node.service.stderr().slice(-3_000)}`, { cause: error })
    }
  }
  const cluster: Cluster = {
    nodes,
    node: (nth) => nodes[nth - 1] ?? first,
    get server() {
      return server
    },
    writeKey: first.service.writeKey,
    sourceId: first.service.sourceId,
    urls: () => running().map(({ url }) => url),
    api,
    async known(path) {
      for (const { url, name } of running()) {
        await eventually(
          async () => (await fetch(`${url}/api${path}`, { headers: { authorization: `Bearer ${TOKEN}` } })).status,
          (status) => status !== 404,
          { what: `${name} knows ${path}` },
        )
      }
    },
    ledger: async ({ recount = false } = {}) => (await api<{ data: LedgerRow[] }>(`/ledger${recount ? '?recount=true' : ''}`)).data,
    async query<T extends object>(text: string, values: unknown[] = []) {
      const client = await server.client(database)
      try {
        return (await client.query(text, values)).rows as T[]
      } finally {
        await client.end()
      }
    },
    killServer: () => killWhole(server),
    // Used only by tests that start the cluster with a standby.
    replication: replication as DatabaseProxy,
    get hasStandby() {
      return standby !== undefined
    },
    async promote() {
      if (standby === undefined) throw new Error('the cluster has no standby')
      const client = await standby.client()
      try {
        const { rows } = await client.query<{ promoted: boolean }>('SELECT pg_promote() AS promoted')
        if (rows[0]?.promoted !== true) throw new Error('the standby was not promoted within a minute')
      } finally {
        await client.end()
      }
      former = server
      server = standby
      standby = undefined
    },
    async addStandby() {
      if (former === undefined || replication === undefined) throw new Error('no standby was promoted')
      const { port } = former
      await former.dispose()
      former = undefined
      replication.reset()
      replication.heal()
      replication.target = server.port
      standby = own(await synchronousStandby(server, replication.port, port))
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
  return cluster
}

/** Starts a standby that every commit of the primary waits for. It replicates through the port `via`, and listens on `port`. */
async function synchronousStandby(primary: PostgresServer, via: number, port?: number): Promise<PostgresServer> {
  const { username, password } = new URL(primary.url())
  const source = `primary_conninfo='host=127.0.0.1 port=${via} user=${username} password=${password} application_name=standby'`
  // Some limits of a standby must be at least as high as those of its primary.
  const settings = [MAX_CONNECTIONS, 'shared_buffers=64MB', 'fsync=off', 'dynamic_shared_memory_type=mmap', source]
  const standby = await primary.standby(settings, port)
  const client = await primary.client()
  try {
    await client.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    await client.query('SELECT pg_reload_conf()')
    await eventually(
      async () => (await client.query<{ state: string }>('SELECT sync_state AS state FROM pg_stat_replication')).rows,
      (rows) => rows[0]?.state === 'sync',
      { what: 'the standby replicates, and commits wait for it', deadlineMs: 60_000 },
    )
  } catch (error) {
    await standby.dispose()
    throw error
  } finally {
    await client.end()
  }
  return standby
}

/** Kills the server process and each process that serves a connection with SIGKILL, so that none can write anything more. */
async function killWhole(server: PostgresServer): Promise<void> {
  const { pid } = server
  // Kills the server first, because otherwise it would shut down its children and log that.
  for (const one of [pid, ...childrenOf(pid)]) killProcess(one)
  await server.kill()
}
