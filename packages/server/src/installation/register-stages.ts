// Registers what the service answers: each stage gets its own routes and the functions that it needs from other stages.

import { join, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { VERSION } from '../api/version.ts'
import { type Config, isLoopback } from '../config.ts'
import { registerControl } from '../control/control.ts'
import { apiDocument } from '../control/openapi/api-document.ts'
import type { OperatorTools } from '../control/routes/operator-tools.ts'
import { createAddressGuard } from '../delivery/sender/http/address-guard.ts'
import { createDialCheck } from '../delivery/sender/http/dial-check.ts'
import { registerReadiness } from '../http/readiness.ts'
import { type Deciding, MAX_BODIES_BYTES, registerIngest, type ShortWays } from '../ingest/ingest.ts'
import { createOAuth } from '../oauth/oauth.ts'
import { registerDashboard } from '../pages/dashboard.ts'
import { registerDocs } from '../pages/docs.ts'
import { routeMessages } from '../routing/route-messages.ts'
import type { BackgroundWork } from './background-work.ts'
import { commandForm } from './command-form.ts'
import type { HttpServer } from './http-server.ts'
import { openCatalog } from './integrations-catalog.ts'
import { integrationsFolder, lakeFolder } from './integrations-package.ts'
import type { AppParts, ServiceCore } from './service-core.ts'

const PACKAGES = join(import.meta.dirname, '..', '..', '..')

interface Service {
  core: ServiceCore
  work: BackgroundWork
  config: Config
  parts: AppParts
  bodyTimeoutMs: number
}

/** Resolves with what decides about tracking requests, and whether a build of the dashboard was found. */
export async function registerStages(
  { app, bypass, connections, pages }: HttpServer,
  service: Service,
): Promise<{ deciding: Deciding; hasDashboard: boolean }> {
  const { store, access } = service.core
  registerReadiness(app, { check: () => store.check(), authorize: (request) => access.allows(request) })
  const deciding = await registerTracking(app, service, { bypass, silent: connections.silent })
  registerMetrics(app, service)
  const routes = await registerControlApi(app, service)
  registerDocs(app, { document: () => apiDocument(routes), site: join(PACKAGES, '..', 'docs', '.vitepress', 'dist') })
  const { hasBuild, sendNotFound } = registerDashboard(app, { folder: join(PACKAGES, 'dashboard', 'dist') })
  if (hasBuild) pages.sendNotFound = sendNotFound
  return { deciding, hasDashboard: hasBuild }
}

async function registerTracking(app: FastifyInstance, { core, work, config, bodyTimeoutMs }: Service, ways: ShortWays): Promise<Deciding> {
  const { store, clock, pacing, proxies, privacy, plans, observer } = core
  const oauth = createOAuth({ store, clock, requestedOrigin: (request) => proxies.requestedOrigin(request) })
  await oauth.register(app)
  return registerIngest(
    app,
    {
      store,
      oauth: (token) => oauth.sourcesOf(token),
      route: routeMessages,
      clock,
      pacing,
      backlogLimit: work.backlogLimit,
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
    },
    ways,
  )
}

function registerMetrics(app: FastifyInstance, { core: { observer, access, delivery, pacing }, config, parts }: Service): void {
  observer.registerMetrics(app, {
    access: config.metrics === 'auto' ? (isLoopback(config.host) ? 'local' : 'token') : config.metrics,
    authorize: (request) => access.allows(request),
    states: () => delivery.states(),
    pacing: () => pacing.state,
    combine: parts.supervised?.combineMetrics,
  })
}

function registerControlApi(app: FastifyInstance, service: Service) {
  const { core, work, config, parts } = service
  const { store, clock, delivery, observer, plans, access, privacy } = core
  return registerControl(app, {
    store,
    clock,
    delivery,
    checkCode: (code) => work.transformer.check(code),
    catalog: parts.catalog ?? (() => openCatalog(integrationsFolder(config))),
    route: routeMessages,
    operatorTools: operatorTools(service),
    catalogInstaller: work.catalogInstaller,
    warehouseInstaller: work.warehouseInstaller,
    queries: work.queries,
    checkUrl: (url) => (url.startsWith('file:') ? folderProblem(url, lakeFolder(config)) : null),
    lakeFolder: lakeFolder(config),
    live: observer.live,
    flushStats: () => observer.flushStats(),
    flushEvents: () => observer.flushEvents(),
    flushViolations: () => observer.flushViolations(),
    planFaults: (planId) => plans.faults(planId),
    replays: work.replays,
    archives: work.archives,
    loads: work.loads,
    upkeep: work.upkeep,
    alerts: work.alerts,
    access,
    privacy,
  })
}

/** Why a lake cannot be in a folder; null if it can. */
function folderProblem(url: string, root: string | null): string | null {
  if (root === null) return 'cannot be a folder, because SWITCHYARD_LAKE_DIR is not set; set it to a folder that all nodes share'
  const folder = resolve(fileURLToPath(url))
  return folder === root || folder.startsWith(`${root}${sep}`) ? null : `must be below ${pathToFileURL(root).href}, the folder of lakes`
}

function operatorTools({ core, config, parts }: Service): OperatorTools {
  const { clock, path, place, nodeName, keyPath, allowed, backups } = core
  return {
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
    dial: createDialCheck({ guard: createAddressGuard(allowed), lookup: parts.lookup, ca: parts.ca }),
    backups,
  }
}
