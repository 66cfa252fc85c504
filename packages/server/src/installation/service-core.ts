// Opens the store and makes the stages that every other part needs: delivery, observation, access. Nothing listens yet.

import { randomBytes, randomUUID, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { VERSION } from '../api/version.ts'
import { type Config, isLoopback } from '../config.ts'
import { generateToken, loadAdminToken } from '../control/access/admin-token.ts'
import { type AttemptListener, createAccess, type TrustedProxies } from '../control/access/authorize.ts'
import type { OpenCatalog } from '../control/routes/route.ts'
import { Delivery } from '../delivery/delivery.ts'
import type { SettledEvent } from '../delivery/events/events.ts'
import type { HostOptions } from '../delivery/link/host-channel.ts'
import { openInlineSender, openSenderThreads } from '../delivery/open-senders.ts'
import { Hosts, type HostsOptions } from '../delivery/supervision/hosts.ts'
import { copyFolderName, createCopyFolder } from '../delivery/supervision/loading/bucket-copies.ts'
import { LoaderAnswering } from '../delivery/supervision/loading/loader-answers.ts'
import { Loaders } from '../delivery/supervision/loading/loaders.ts'
import { TokenKeeper } from '../delivery/supervision/token-keeper.ts'
import { createProxies } from '../http/proxies.ts'
import { createPrivacy } from '../ingest/privacy/privacy.ts'
import type { Log } from '../logging/log.ts'
import { Metrics } from '../observe/metrics.ts'
import { createObserver } from '../observe/observe.ts'
import { createPlanJudges } from '../plans/plan-judges.ts'
import { loadValidator } from '../plans/plan-schema-compiler.ts'
import { SecretBoxError } from '../secrets/secret-box.ts'
import { readState } from '../store/port/integration-state.ts'
import { type StateEntry, type Store, StoreUnavailable } from '../store/store.ts'
import { type Clock, createClock } from '../timing/clock.ts'
import { IngestPacing } from '../timing/ingest-pacing.ts'
import { DefinitionHolds } from './definition-holds.ts'
import { findOrCreateFirstSource } from './first-source.ts'
import { ingestThreadCount } from './ingest-thread-count.ts'
import { openCatalog } from './integrations-catalog.ts'
import {
  codeFolders,
  findIntegrationsPackage,
  findPackage,
  integrationsFolder,
  lakeFolder,
  WAREHOUSE,
  warehouseFolder,
} from './integrations-package.ts'
import { openStore, retryWhileUnavailable, StartProblem } from './open-store.ts'
import { coresForThisProcess } from './processes/process-count.ts'
import type { Supervised } from './processes/supervised.ts'
import { startSingleSignOn } from './start-single-sign-on.ts'

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
  /** Its catalogue, with which destinations are compared. */
  catalog?: OpenCatalog
  /** The timeout for receiving the body of a request. */
  bodyTimeoutMs?: number
  /** Aborts waiting for a store that does not respond at startup. */
  stopping?: AbortSignal
  /** Called for every route that is registered. */
  onRoute?: (route: { method: string | string[]; url: string }) => void
}

/** Retries while the store is unavailable. */
type Retry = <T>(ask: () => Promise<T>) => Promise<T>

/** How long senders that are being closed wait for requests in flight, after that. */
const CLOSE_GRACE_MS = 200
/** Each host takes about 100 MB, and more for each integration that it runs. */
const MAX_AUTO_HOSTS = 4

export type ServiceCore = Awaited<ReturnType<typeof openServiceCore>>

