// The parts of the service as seen by a caller that is limited to sources. The routes of such a caller are made from these parts, so handlers need
// not know about scopes.

import type { ControlParts } from '../routes/route.ts'
import { limitedAlerts } from './limited-alerts.ts'
import { limitedStore } from './limited-store.ts'
import type { Scope } from './scope.ts'

/** What a limited caller gets as it is: it belongs to no source, or only routes that check the scope themselves use it. A new part must be decided about. */
type Unlimited =
  | 'clock'
  | 'access'
  | 'privacy'
  | 'checkUrl'
  | 'lakeFolder'
  | 'checkCode'
  | 'route'
  | 'catalog'
  | 'operatorTools'
  | 'catalogInstaller'
  | 'warehouseInstaller'
  | 'flushStats'
  | 'flushEvents'
  | 'flushViolations'
  | 'replays'
  | 'learning'

export function limitedParts(parts: ControlParts, scope: Scope): ControlParts {
  const { store, delivery, live, alerts, planFaults, queries, archives, loads, upkeep } = parts
  const isWhole = (destinationId: string): boolean => scope.hasWhole(store.configuration(), destinationId)
  const limited: Required<Omit<ControlParts, Unlimited>> = {
    store: limitedStore(store, scope),
    delivery: {
      test: async (id, message) => (isWhole(id) ? delivery.test(id, message) : undefined),
      health: (id) => (isWhole(id) ? delivery.health(id) : undefined),
      preview: (...args) => delivery.preview(...args),
      choices: (...args) => delivery.choices(...args),
      checkWarehouse: (...args) => delivery.checkWarehouse(...args),
      describeRequest: (...args) => delivery.describeRequest(...args),
      retryNow: (id) => isWhole(id) && delivery.retryNow(id),
    },
    live: live && { listen: (filter, tokenId) => live.listen({ ...filter, sourceIds: scope.sourceIds }, tokenId) },
    queries: queries && {
      run: (query) => queries.run(query, scope.sourceIds),
      tables: (lake) => queries.tables(lake, scope.sourceIds),
    },
    archives: archives && {
      size: (selection) => archives.size({ ...selection, sourceIds: (selection.sourceIds ?? scope.sourceIds).filter(scope.has) }),
    },
    loads: loads && { want: async (id) => (isWhole(id) ? loads.want(id) : undefined) },
    upkeep: upkeep && { want: async (id) => (isWhole(id) ? upkeep.want(id) : undefined) },
    alerts: alerts && limitedAlerts(alerts, store, scope),
    planFaults: planFaults && ((planId) => (scope.limit(store.configuration()).plans.has(planId) ? planFaults(planId) : [])),
  }
  return { ...parts, ...limited }
}
