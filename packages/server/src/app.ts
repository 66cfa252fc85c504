// The service as a whole: opens the store, wires the stages to it and to each other's declared needs, listens, and stops
// in the order that loses nothing. Which adapter the store is, open-store.ts knows alone. No policy of a stage lives here.

import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import fastify, { type FastifyInstance, type FastifyReply, LogController } from 'fastify'
import { type Config, isLoopback } from './config.ts'
import { generateToken, loadAdminToken } from './control/access/admin-token.ts'
import { type AttemptListener, createAccess, type TrustedProxies } from './control/access/authorize.ts'
import { MAX_PARAM_LENGTH, registerControl } from './control/control.ts'
import type { OperatorTools } from './control/diagnostics/operator-tools.ts'
import { apiDocument } from './control/openapi/api-document.ts'
import { generateWriteKey } from './control/sources/sources.ts'
import { registerDashboard } from './dashboard/dashboard.ts'
import { createDelivery } from './delivery/delivery.ts'
import { createAddressGuard } from './delivery/sending/address-guard.ts'
import { createSender } from './delivery/sending/attempt.ts'
import { createDialCheck } from './delivery/sending/dial-check.ts'
import { registerDocs } from './docs/docs.ts'
import { ApiError, errorBody } from './errors.ts'
import { boundConnections } from './http/connections.ts'
import { createProxies, hasSeveralHosts } from './http/proxies.ts'
import { registerReadiness } from './http/readiness.ts'
import { MAX_BODIES_BYTES, registerIngest, rejectUnparsed, rewriteTrackingUrl } from './ingest/ingest.ts'
import { openStore, StartProblem, waitedFor } from './installation/open-store.ts'
import type { Log } from './logging/log.ts'
import { createOAuth } from './oauth/oauth.ts'
import { Metrics } from './observe/metrics.ts'
import { createObserver } from './observe/observe.ts'
import { createReplayRunner } from './replaying/replay-runner.ts'
import { planRoutes } from './routing/plan.ts'
import { SecretBoxError } from './secrets/secret-box.ts'
import { type Source, type Store, StoreUnavailable, WriteKeyTaken } from './store/store.ts'
import { type Clock, createClock } from './timing/clock.ts'
import { VERSION } from './version.ts'

export { StartProblem, StoreProblem } from './installation/open-store.ts'

export interface App {
  url: string
  /** For whoever has just started it; undefined when every source was deleted. */
  firstSource: Source | undefined
  /** Generated at this start, to be shown once. */
  generatedToken: string | null
  /** Whether a build of the dashboard was there at the start. */
  hasDashboard: boolean
  store: Store
  /** Where the store is, without a login. */
  storePlace: string
  /** Stops accepting, finishes or hands back what is in flight, and closes. Within 10 seconds. */
  close(): Promise<void>
}

/** What a test may put in the place of the real thing. */
export interface AppParts {
  clock?: (scheduleStartMs: number) => Clock
  lookup?: (hostname: string) => Promise<readonly string[]>
  /** Certificate authorities to trust, in PEM. */
  ca?: string
  random?: () => number
  /** Most milliseconds that a request's body may take to arrive. */
  bodyTimeoutMs?: number
  /** Given up starting: ends the waiting for a store that does not answer yet. */
  stopping?: AbortSignal
  /** Told of every path that is served. */
  onRoute?: (route: { method: string | string[]; url: string }) => void
}

/** Asks again while the store does not answer. */
type Waiting = <T>(ask: () => Promise<T>) => Promise<T>

const RETENTION_EVERY_MS = 60 * 60 * 1_000
const BODY_TIMEOUT_MS = 10_000
const REQUESTS_GRACE_MS = 2_500
const ATTEMPTS_GRACE_MS = 5_500
/** Longer than word of a change takes from node to node. */
const FIRST_SOURCE_MS = 3_000

