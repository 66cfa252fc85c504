// Assembles the service: opens the store, connects the stages to it and to each other, listens, and shuts down in an order in which
// nothing is lost. Only open-store.ts knows which store adapter is used. The logic of the stages does not belong here.

import { randomBytes, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import fastify, { type FastifyInstance, type FastifyReply, LogController } from 'fastify'
import { createAlerts } from './alerts/alerts.ts'
import { VERSION } from './api/version.ts'
import { type Config, isLoopback } from './config.ts'
import { generateToken, loadAdminToken } from './control/access/admin-token.ts'
import { type AttemptListener, createAccess, type TrustedProxies } from './control/access/authorize.ts'
import { MAX_PARAM_LENGTH, registerControl } from './control/control.ts'
import type { OperatorTools } from './control/diagnostics/operator-tools.ts'
import { apiDocument } from './control/openapi/api-document.ts'
import { registerDashboard } from './dashboard/dashboard.ts'
import { createDelivery, type Unfinished } from './delivery/delivery.ts'
import type { HostOptions } from './delivery/hosts/host-link.ts'
import { Hosts } from './delivery/hosts/hosts.ts'
import { TokenKeeper } from './delivery/hosts/token-keeper.ts'
import { openInlineSender, openSenderThreads } from './delivery/senders/open-senders.ts'
import { createAddressGuard } from './delivery/sending/address-guard.ts'
import { createDialCheck } from './delivery/sending/dial-check.ts'
import { ThreadTransformer } from './delivery/transforming/thread-transformer.ts'
import { registerDocs } from './docs/docs.ts'
import { ApiError, errorBody } from './errors.ts'
import { closeServer } from './http/close-server.ts'
import { boundConnections } from './http/connections.ts'
import { createProxies, hasSeveralHosts } from './http/proxies.ts'
import { registerReadiness } from './http/readiness.ts'
import { MAX_BODIES_BYTES, registerIngest, rejectUnparsed, rewriteTrackingUrl } from './ingest/ingest.ts'
import { BacklogLimit } from './ingest/limits/backlog-limit.ts'
import { createPrivacy } from './ingest/privacy/privacy.ts'
import { commandForm } from './installation/command-form.ts'
import { findOrCreateFirstSource } from './installation/first-source.ts'
import { IntegrationsInstaller } from './installation/install-integrations.ts'
import { openCatalog } from './installation/integrations-catalog.ts'
import { codeFolders, findIntegrationsPackage, integrationsFolder } from './installation/integrations-package.ts'
import { checkPort, listenProblem, urlOf } from './installation/listening.ts'
import { openStore, retryWhileUnavailable, StartProblem } from './installation/open-store.ts'
import { coresForThisProcess } from './installation/processes/process-count.ts'
import type { Supervised } from './installation/processes/supervised.ts'
import type { Log } from './logging/log.ts'
import { createOAuth } from './oauth/oauth.ts'
import { Metrics } from './observe/metrics.ts'
import { createObserver } from './observe/observe.ts'
import { createPlanJudges } from './plans/plan-judges.ts'
import { loadValidator } from './plans/plan-schema-compiler.ts'
import { createReplayRunner } from './replaying/replay-runner.ts'
import { planRoutes } from './routing/plan.ts'
import { SecretBoxError } from './secrets/secret-box.ts'
import { type Source, type Store, StoreUnavailable } from './store/store.ts'
import { type Clock, createClock } from './timing/clock.ts'
import { IngestPacing } from './timing/ingest-pacing.ts'
import { StopBudget } from './timing/stop-budget.ts'

export { StartProblem, StoreProblem } from './installation/open-store.ts'

export interface App {
  url: string
  /** The source to show at startup; undefined if every source was deleted. */
  firstSource: Source | undefined
  /** The admin token if it was generated at this start. It is shown once. */
  generatedToken: string | null
  /** Whether a build of the dashboard was found at startup. */
  hasDashboard: boolean
  store: Store
  /** The address of the store, without credentials. */
  storePlace: string
  /**
   * Sends nothing more, stops accepting requests, finishes or releases deliveries in flight, and closes. Takes at most STOP_MS. Resolves with
   * what was not finished by then, in the words of the log.
   */
  close(): Promise<readonly string[]>
}

/** What the service gets from the program that starts it; most of its parts are replacements for tests. */
export interface AppParts {
  /** Set if this process is one of several on the same port. */
  supervised?: Pick<Supervised, 'index' | 'combineMetrics'> | undefined
  clock?: (scheduleStartMs: number) => Clock
  lookup?: (hostname: string) => Promise<readonly string[]>
  /** Certificate authorities to trust, in PEM. */
  ca?: string
  random?: () => number
  /** The folder of the integrations package, with a slash at the end. */
  integrations?: URL
  /** The timeout for receiving the body of a request. */
  bodyTimeoutMs?: number
  /** Aborts waiting for a store that does not respond at startup. */
  stopping?: AbortSignal
  /** Called for every route that is registered. */
  onRoute?: (route: { method: string | string[]; url: string }) => void
}

/** Retries while the store is unavailable. */
type Retry = <T>(ask: () => Promise<T>) => Promise<T>

const RETENTION_EVERY_MS = 60 * 60 * 1_000
const BODY_TIMEOUT_MS = 10_000
/** When the steps of a stop must have ended, from its beginning. The documentation promises ten seconds until the process has exited. */
const STOP_MS = {
  /** Connections of clients that have not sent their whole request, or not read the response, are closed. */
  clients: 2_500,
  /** Requests to destinations that were not answered are aborted. The longest default timeout of an attempt is 5 s. */
  attempts: 5_500,
  /** Outcomes are recorded, and the work that other stages have begun is finished. */
  outcomes: 7_000,
  /** Counts that are kept in memory are written, threads and processes have ended. */
  counts: 7_800,
  store: 8_800,
}
/** How long senders that are being closed wait for requests in flight, after that. */
const CLOSE_GRACE_MS = 200
/** Each host takes about 100 MB, and more for each integration that it runs. */
const MAX_AUTO_HOSTS = 4

export async function createApp(config: Config, log: Log, parts: AppParts = {}): Promise<App> {
  const { bodyTimeoutMs = BODY_TIMEOUT_MS } = parts
  // The supervisor has checked it for its processes, which share the port.
  if (parts.supervised === undefined) await checkPort(config)
  const metrics = new Metrics()
  const allowed = { allowPrivate: allowsPrivate(config), allow: [...config.allowAddresses] }
  const hosts = createHosts(config, allowed, log, { ...parts, tokens: () => tokens })
  const { store, path, place, keyPath, backups, nodeName } = await openStore(config, {
    log,
    onState: (problem) => reportStoreState(problem, log, metrics),
    onCommit: metrics.committed,
    onRoundTrip: metrics.roundTrip,
    stopping: parts.stopping,
    processIndex: parts.supervised?.index,
  })
  const tokens = new TokenKeeper({
    store,
    onError: (err) => log.error({ err }, 'the renewed tokens of an integration could not be stored'),
  })
  const clock = (parts.clock ?? createClock)(store.scheduleStartMs)
  store.useClock(clock)
  const guard = createAddressGuard(allowed)
  const sending = { guard: allowed, ca: parts.ca, closeGraceMs: CLOSE_GRACE_MS }
  const senderThreads = senderCount(config)
  const senders =
    parts.lookup || parts.clock || senderThreads === 0
      ? openInlineSender({ ...sending, lookup: parts.lookup, now: () => clock.wallMs(), hosts })
      : openSenderThreads(senderThreads, sending, { onLost: (err) => log.error({ err }, 'a sender thread failed and is replaced'), hosts })
  if (store.configuration().plans.size > 0) loadValidator()
  const plans = createPlanJudges((planId, { rule, message }) =>
    log.error({ planId, rule, problem: message }, 'a rule of a tracking plan cannot be applied; its messages count as valid'),
  )
  plans.follow(store.configuration())
  store.onConfiguration(() => plans.follow(store.configuration()))
  const observer = createObserver({ store, clock, log, metrics, version: VERSION, eventCatalog: config.eventCatalog === 'on', plans })
  const pacing = new IngestPacing()
  const delivery = createDelivery({
    store,
    senders,
    clock,
    events: observer.delivery,
    pacing,
    ...(parts.random ? { random: parts.random } : {}),
  })
  const proxies = createProxies(config.trustedProxies, config.publicUrl)
  // PostgreSQL may become unavailable again right after it was opened, so retry. Retrying does not make a SQLite file writable.
  const retry: Retry = path === null ? (ask) => retryWhileUnavailable(ask, place, { log, stopping: parts.stopping }) : (ask) => ask()
  const { admin, access, first, privacy } = await initializeStore(store, config, { clock, proxies, log, retry }).catch(async (error) => {
    await delivery.stop(0)
    await observer.close()
    await store.close()
    if (error instanceof StoreUnavailable) throw new StartProblem(`The store is not writable: ${error.message}.`, { cause: error })
    // Another node with a different key has initialised the empty store first.
    throw error instanceof SecretBoxError ? new StartProblem(error.message, { cause: error }) : error
  })

  const app = fastify({
    loggerInstance: log,
    // One logger for all requests: nothing is logged per request, so a child logger for each would be wasted.
    childLoggerFactory: (logger) => logger,
    logController: new LogController({ disableRequestLogging: true }),
    // No route has a schema for Fastify. By default, it would load two compilers for them at every start.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    clientErrorHandler: rejectUnparsed,
    rewriteUrl: rewriteTrackingUrl,
    // For paths that cannot be decoded. Fastify rejects them before it looks for a route.
    frameworkErrors: (_error, _request, reply: FastifyReply) => {
      void reply
        .code(400)
        .send(
          errorBody(new ApiError('invalid_request', { message: 'The path or the query string is not valid. Check its percent-encoding.' })),
        )
    },
    // 1.5 times the body timeout, so that the tracking API responds with its own error first. Node.js applies the longer of the two
    // timeouts to the whole request, so headersTimeout, which is a minute by default, must be the shorter one. Node.js only checks
    // the timeouts at an interval.
    requestTimeout: 1.5 * bodyTimeoutMs,
    http: { headersTimeout: bodyTimeoutMs, connectionsCheckingInterval: bodyTimeoutMs / 2 },
    keepAliveTimeout: 72_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
  }) as unknown as FastifyInstance
  if (parts.onRoute) app.addHook('onRoute', parts.onRoute)
  const { silent } = boundConnections(app)
  // Bodies for unknown paths, and for paths that expect none, are not read: they would only use memory and be discarded.
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
    // Anyone can send such requests, for example a body that cannot be read for a path that does not exist. They are not logged.
    if (((error as { statusCode?: number }).statusCode ?? 500) < 500)
      return reply.code(400).send(errorBody(new ApiError('invalid_request')))
    request.log.error({ err: error }, 'a request failed')
    return reply.code(500).send(errorBody(new ApiError('internal_error')))
  })
  registerReadiness(app, { check: () => store.check(), authorize: (request) => access.allows(request) })
  const oauth = createOAuth({ store, clock, requestedOrigin: (request) => proxies.requestedOrigin(request) })
  await oauth.register(app)
  const backlogLimit =
    config.maxBacklog === null
      ? undefined
      : new BacklogLimit({ maxPending: config.maxBacklog, ledger: () => store.books.ledger(), behind: () => pacing.behind() })
  registerIngest(app, {
    store,
    oauth: (token) => oauth.sourcesOf(token),
    plan: planRoutes,
    clock,
    pacing,
    backlogLimit,
    proxies,
    privacy,
    plans,
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
    pacing: () => pacing.state,
    combine: parts.supervised?.combineMetrics,
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
      command: commandForm(),
    },
    dial: createDialCheck({ guard, lookup: parts.lookup, ca: parts.ca }),
    backups,
  }
  const { live } = observer
  const flushStats = (): Promise<void> => observer.flushStats()
  const replays = createReplayRunner({
    store: store.replays,
    clock,
    onError(err) {
      // The store reports by itself that it is unavailable.
      if (!(err instanceof StoreUnavailable)) log.error({ err }, 'a step of a replay job failed and will be retried')
    },
  })
  let url = ''
  const alerts = createAlerts({
    store,
    clock,
    plan: planRoutes,
    failureOf: (destinationId) => delivery.health(destinationId)?.failure?.reason ?? null,
    violations: (nowMs) => observer.recentViolations(nowMs),
    storePath: path,
    quarantineDays: config.quarantineDays,
    baseUrl: () => config.publicUrl ?? url,
    version: VERSION,
    onAccepted: (event) => observer.ingest.onAccepted(event),
    flushStats,
    onError: (err) => log.error({ err }, 'the rules for alerts could not be evaluated'),
  })
  // For the control API. Senders have their own, so that nobody who saves code can delay deliveries.
  const transformer = new ThreadTransformer()
  const checkCode = (code: string) => transformer.check(code)
  const catalogInstaller = new IntegrationsInstaller({ folder: integrationsFolder(config) })
  const routes = await registerControl(app, {
    store,
    clock,
    delivery,
    checkCode,
    catalog: () => openCatalog(integrationsFolder(config)),
    plan: planRoutes,
    operatorTools,
    catalogInstaller,
    live,
    flushStats,
    flushEvents: () => observer.flushEvents(),
    flushViolations: () => observer.flushViolations(),
    planFaults: (planId) => plans.faults(planId),
    replays,
    alerts,
    access,
    privacy,
  })

  registerDocs(app, {
    document: () => apiDocument(routes),
    site: join(import.meta.dirname, '..', '..', '..', 'docs', '.vitepress', 'dist'),
  })
  const hasDashboard = registerDashboard(app, { folder: join(import.meta.dirname, '..', '..', 'dashboard', 'dist') })

  const retention = setInterval(
    () => void store.dropExpired().catch((err: unknown) => log.error({ err }, 'deleting expired data failed')),
    RETENTION_EVERY_MS,
  )
  retention.unref()

  async function stop(): Promise<readonly string[]> {
    const budget = new StopBudget()
    // First of all, and before anything is awaited: no attempt starts from here on.
    const sending = delivery.stop(STOP_MS.attempts, STOP_MS.outcomes)
    clearInterval(retention)
    backlogLimit?.close()
    observer.live.close()
    const { requests, recorded } = await stopStages(budget, sending)
    if (requests > 0)
      log.warn({ requests }, 'stopping before all requests were answered: their messages are sent again after the next start')
    await Promise.all([
      budget.wait('storing renewed tokens of integrations', STOP_MS.counts, tokens.close()),
      budget.wait('ending threads of transformations', STOP_MS.counts, transformer.close()),
      budget.wait('ending the installation of integrations', STOP_MS.counts, catalogInstaller.close()),
      budget.wait('ending a backup', STOP_MS.counts, backups?.close() ?? Promise.resolve()),
      budget.wait('writing counts', STOP_MS.counts, observer.close()),
    ])
    await budget.wait('closing the store', STOP_MS.store, store.close(budget.leftMs(STOP_MS.store)))
    if (budget.errors.length > 0) throw new AggregateError(budget.errors, 'a step of the stop failed')
    return recorded ? budget.unfinished : ['recording the outcomes of deliveries', ...budget.unfinished]
  }

  /** The steps that need nothing of each other. All of them end within the time for outcomes. */
  async function stopStages(budget: StopBudget, sending: Promise<Unfinished>): Promise<Unfinished> {
    const [unfinished] = await Promise.all([
      sending,
      budget.wait('closing the connections of clients', STOP_MS.outcomes, closeServer(app, silent, STOP_MS.clients)),
      budget.wait('a step of a replay job', STOP_MS.outcomes, replays.stop()),
      budget.wait('evaluating alerts', STOP_MS.outcomes, alerts.stop()),
    ])
    return unfinished
  }

  try {
    await app.listen({ host: config.host, port: config.port })
  } catch (error) {
    await stop()
    const problem = listenProblem(error as NodeJS.ErrnoException, config)
    // Another program took the port since it was checked. This is the only time that the token can be shown.
    throw admin.generated === null
      ? problem
      : new StartProblem(`${problem.message} Save the admin token, which was just created: ${admin.generated}`)
  }
  url = urlOf(app.server.address() as AddressInfo)
  replays.start()
  alerts.start()
  void store.dropExpired().catch((err: unknown) => log.error({ err }, 'deleting expired data failed'))
  let closing: Promise<readonly string[]> | undefined
  return {
    url,
    firstSource: first,
    generatedToken: admin.generated,
    hasDashboard,
    store,
    storePlace: place,
    close: () => (closing ??= stop()),
  }
}

