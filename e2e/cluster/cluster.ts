// Several nodes of the service on one PostgreSQL, each a process of its own, and everything that can be done to them: nodes are
// killed, stopped, frozen and cut off from the database, the server is killed, started again, or replaced by its standby.
//
//   await using cluster = await startCluster({ nodes: 3, proxied: true })
//   await cluster.node(1).kill(); await cluster.node(1).start()
//   cluster.node(2).proxy.cut()
//   await cluster.killServer(); await cluster.server.run()
//   await cluster.known('/destinations/dst_…')                   every node that runs knows it
//
// Faults take long by nature: a lease has to end. `npm test` runs them as short as they can be and still show what they are for.
// SWITCHYARD_LONG_TESTS=1 runs them as long, as often and as large as the issue names them: node --test e2e/cluster/

import { execFileSync } from 'node:child_process'
import { LEASE_MS } from '../../packages/server/src/store/postgres/cluster/membership.ts'
import { PostgresServer } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { callControl, type Ended, type LedgerRow, type Service, type ServiceOptions, startService, TOKEN } from '../service.ts'
import { eventually, type Waiting } from '../signals.ts'
import { DatabaseProxy } from './proxy.ts'

export { LEASE_MS }
/** Work of a node that is gone goes on elsewhere within this. */
export const RESUME_MS = LEASE_MS + 5_000

const SECRET_KEY = 'secret-key-of-the-cluster-tests-0123456789'
const MAX_CONNECTIONS = 'max_connections=200'

export interface ClusterOptions {
  /** Default: 3. */
  nodes?: number
  /** With a synchronous standby; every node knows both servers. */
  standby?: boolean
  /** Each node reaches the database by a proxy of its own. */
  proxied?: boolean
  log?: string
  /** One that runs already, and its database; it is left as it is. Otherwise there is a server for this cluster alone. */
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
    // Only asked for by whoever started the cluster with proxies.
    this.proxy = proxy as DatabaseProxy
  }

  /** The process that runs, or ran last. */
  get service(): Service {
    return this.#service
  }

  get url(): string {
    return this.#service.url
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** kill -9. */
  async kill(): Promise<Ended> {
    this.#service.kill('SIGKILL')
    return await this.#over(this.#service.ended)
  }

  /** SIGTERM. */
  async stop(): Promise<Ended> {
    return await this.#over(this.#service.stop())
  }

  /** Whoever sends to it finds out by a call that fails, as a load balancer does: it is not passed over before. */
  async #over(ended: Promise<Ended>): Promise<Ended> {
    const end = await ended
    this.#isUp = false
    return end
  }

  /** The next process, on a port of its own. */
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

  /** The answer of /readyz. */
  async readyz(timeoutMs = 60_000): Promise<{ status: number; retryAfter: string | null; ms: number }> {
    const since = performance.now()
    const response = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(timeoutMs) })
    await response.text()
    return { status: response.status, retryAfter: response.headers.get('retry-after'), ms: performance.now() - since }
  }

  /** Milliseconds until /readyz answers so. */
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
  /** By its number, from 1. */
  node(nth: number): Node
  /** The one that is written to; after promote(), what was the standby. */
  server: PostgresServer
  writeKey: string
  sourceId: string
  /** The URLs of the nodes that run. */
  urls(): string[]
  /** A call of the control API of any node that runs. */
  api<T = unknown>(path: string, init?: { method?: string; body?: unknown }): Promise<T>
  /** Of each node that runs, until it does not answer 404 any more: configuration takes a moment to get everywhere. */
  known(path: string): Promise<void>
  ledger(options?: { recount?: boolean }): Promise<LedgerRow[]>
  /** Straight from the database. */
  query<T extends object>(text: string, values?: unknown[]): Promise<T[]>
  /** kill -9 of the server and every process of it. */
  killServer(): Promise<void>
  /** Between the primary and its standby. */
  replication: DatabaseProxy
  /** The standby is the primary from now on. */
  promote(): Promise<void>
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { nodes: count = 3, standby: hasStandby = false, proxied = false, log = 'warn', on } = options
  await using started = new AsyncDisposableStack()
  const own = async (server: PostgresServer): Promise<PostgresServer> => {
    started.defer(() => server.dispose())
    return server
  }
  let server = on?.server ?? (await own(await PostgresServer.start({ settings: ['synchronous_commit=on'] })))
  const database = on?.database ?? 'postgres'
  const replication = hasStandby ? started.use(await DatabaseProxy.start(server.port)) : undefined
  const standby = replication && (await own(await synchronousStandby(server, replication.port)))

  const addressOf = (port: number): string => {
    if (standby === undefined) return server.url(database).replace(`:${server.port}/`, `:${port}/`)
    return `${server.url(database).replace(`:${server.port}/`, `:${port},127.0.0.1:${standby.port}/`)}?target_session_attrs=read-write`
  }
  const startNode = async (nth: number): Promise<Node> => {
    const proxy = proxied ? started.use(await DatabaseProxy.start(server.port)) : undefined
    const env = { SWITCHYARD_STORE: addressOf(proxy?.port ?? server.port), SWITCHYARD_SECRET_KEY: SECRET_KEY }
    const settings: ServiceOptions = { log, env }
    return new Node(`node ${nth}`, started.use(await startService(settings)), proxy)
  }
  // The first lays out the schema and the first source; the others come all at once.
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
          { what: `${name} knows ${path}`, deadlineMs: 10_000 },
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
    // Only asked for by whoever started the cluster with a standby.
    replication: replication as DatabaseProxy,
    async promote() {
      if (standby === undefined) throw new Error('the cluster was started without a standby')
      const client = await standby.client()
      try {
        await client.query('SELECT pg_promote()')
      } finally {
        await client.end()
      }
      server = standby
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
  return cluster
}

/** One that every commit of the primary waits for from now on. */
async function synchronousStandby(primary: PostgresServer, port: number): Promise<PostgresServer> {
  const { username, password } = new URL(primary.url())
  const source = `primary_conninfo='host=127.0.0.1 port=${port} user=${username} password=${password} application_name=standby'`
  // A standby must allow for at least as much as its primary.
  const standby = await primary.standby([MAX_CONNECTIONS, 'shared_buffers=64MB', 'fsync=off', source])
  const client = await primary.client()
  try {
    await client.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    await client.query('SELECT pg_reload_conf()')
    await eventually(
      async () => (await client.query<{ state: string }>('SELECT sync_state AS state FROM pg_stat_replication')).rows,
      (rows) => rows[0]?.state === 'sync',
      { what: 'the standby follows, and commits wait for it', deadlineMs: 20_000 },
    )
  } catch (error) {
    await standby.dispose()
    throw error
  } finally {
    await client.end()
  }
  return standby
}

/** As kill -9 of the server's process and of each that serves a connection. None has a chance to write anything more. */
async function killWhole(server: PostgresServer): Promise<void> {
  const { pid } = server
  // The server first: it would end its children by itself, and say that it does.
  const children = execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean)
    .map(Number)
  for (const one of [pid, ...children]) {
    try {
      process.kill(one, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  await server.kill()
}