export async function openServiceCore(config: Config, log: Log, parts: AppParts) {
  const metrics = new Metrics()
  const allowed = { allowPrivate: allowsPrivate(config), allow: [...config.allowAddresses] }
  const readStateOf = (destinationId: string): Promise<StateEntry[]> => readState(store.documents, destinationId, clock.wallMs())
  const hosts = createHosts(config, allowed, log, { ...parts, tokens: () => tokens, readState: readStateOf })
  const copyFolder = copyFolderName()
  const loaders = createLoaders(config, copyFolder, allowed, log, (about) => answering.answer(about))
  const opened = await openStore(config, {
    log,
    onState: (problem) => reportStoreState(problem, log, metrics),
    onCommit: metrics.committed,
    onRoundTrip: metrics.roundTrip,
    stopping: parts.stopping,
    processIndex: parts.supervised?.index,
  })
  const { store, path, place } = opened
  const tokens = new TokenKeeper({
    store,
    onError: (err) => log.error({ err }, 'the renewed tokens of an integration could not be stored'),
  })
  const clock = (parts.clock ?? createClock)(store.scheduleStartMs)
  store.useClock(clock)
  const answering = new LoaderAnswering({ store, nowMs: () => clock.wallMs(), newInstallation: () => randomUUID() })
  const plans = followPlans(store, log)
  const observer = createObserver({ store, clock, log, metrics, version: VERSION, eventCatalog: config.eventCatalog === 'on', plans })
  const pacing = new IngestPacing()
  const settled = (event: SettledEvent): void => {
    observer.delivery.settled?.(event)
    if (event.loads === undefined) return
    // If it fails, the files of the load are merged later: see warehouse-upkeep.ts.
    answering
      .settled(event.destination.id, event.loads)
      .catch((err: unknown) => log.error({ err }, 'the end of a load could not be stored'))
  }
  const holds = createHolds(config, log, store, parts, () => delivery.holdsChanged())
  const delivery: Delivery = new Delivery({
    store,
    holdOf: holds.holdOf,
    senders: openSenders(config, log, { parts, clock, hosts, loaders, guard: allowed }),
    clock,
    events: { ...observer.delivery, settled: (event) => settled(event) },
    pacing,
    ...(parts.random ? { random: parts.random } : {}),
  })
  store.onConfiguration(() => void holds.follow())
  void holds.follow()
  const proxies = createProxies(config.trustedProxies, config.publicUrl)
  // PostgreSQL may become unavailable again right after it was opened, so retry. Retrying does not make a SQLite file writable.
  const retry: Retry = path === null ? (ask) => retryWhileUnavailable(ask, place, { log, stopping: parts.stopping }) : (ask) => ask()
  const initialized = await initializeStore(store, config, { clock, proxies, log, retry }).catch(async (error) => {
    await delivery.stop(0)
    await holds.close()
    await observer.close()
    await store.close()
    if (error instanceof StoreUnavailable) throw new StartProblem(`The store is not writable: ${error.message}.`, { cause: error })
    // Another node with a different key has initialised the empty store first.
    throw error instanceof SecretBoxError ? new StartProblem(error.message, { cause: error }) : error
  })
  return { ...opened, ...initialized, allowed, copyFolder, tokens, clock, plans, observer, pacing, delivery, holds, proxies }
}

/** Without the catalogue of a package that a test has given, nothing is compared. */
function createHolds(config: Config, log: Log, store: Store, { integrations, catalog }: AppParts, onChange: () => void): DefinitionHolds {
  return new DefinitionHolds({
    open: catalog ?? (integrations === undefined ? () => openCatalog(integrationsFolder(config)) : null),
    configuration: () => store.configuration(),
    onChange,
    onHeld({ id: destinationId, name }, problem) {
      if (problem === null) log.info({ destinationId, name }, 'the destination fits its integration again: its deliveries are sent')
      else
        log.error({ destinationId, name, problem }, 'the destination does not fit its integration: its deliveries are held until it does')
    },
  })
}

function openSenders(
  config: Config,
  log: Log,
  { parts, clock, hosts, loaders, guard }: { parts: AppParts; clock: Clock; hosts: Hosts; loaders: Loaders; guard: HostOptions['guard'] },
) {
  const sending = { guard, ca: parts.ca, closeGraceMs: CLOSE_GRACE_MS }
  const threads = senderCount(config)
  return parts.lookup || parts.clock || threads === 0
    ? openInlineSender({ ...sending, lookup: parts.lookup, now: () => clock.wallMs(), hosts, loaders })
    : openSenderThreads(threads, sending, { onLost: (err) => log.error({ err }, 'a sender thread failed and is replaced'), hosts, loaders })
}

