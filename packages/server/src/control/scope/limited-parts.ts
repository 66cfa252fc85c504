// The parts of the service as seen by a caller that is limited to sources. The routes of such a caller are made from these parts, so handlers need
// not know about scopes.

import type { ControlParts } from '../routes/route.ts'
import { limitedAlerts } from './limited-alerts.ts'
import { limitedStore } from './limited-store.ts'
import type { Scope } from './scope.ts'

export function limitedParts(parts: ControlParts, scope: Scope): ControlParts {
  const { store, delivery, live, alerts, planFaults, queries } = parts
  const isWhole = (destinationId: string): boolean => scope.hasWhole(store.configuration(), destinationId)
  return {
    ...parts,
    store: limitedStore(store, scope),
    delivery: {
      test: async (id, message) => (isWhole(id) ? delivery.test(id, message) : undefined),
      health: (id) => (isWhole(id) ? delivery.health(id) : undefined),
      preview: (...args) => delivery.preview(...args),
      choices: (...args) => delivery.choices(...args),
      checkWarehouse: (...args) => delivery.checkWarehouse(...args),
      describeRequest: (...args) => delivery.describeRequest(...args),
      retryNow: (id) => isWhole(id) && delivery.retryNow(id),
      loadNow: (id) => (isWhole(id) ? delivery.loadNow(id) : undefined),
    },
    live: live && { listen: (filter, tokenId) => live.listen({ ...filter, sourceIds: scope.sourceIds }, tokenId) },
    queries: queries && {
      run: (query) => queries.run(query, scope.sourceIds),
      tables: (lake) => queries.tables(lake, scope.sourceIds),
    },
    alerts: alerts && limitedAlerts(alerts, store, scope),
    planFaults: planFaults && ((planId) => (scope.limit(store.configuration()).plans.has(planId) ? planFaults(planId) : [])),
  }
}
