// The service as a whole: opens the store, wires the stages to it and to each other's declared needs, listens, and stops
// in the order that loses nothing. The only file that names an adapter. No policy of a stage lives here.

import type { AddressInfo, Socket } from 'node:net'
import fastify, { type FastifyInstance, type FastifyReply, LogController } from 'fastify'
import { type Clock, createClock } from './clock.ts'
import type { Config } from './config.ts'
import { MAX_PARAM_LENGTH, registerControl } from './control/control.ts'
import { generateWriteKey } from './control/sources.ts'
import { openAdminToken } from './control/tokens.ts'
import { createAddressGuard } from './delivery/address-guard.ts'
import { createSender } from './delivery/attempt.ts'
import { createDelivery } from './delivery/delivery.ts'
import type { DeliveryEvents } from './delivery/lane.ts'
import { ApiError, errorBody } from './errors.ts'
import { refuseUnparsed, registerIngest } from './ingest/ingest.ts'
import type { Log } from './log.ts'
import { planRoutes } from './routing/plan.ts'
import { createSecretBox, SecretBoxError } from './secret-box.ts'
import { openSecretKeyFile } from './secret-key-file.ts'
import { createSqliteStore, type SqliteStore } from './store/sqlite/store.ts'
import { type Source, type Store, StoreUnavailable } from './store/store.ts'

export { StoreProblem } from './store/sqlite/database.ts'

export interface App {
  url: string
  /** For whoever has just started it; undefined when every source was deleted. */
  firstSource: Source | undefined
  /** Generated at this start, to be shown once. */
  generatedToken: string | null
  store: Store
  /** Stops accepting, finishes or hands back what is in flight, and closes. Within 10 seconds. */
  close(): Promise<void>
}

/** What a test may put in the place of the real thing. */
export interface AppParts {
  clock?: (lastScheduleMs: number) => Clock
  lookup?: (hostname: string) => Promise<readonly string[]>
  /** Certificate authorities to trust, in PEM. */
  ca?: string
  random?: () => number
}

/** What cannot be started for a reason that a person can mend. */
export class StartProblem extends Error {
  override name = 'StartProblem'
}

const RETENTION_EVERY_MS = 60 * 60 * 1_000
const BODY_TIMEOUT_MS = 10_000
const REQUESTS_GRACE_MS = 2_500
const ATTEMPTS_GRACE_MS = 5_500

export async function createApp(config: Config, log: Log, parts: AppParts = {}): Promise<App> {
  if (config.store.kind !== 'sqlite')
    throw new StartProblem('PostgreSQL is not available in this version yet. Use SWITCHYARD_STORE=sqlite:PATH.')
  const store = await openStore(config.store.path, config, log)
  const clock = (parts.clock ?? createClock)(store.lastScheduleMs)
  store.useClock(clock)
  const guard = createAddressGuard({ allowPrivate: isLoopback(config.host), allow: [...config.allowAddresses] })
  const sender = createSender({ guard, lookup: parts.lookup, ca: parts.ca, now: () => clock.wallMs(), closeGraceMs: 200 })
  const delivery = createDelivery({ store, sender, clock, events: logged(log), ...(parts.random ? { random: parts.random } : {}) })
  const { admin, first } = await firstContents(store, config).catch(async (error: unknown) => {
    await delivery.stop(0)
    await store.close()
    throw error instanceof StoreUnavailable ? new StartProblem(`The store cannot be written: ${error.message}.`) : error
  })

  const app = fastify({
    loggerInstance: log,
    // One logger for all requests: nothing is logged per request, and a child for each is made for nothing.
    childLoggerFactory: (logger) => logger,
    logController: new LogController({ disableRequestLogging: true }),
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    clientErrorHandler: refuseUnparsed,
    // Paths that cannot be decoded; Fastify refuses them before any route is looked for.
    frameworkErrors: (_error, _request, reply: FastifyReply) => {
      void reply.code(400).send(errorBody(new ApiError('invalid_request', { message: 'The path or the query is not valid.' })))
    },
    requestTimeout: BODY_TIMEOUT_MS + 5_000,
    keepAliveTimeout: 72_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
  }) as unknown as FastifyInstance
  app.setNotFoundHandler((_request, reply) => reply.code(404).send(errorBody(new ApiError('not_found'))))
  app.setErrorHandler((error, request, reply) => {
    request.log.error({ err: error }, 'a request failed')
    return reply.code(500).send(errorBody(new ApiError('internal_error')))
  })
  app.get('/healthz', () => ({ success: true }))
  app.get('/readyz', async (_request, reply) => {
    const state = await store.check()
    if (state.ok) return { success: true }
    return reply
      .code(503)
      .header('retry-after', '1')
      .send(errorBody(new ApiError('store_unavailable', { message: state.message })))
  })
  const silent = silentConnections(app)
  registerIngest(app, {
    store,
    plan: planRoutes,
    clock,
    settings: {
      lenientKeys: config.lenientKeys,
      trustedProxies: config.trustedProxies,
      rateLimitPerSecond: config.rateLimit,
      bodyTimeoutMs: BODY_TIMEOUT_MS,
    },
  })
  await registerControl(app, { store, clock, delivery, authorize: admin.authorize })

  const retention = setInterval(
    () => void store.dropExpired(clock.wallMs()).catch((err: unknown) => log.error({ err }, 'retention failed')),
    RETENTION_EVERY_MS,
  )
  retention.unref()

  async function stop(): Promise<void> {
    clearInterval(retention)
    const requests = closeServer(app, silent)
    await delivery.stop(ATTEMPTS_GRACE_MS)
    await requests
    await store.close()
  }

  try {
    await app.listen({ host: config.host, port: config.port })
  } catch (error) {
    await stop()
    throw listenProblem(error as NodeJS.ErrnoException, config)
  }
  void store.dropExpired(clock.wallMs()).catch((err: unknown) => log.error({ err }, 'retention failed'))
  let closing: Promise<void> | undefined
  return {
    url: urlOf(app.server.address() as AddressInfo),
    firstSource: first,
    generatedToken: admin.generated,
    store,
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

/** Connections that have not sent the head of a request. Node.js counts as idle only those that have. */
function silentConnections({ server }: FastifyInstance): ReadonlySet<Socket> {
  const silent = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
  })
  server.on('request', ({ socket }: { socket: Socket }) => void silent.delete(socket))
  return silent
}