function followPlans(store: Store, log: Log) {
  if (store.configuration().plans.size > 0) loadValidator()
  const plans = createPlanJudges((planId, { rule, message }) =>
    log.error({ planId, rule, problem: message }, 'a rule of a tracking plan cannot be applied; its messages count as valid'),
  )
  plans.follow(store.configuration())
  store.onConfiguration(() => plans.follow(store.configuration()))
  return plans
}

function reportStoreState(problem: string | null, log: Log, metrics: Metrics): void {
  metrics.storeState(problem)
  if (problem === null) log.info('the store accepts writes again')
  else log.error({ problem }, 'the store does not accept writes: requests are answered with 503, and delivery results are recorded later')
}

async function initializeStore(
  store: Store,
  config: Config,
  { clock, proxies, log, retry }: { clock: Clock; proxies: TrustedProxies; log: Log; retry: Retry },
) {
  const fresh = generateToken()
  const admin = await retry(() => loadAdminToken(store, config.adminToken, fresh))
  const onFailure: AttemptListener = (attempt) => log.warn(attempt, 'a request was rejected because of an invalid control token')
  const singleSignOn = await retry(() => startSingleSignOn(config, { store, clock, log }))
  const access = await retry(() => createAccess({ store, clock, admin, proxies, onFailure, singleSignOn }))
  // Loaded at startup, so that ingest never has to wait for it or store a message without it.
  const privacyKey = await retry(() => store.secrets.getOrCreate('privacy_key', randomBytes(32).toString('base64url')))
  const first = await retry(() => findOrCreateFirstSource(store))
  await retry(() => store.resources.ensureSystemSource())
  return { admin, access, privacy: createPrivacy(privacyKey), first }
}

function allowsPrivate({ privateAddresses, host }: Config): boolean {
  return privateAddresses === 'auto' ? isLoopback(host) : privateAddresses === 'allow'
}

/** The main thread, the thread that writes to the store and each ingest thread need a core. With a single core, another thread would only add context switches. */
function senderCount(config: Config): number {
  if (config.senders !== 'auto') return config.senders
  const cores = coresForThisProcess(config)
  return cores === 1 ? 0 : Math.max(1, cores - 2 - ingestThreadCount(config).count)
}

/** Starts no process until an integration has work. */
function createHosts(
  config: Config,
  guard: HostOptions['guard'],
  log: Log,
  parts: Pick<AppParts, 'integrations'> & Pick<HostsOptions, 'readState'> & { tokens: () => TokenKeeper },
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
    readState: parts.readState,
    onError: (err) =>
      log.error({ err }, 'the values that an integration keeps between messages could not be read; its messages are retried'),
  })
}

/** Starts no process until a warehouse has work. */
function createLoaders(
  config: Config,
  copyFolder: string,
  guard: HostOptions['guard'],
  log: Log,
  answer: (about: unknown) => Promise<unknown>,
): Loaders {
  return new Loaders({
    count: 1,
    host() {
      const url = findPackage(WAREHOUSE, warehouseFolder(config))
      if (url === null) return null
      const lakes = lakeFolder(config)
      if (lakes !== null) mkdirSync(lakes, { recursive: true })
      const dataFolders = lakes === null ? [] : [lakes]
      const folders = codeFolders(url)
      const scratchFolder = createCopyFolder(copyFolder)
      const code = { gateway: null, ca: null, packageUrl: url.href, codeFolders: folders }
      return { guard, closeGraceMs: CLOSE_GRACE_MS, ...code, dataFolders, scratchFolder }
    },
    onLost: (err) => log.error({ err }, 'a process that loads messages into warehouses failed and is replaced'),
    onOutput: (line, loader) => log.warn({ loader, line }, 'a loader printed a line'),
    onError: (err) => log.error({ err }, 'what is stored of the tables of warehouses could not be read or changed; the load is repeated'),
    answer,
  })
}

function checkAuthorities(file: string): void {
  try {
    void new X509Certificate(readFileSync(file))
  } catch (error) {
    throw new StartProblem(`SWITCHYARD_INTEGRATIONS_CA must be a PEM file with certificates. ${file}: ${(error as Error).message}.`)
  }
}