function reportStoreState(problem: string | null, log: Log, metrics: Metrics): void {
  metrics.storeState(problem)
  if (problem === null) log.info('the store accepts writes again')
  else log.error({ problem }, 'the store does not accept writes: requests are answered with 503, and delivery results are recorded later')
}

async function initializeStore(
  store: Store,
  { adminToken }: Config,
  { clock, proxies, log, retry }: { clock: Clock; proxies: TrustedProxies; log: Log; retry: Retry },
) {
  const fresh = generateToken()
  const admin = await retry(() => loadAdminToken(store, adminToken, fresh))
  const onFailure: AttemptListener = (attempt) => log.warn(attempt, 'a request was rejected because of an invalid control token')
  const access = await retry(() => createAccess({ store, clock, admin, proxies, onFailure }))
  // Loaded at startup, so that ingest never has to wait for it or store a message without it.
  const privacyKey = await retry(() => store.secrets.getOrCreate('privacy_key', randomBytes(32).toString('base64url')))
  const first = await retry(() => findOrCreateFirstSource(store))
  await retry(() => store.settings.ensureSystemSource())
  return { admin, access, privacy: createPrivacy(privacyKey), first }
}

function allowsPrivate({ privateAddresses, host }: Config): boolean {
  return privateAddresses === 'auto' ? isLoopback(host) : privateAddresses === 'allow'
}

