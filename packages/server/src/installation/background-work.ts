// What runs beside requests and deliveries: replays, alerts, retention, the thread that checks transformations, and installations of integrations.

import { Alerts } from '../alerts/alerts.ts'
import { VERSION } from '../api/version.ts'
import type { Config } from '../config.ts'
import { ThreadTransformer } from '../delivery/sender/transforming/thread-transformer.ts'
import { LoadRequests } from '../delivery/supervision/loading/load-requests.ts'
import { WarehouseUpkeep } from '../delivery/supervision/loading/warehouse-upkeep.ts'
import { BacklogLimit } from '../ingest/limits/backlog-limit.ts'
import type { Log } from '../logging/log.ts'
import { ArchiveFeed } from '../replaying/archive-feed.ts'
import { ReplayRunner } from '../replaying/replay-runner.ts'
import { routeMessages } from '../routing/route-messages.ts'
import { retentionLines } from '../store/history/retention.ts'
import { INTEGRATION_STATE } from '../store/port/integration-state.ts'
import { StoreUnavailable } from '../store/store.ts'
import { PackageInstaller } from './install-integrations.ts'
import { integrationsFolder, WAREHOUSE, warehouseFolder } from './integrations-package.ts'
import { StoredLakeQueries } from './lake-queries.ts'
import type { ServiceCore } from './service-core.ts'

const RETENTION_EVERY_MS = 60 * 60 * 1_000

export type BackgroundWork = ReturnType<typeof createBackgroundWork>

/** `url` is the address that the service listens on, once it does. */
export function createBackgroundWork(
  { store, path, clock, delivery, observer, pacing, privacy, copyFolder }: ServiceCore,
  config: Config,
  log: Log,
  url: () => string,
) {
  const archives = new ArchiveFeed({
    store,
    read: (lake, request) => delivery.archive(lake, request),
    route: routeMessages,
    privacy,
  })
  const replays = new ReplayRunner({
    store: store.replays,
    clock,
    archives,
    onError(err) {
      // The store reports by itself that it is unavailable.
      if (!(err instanceof StoreUnavailable)) log.error({ err }, 'a step of a replay job failed and will be retried')
    },
  })
  const alerts = new Alerts({
    store,
    clock,
    route: routeMessages,
    failureOf: (destinationId) => delivery.health(destinationId)?.failure ?? null,
    holdOf: (destinationId) => delivery.hold(destinationId),
    violations: (nowMs) => observer.recentViolations(nowMs),
    storePath: path,
    quarantineDays: config.quarantineDays,
    baseUrl: () => config.publicUrl ?? url(),
    version: VERSION,
    onAccepted: (event) => observer.ingest.onAccepted(event),
    flushStats: () => observer.flushStats(),
    onError: (err) => log.error({ err }, 'the rules for alerts could not be evaluated'),
  })
  const warehouses = createWorkOnWarehouses({ store, clock, delivery }, log)
  const dropExpired = (): void => {
    delivery.forgetBefore(retentionLines(clock.wallMs(), config.retentionDays, null).messagesMs)
    const dropped = [store.dropExpired(), store.documents.drop(INTEGRATION_STATE, { beforeMs: clock.wallMs() })]
    for (const each of dropped) each.catch((err: unknown) => log.error({ err }, 'deleting expired data failed'))
  }
  const retention = setInterval(dropExpired, RETENTION_EVERY_MS)
  retention.unref()
  return {
    replays,
    archives,
    alerts,
    ...warehouses,
    retention,
    backlogLimit:
      config.maxBacklog === null
        ? undefined
        : new BacklogLimit({ maxPending: config.maxBacklog, ledger: () => store.books.ledger(), behind: () => pacing.behind() }),
    // For the control API. Senders have their own, so that nobody who saves code can delay deliveries.
    transformer: new ThreadTransformer(),
    catalogInstaller: new PackageInstaller({ folder: integrationsFolder(config) }),
    queries: new StoredLakeQueries(store, config, {
      ask: (lake, request) => delivery.copyFiles(lake, request),
      folder: copyFolder,
    }),
    warehouseInstaller: new PackageInstaller({ package: WAREHOUSE, folder: warehouseFolder(config) }),
    /** Called when the service listens. */
    start(): void {
      replays.start()
      alerts.start()
      warehouses.loads.start()
      warehouses.upkeep.start()
      dropExpired()
    },
  }
}

function createWorkOnWarehouses({ store, clock, delivery }: Pick<ServiceCore, 'store' | 'clock' | 'delivery'>, log: Log) {
  const loads = new LoadRequests({
    store,
    clock,
    loadNow: (...args) => delivery.loadNow(...args),
    onError: (err) => log.error({ err }, 'requests for loads of warehouses could not be read or deleted'),
  })
  const upkeep = new WarehouseUpkeep({
    store,
    clock,
    step: (destination, cursor) => delivery.upkeep(destination, cursor),
    onFailure: ({ id: destinationId }, err) => {
      if (!(err instanceof StoreUnavailable))
        log.error({ err, destinationId }, 'a step of the upkeep of a warehouse failed and will be retried')
    },
    onProblems: ({ id: destinationId }, problems) =>
      log.warn({ destinationId, problems }, 'the upkeep of a warehouse has ended, and has found problems'),
  })
  return { loads, upkeep }
}