async function openStore(path: string, { secretKey, retentionDays }: Config, log: Log): Promise<SqliteStore> {
  const keyFile = secretKey === null ? inWords(`${path}.key`, () => openSecretKeyFile(path)) : null
  if (keyFile?.key === '') throw new StartProblem(`${keyFile.path} is empty. Put back the key that was in it.`)
  const secretBox = createSecretBox(keyFile === null ? (secretKey as string) : keyFile.key)
  const onState = (problem: string | null): void => {
    if (problem === null) log.info('the store accepts again')
    else log.error({ problem }, 'the store cannot accept: calls are answered with 503, and what was delivered is recorded later')
  }
  try {
    const store = await createSqliteStore({ path, secretBox, retentionDays, onState })
    try {
      if (keyFile !== null) inWords(keyFile.path, () => keyFile.keep())
    } catch (error) {
      await store.close()
      throw error
    }
    return store
  } catch (error) {
    if (!(error instanceof SecretBoxError)) throw error
    if (!keyFile?.isNew) throw new StartProblem(error.message)
    throw new StartProblem(
      `${keyFile.path} is missing, and secrets in ${path} are encrypted with the key that was in it. Put it back, or give the key in SWITCHYARD_SECRET_KEY.`,
    )
  }
}

/** What the file system has against it is for whoever starts the service. */
function inWords<T>(path: string, use: () => T): T {
  try {
    return use()
  } catch (error) {
    throw new StartProblem(`${path} cannot be used: ${(error as Error).message}.`, { cause: error })
  }
}

async function firstContents(store: Store, { adminToken }: Config) {
  return { admin: await openAdminToken(store.control, adminToken), first: await firstSource(store) }
}

/** The first start creates `default`. Later starts name the first source that is left. */
async function firstSource(store: Store): Promise<Source | undefined> {
  const { sources } = store.configuration()
  const named = [...sources.values()].find(({ name }) => name === 'default')
  if ((await store.control.getSetting('first_source')) !== undefined) return named ?? [...sources.values()][0]
  // It is there when the first start was cut short.
  const source =
    named ?? (await store.control.createSource({ name: 'default', enabled: true, writeKeys: [generateWriteKey()], requireOAuth: false }))
  await store.control.setSetting('first_source', source.id)
  return source
}

function logged(log: Log): DeliveryEvents {
  return {
    attempted({ destination, deliveryId, messageId, count, attempt, url, outcome }) {
      const { reason, status, timings, verdict } = outcome
      if (verdict === 'success') return
      const fields = {
        destinationId: destination.id,
        deliveryId,
        messageId,
        messages: count,
        attempt,
        url: withoutSecrets(url),
        reason,
        status,
        totalMs: Math.round(timings.totalMs),
      }
      if (reason === 'timeout')
        log.error(fields, `timeout: no response within ${destination.timeoutMs} ms; retried later, within the window`)
      else if (verdict === 'temporary') log.warn(fields, 'the attempt failed; retried later, within the window')
      else log.warn(fields, 'the attempt failed for good at this URL')
    },
    breaker({ id }, state) {
      if (state === 'open') log.warn({ destinationId: id }, 'the destination fails again and again: one probe at a time from now on')
      else log.info({ destinationId: id }, 'the destination answers again')
    },
    trouble({ id }, err) {
      log.error({ destinationId: id, err }, 'an outcome could not be recorded; the delivery stays pending')
    },
  }
}

/** A URL may carry a password or a token. */
function withoutSecrets(url: string): string {
  try {
    const { origin, pathname } = new URL(url)
    return `${origin}${pathname}`
  } catch {
    return 'invalid'
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

function listenProblem({ code, message }: NodeJS.ErrnoException, { host, port }: Config): StartProblem {
  const reasons: Record<string, string> = {
    EADDRINUSE: `Port ${port} on ${host} is taken. Stop what listens there, or choose another: --port ${port === 65_535 ? 8080 : port + 1}`,
    EACCES: `Port ${port} on ${host} is not open to this user. Choose one above 1023: --port 8080`,
    EADDRNOTAVAIL: `${host} is not an address of this machine.`,
    ENOTFOUND: `The host name ${host} is not known.`,
  }
  return new StartProblem(reasons[code ?? ''] ?? `Cannot listen on ${host}, port ${port}: ${message}`)
}

/** An address that means "all" is listened on but cannot be called. */
function urlOf({ address, family, port }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return `http://localhost:${port}`
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