/** The main thread and the thread that writes to the store need a core each. With a single core, another thread would only add context switches. */
function senderCount(config: Config): number {
  if (config.senders !== 'auto') return config.senders
  const cores = coresForThisProcess(config)
  return cores === 1 ? 0 : Math.max(1, cores - 2)
}

/** Starts no process until an integration has work. */
function createHosts(
  config: Config,
  guard: HostOptions['guard'],
  log: Log,
  parts: Pick<AppParts, 'integrations'> & { tokens: () => TokenKeeper },
): Hosts {
  const { integrationHosts, integrationsGateway: gateway, integrationsCa } = config
  const ca = integrationsCa === null ? null : resolve(integrationsCa)
  if (ca !== null) checkAuthorities(ca)
  return new Hosts({
    count: integrationHosts === 'auto' ? Math.min(coresForThisProcess(config), MAX_AUTO_HOSTS) : integrationHosts,
    host() {
      const url = parts.integrations ?? findIntegrationsPackage(integrationsFolder(config))
      if (url === null) return null
      return { guard, closeGraceMs: CLOSE_GRACE_MS, gateway, ca, packageUrl: url.href, codeFolders: codeFolders(url) }
    },
    onLost: (err) => log.error({ err }, 'a process that runs integrations failed and is replaced'),
    onOutput: (line, host) => log.warn({ host, line }, 'an integration printed a line'),
    onNewRefreshToken: (destinationId, renewed) => parts.tokens().keep(destinationId, renewed),
  })
}

function checkAuthorities(file: string): void {
  try {
    void new X509Certificate(readFileSync(file))
  } catch (error) {
    throw new StartProblem(`SWITCHYARD_INTEGRATIONS_CA must be a PEM file with certificates. ${file}: ${(error as Error).message}.`)
  }
}

function noSchemas(): never {
  throw new Error('routes check their input themselves and must not have a schema for Fastify')
}