export async function createApp(config: Config, log: Log, parts: AppParts = {}): Promise<App> {
  const { bodyTimeoutMs = BODY_TIMEOUT_MS } = parts
  const metrics = new Metrics()
  const { store, path, place, keyPath, backups, nodeName } = await openStore(config, {
    log,
    onState: (problem) => storeState(problem, log, metrics),
    onCommit: metrics.committed,
    onTrip: metrics.roundTrip,
    stopping: parts.stopping,
  })
  const clock = (parts.clock ?? createClock)(store.scheduleStartMs)
  store.useClock(clock)
  const guard = createAddressGuard({ allowPrivate: allowsPrivate(config), allow: [...config.allowAddresses] })
  const sender = createSender({ guard, lookup: parts.lookup, ca: parts.ca, now: () => clock.wallMs(), closeGraceMs: 200 })
  const observer = createObserver({ store, clock, log, metrics, version: VERSION })
  const delivery = createDelivery({ store, sender, clock, events: observer.delivery, ...(parts.random ? { random: parts.random } : {}) })
  const proxies = createProxies(config.trustedProxies, config.publicUrl)
  // A database that was opened may be away again a moment later. A file that cannot be written is a person's to mend.
  const waiting: Waiting = path === null ? (ask) => waitedFor(ask, place, { log, stopping: parts.stopping }) : (ask) => ask()
  const { admin, access, first } = await firstContents(store, config, { clock, proxies, log, waiting }).catch(async (error) => {
    await delivery.stop(0)
    await observer.close()
    await store.close()
    if (error instanceof StoreUnavailable) throw new StartProblem(`The store is not writable: ${error.message}.`, { cause: error })
    // Another node was first on a store that was empty, with another key.
    throw error instanceof SecretBoxError ? new StartProblem(error.message, { cause: error }) : error
  })

  const app = fastify({
    loggerInstance: log,
    // One logger for all requests: nothing is logged per request, and a child for each is made for nothing.
    childLoggerFactory: (logger) => logger,
    logController: new LogController({ disableRequestLogging: true }),
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    clientErrorHandler: rejectUnparsed,
    rewriteUrl: rewriteTrackingUrl,
    // Paths that cannot be decoded; Fastify refuses them before any route is looked for.
    frameworkErrors: (_error, _request, reply: FastifyReply) => {
      void reply
        .code(400)
        .send(
          errorBody(new ApiError('invalid_request', { message: 'The path or the query string is not valid. Check its percent-encoding.' })),
        )
    },
    // Half as long again, so that the tracking API answers by itself before. Of two timeouts Node.js takes the longer one for
    // the whole request, so the head's, a minute unless it is set, must be the shorter; and it looks only every so often.
    requestTimeout: 1.5 * bodyTimeoutMs,
    http: { headersTimeout: bodyTimeoutMs, connectionsCheckingInterval: bodyTimeoutMs / 2 },
    keepAliveTimeout: 72_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
  }) as unknown as FastifyInstance
  if (parts.onRoute) app.addHook('onRoute', parts.onRoute)
  const { silent } = boundConnections(app)
  // Bodies for unknown paths, and for paths that expect none, are not read: they would take memory only to be discarded.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, next) => next(null))
  app.addHook('onRequest', (request, reply, next) => {
    if (!hasSeveralHosts(request.raw)) return next()
    void reply
      .code(400)
      .send(errorBody(new ApiError('invalid_request', { message: 'The request has more than one Host header. Send exactly one.' })))
  })
  app.setNotFoundHandler((_request, reply) => reply.code(404).send(errorBody(new ApiError('not_found'))))
  app.setErrorHandler((error, request, reply) => {
    // Bodies that cannot be read, of paths that there are not: anybody can send them.
    if (((error as { statusCode?: number }).statusCode ?? 500) < 500)
      return reply.code(400).send(errorBody(new ApiError('invalid_request')))
    request.log.error({ err: error }, 'a request failed')
    return reply.code(500).send(errorBody(new ApiError('internal_error')))
  })
  registerReadiness(app, { check: () => store.check(), authorize: (request) => access.allows(request) })
  const oauth = createOAuth({ store, clock, requestedOrigin: (request) => proxies.requestedOrigin(request) })
  await oauth.register(app)
  registerIngest(app, {
    store,
    oauth: (token) => oauth.sourcesOf(token),
    plan: planRoutes,
    clock,
    proxies,
    settings: {
      lenientKeys: config.lenientKeys,
      rateLimitPerSecond: config.rateLimit,
      bodyTimeoutMs,
      maxBodiesBytes: MAX_BODIES_BYTES,
    },
    ...observer.ingest,
  })
  observer.registerMetrics(app, {
    access: config.metrics === 'auto' ? (isLoopback(config.host) ? 'local' : 'token') : config.metrics,
    authorize: (request) => access.allows(request),
    states: () => delivery.states(),
  })
  const operatorTools: OperatorTools = {
    installation: {
      version: VERSION,
      startedAtMs: clock.wallMs(),
      storePath: path,
      storePlace: place,
      nodeName,
      secretKey: keyPath === null ? { from: 'environment' } : { from: 'file', path: keyPath },
      retentionDays: config.retentionDays,
    },
    dial: createDialCheck({ guard, lookup: parts.lookup, ca: parts.ca }),
    backups,
  }
  const { live } = observer
  const flushStats = (): Promise<void> => observer.flushStats()
  const replays = createReplayRunner({
    store: store.replays,
    clock,
    trouble(err) {
      // The store says by itself when it cannot be used.
      if (!(err instanceof StoreUnavailable)) log.error({ err }, 'a step of a replay job failed and will be retried')
    },
  })
  const routes = await registerControl(app, { store, clock, delivery, operatorTools, live, flushStats, replays, access })

  registerDocs(app, {
    document: () => apiDocument(routes),
    site: join(import.meta.dirname, '..', '..', '..', 'docs', '.vitepress', 'dist'),
  })
  const hasDashboard = registerDashboard(app, { folder: join(import.meta.dirname, '..', '..', 'dashboard', 'dist') })

  const retention = setInterval(
    () => void store.dropExpired(clock.wallMs()).catch((err: unknown) => log.error({ err }, 'deleting expired data failed')),
    RETENTION_EVERY_MS,
  )
  retention.unref()

  async function stop(): Promise<void> {
    clearInterval(retention)
    observer.live.close()
    const requests = closeServer(app, silent)
    await replays.stop()
    await delivery.stop(ATTEMPTS_GRACE_MS)
    await requests
    await backups?.close()
    await observer.close()
    await store.close()
  }

  try {
    await app.listen({ host: config.host, port: config.port })
  } catch (error) {
    await stop()
    throw listenProblem(error as NodeJS.ErrnoException, config)
  }
  replays.start()
  void store.dropExpired(clock.wallMs()).catch((err: unknown) => log.error({ err }, 'deleting expired data failed'))
  let closing: Promise<void> | undefined
  return {
    url: urlOf(app.server.address() as AddressInfo),
    firstSource: first,
    generatedToken: admin.generated,
    hasDashboard,
    store,
    storePlace: place,
    close: () => (closing ??= stop()),
  }
}

