// The parts of the service as seen by a caller that is limited to sources. The routes of such a caller are made from these parts, so handlers need
// not know about scopes.

import type { ControlParts } from '../routes/route.ts'
import { limitedAlerts } from './limited-alerts.ts'
import { limitedStore } from './limited-store.ts'
import type { Scope } from './scope.ts'

export function limitedParts(parts: ControlParts, scope: Scope): ControlParts {
  const { store, delivery, live, alerts, planFaults } = parts
  const isWhole = (destinationId: string): boolean => {
    const destination = store.configuration().destinations.get(destinationId)
    return destination !== undefined && scope.isWhole(store.configuration(), destination)
  }
  return {
    ...parts,
    store: limitedStore(store, scope),
    delivery: {
      test: async (id, message) => (isWhole(id) ? delivery.test(id, message) : undefined),
      health: (id) => (isWhole(id) ? delivery.health(id) : undefined),
      preview: (...args) => delivery.preview(...args),
      choices: (...args) => delivery.choices(...args),
      describeRequest: (...args) => delivery.describeRequest(...args),
    },
    live: live && { listen: (filter, tokenId) => live.listen({ ...filter, sourceIds: scope.sourceIds }, tokenId) },
    alerts: alerts && limitedAlerts(alerts, store, scope),
    planFaults: planFaults && ((planId) => (scope.limit(store.configuration()).plans.has(planId) ? planFaults(planId) : [])),
  }
}