/** Requests under way get their answer; connections that only wait are closed, and what is left after the grace too. */
async function closeServer(app: FastifyInstance, silent: ReadonlySet<Socket>): Promise<void> {
  const giveUp = setTimeout(() => app.server.closeAllConnections(), REQUESTS_GRACE_MS)
  const look = setInterval(() => {
    app.server.closeIdleConnections()
    for (const socket of silent) socket.destroy()
  }, 50)
  try {
    await app.close()
  } finally {
    clearTimeout(giveUp)
    clearInterval(look)
  }
}

function storeState(problem: string | null, log: Log, metrics: Metrics): void {
  metrics.storeState(problem)
  if (problem === null) log.info('the store accepts writes again')
  else log.error({ problem }, 'the store does not accept writes: requests are answered with 503, and delivery results are recorded later')
}

async function firstContents(
  store: Store,
  { adminToken }: Config,
  { clock, proxies, log, waiting }: { clock: Clock; proxies: TrustedProxies; log: Log; waiting: Waiting },
) {
  const fresh = generateToken()
  const admin = await waiting(() => loadAdminToken(store, adminToken, fresh))
  const onFailure: AttemptListener = (attempt) => log.warn(attempt, 'a request was rejected because of an invalid control token')
  const access = await waiting(() => createAccess({ store, clock, admin, proxies, onFailure }))
  return { admin, access, first: await waiting(() => firstSource(store)) }
}

/** The first start creates `default`. Later starts name the first source that is left. */
async function firstSource(store: Store): Promise<Source | undefined> {
  const named = (): Source | undefined => [...store.configuration().sources.values()].find(({ name }) => name === 'default')
  const any = (): Source | undefined => named() ?? [...store.configuration().sources.values()][0]
  // Where there are other nodes, one of them may have made it just now, and this one not have heard of it.
  if ((await store.settings.getSetting('first_source')) !== undefined)
    return any() ?? (store.nodes === undefined ? undefined : told(store, any, FIRST_SOURCE_MS))
  // It is there when the first start was cut short.
  const source = named() ?? (await createFirstSource(store))
  await store.settings.setSetting('first_source', source.id)
  return source
}

/** Nodes that start at once agree on its write key, and no two sources have the same: so only one of them is made. */
async function createFirstSource(store: Store): Promise<Source> {
  const writeKey = await store.secrets.getOrCreate('first_write_key', generateWriteKey())
  const ofKey = (): Source | undefined => [...store.configuration().sources.values()].find(({ writeKeys }) => writeKeys.includes(writeKey))
  try {
    return await store.settings.createSource({ name: 'default', enabled: true, writeKeys: [writeKey], requireOAuth: false })
  } catch (error) {
    if (!(error instanceof WriteKeyTaken)) throw error
    const found = ofKey() ?? (await told(store, ofKey, FIRST_SOURCE_MS))
    if (found === undefined) throw error
    return found
  }
}

/** What another node has just made is told by the next change of the configuration that is heard here. */
function told<T>(store: Store, find: () => T | undefined, limitMs: number): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(find()), limitMs)
    store.onConfiguration(() => {
      const found = find()
      if (found === undefined) return
      clearTimeout(timer)
      resolve(found)
    })
  })
}

function allowsPrivate({ privateAddresses, host }: Config): boolean {
  return privateAddresses === 'auto' ? isLoopback(host) : privateAddresses === 'allow'
}

function listenProblem({ code, message }: NodeJS.ErrnoException, { host, port }: Config): StartProblem {
  const reasons: Record<string, string> = {
    EADDRINUSE: `Port ${port} on ${host} is already in use. Stop the program that listens there, or choose another port: --port ${port === 65_535 ? 8080 : port + 1}`,
    EACCES: `This user may not listen on port ${port} of ${host}. Choose a port above 1023: --port 8080`,
    EADDRNOTAVAIL: `${host} is not an address of this machine. Set --host to one that is, or to 0.0.0.0 for all.`,
    ENOTFOUND: `The host name ${host} cannot be resolved. Check --host.`,
  }
  return new StartProblem(reasons[code ?? ''] ?? `Cannot listen on ${host}, port ${port}: ${message}`)
}

/** An address that means "all" is listened on but cannot be called. */
function urlOf({ address, family, port }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return `http://localhost:${port}`
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
