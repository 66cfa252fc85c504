// Where the messages of a batch go, and where not and why (B5). Pure: the same configuration and content give the same
// plan, which is stored with the messages in one transaction. Invariant: every message and every destination attached to
// its source is in exactly one shipment or skip. Destinations of other sources cost nothing, however many there are.

import type { JsonObject } from '@switchyard/protocol'
import { timestampMs } from '../outbound-message.ts'
import type { Configuration, Destination, Plan, PlannedShipment, SegmentContent, Skip, SkipReason } from '../store/store.ts'

/** The name that all webhooks share in `integrations`; each also has its own. */
const SHARED_NAME = 'Webhooks'
const HISTORICAL_MS = 24 * 60 * 60 * 1_000

interface Routes {
  destinations: readonly Destination[]
  /** The plan of a batch that says nothing about destinations; null when the messages' times must be looked at. */
  usual: Plan | null
}

const NOWHERE: Routes = {
  destinations: [],
  usual: { shipments: [], skips: [{ destinationId: null, reason: 'no_destination', indexes: null }] },
}

// A configuration is replaced as a whole, so what is made from it lives as long as it does.
const routesOf = new WeakMap<Configuration, ReadonlyMap<string, Routes>>()

export function planRoutes(configuration: Configuration, sourceId: string, content: SegmentContent): Plan {
  let bySource = routesOf.get(configuration)
  if (bySource === undefined) {
    bySource = indexBySource(configuration)
    routesOf.set(configuration, bySource)
  }
  const routes = bySource.get(sourceId) ?? NOWHERE
  const saysWhere = routes !== NOWHERE && (content.integrations !== null || hasIntegrations(content.items))
  if (routes.usual !== null && !saysWhere) return routes.usual
  return judged(routes.destinations, content, saysWhere)
}

function indexBySource({ destinations }: Configuration): Map<string, Routes> {
  const attached = new Map<string, Destination[]>()
  for (const destination of destinations.values()) {
    for (const sourceId of new Set(destination.sourceIds)) {
      const others = attached.get(sourceId)
      if (others === undefined) attached.set(sourceId, [destination])
      else others.push(destination)
    }
  }
  const routes = new Map<string, Routes>()
  for (const [sourceId, destinations] of attached) routes.set(sourceId, { destinations, usual: usualPlan(destinations) })
  return routes
}

function usualPlan(destinations: readonly Destination[]): Plan | null {
  const shipments: PlannedShipment[] = []
  const skips: Skip[] = []
  for (const { id, enabled, historical } of destinations) {
    if (!enabled) skips.push({ destinationId: id, reason: 'destination_disabled', indexes: null })
    else if (historical) shipments.push({ destinationId: id, indexes: null })
    else return null
  }
  return { shipments, skips }
}

function hasIntegrations(items: SegmentContent['items']): boolean {
  for (const item of items) if (item !== null && item['integrations'] != null) return true
  return false
}

function judged(destinations: readonly Destination[], content: SegmentContent, saysWhere: boolean): Plan {
  const shipments: PlannedShipment[] = []
  const skips: Skip[] = []
  let old: boolean[] | undefined
  for (const destination of destinations) {
    const { id, enabled } = destination
    if (!enabled) {
      skips.push({ destinationId: id, reason: 'destination_disabled', indexes: null })
      continue
    }
    if (!destination.historical) old ??= content.items.map((item, index) => item !== null && isHistorical(content, index))
    const sent: number[] = []
    const unwanted: number[] = []
    const tooOld: number[] = []
    for (const [index, item] of content.items.entries()) {
      if (item === null) continue
      if (saysWhere && !isWanted(content.integrations, item['integrations'], destination.name)) unwanted.push(index)
      else if (!destination.historical && old?.[index]) tooOld.push(index)
      else sent.push(index)
    }
    const total = content.items.length
    if (sent.length > 0) shipments.push({ destinationId: id, indexes: allOr(sent, total) })
    if (unwanted.length > 0) skips.push(skipped(id, 'integrations_disabled', unwanted, total))
    if (tooOld.length > 0) skips.push(skipped(id, 'historical', tooOld, total))
  }
  return { shipments, skips }
}

/** The most exact name decides: the destination's own, then the one that webhooks share, then All. */
function isWanted(batch: JsonObject | null, own: JsonObject | null | undefined, name: string): boolean {
  const said = valueOf(batch, own, name) ?? valueOf(batch, own, SHARED_NAME) ?? valueOf(batch, own, 'All')
  // Options for a destination are an object, and a reason to send. Only a false is a no.
  return said !== false
}

/** The message's own word over its batch's. Own keys only: a destination may be called `constructor`. */
function valueOf(batch: JsonObject | null, own: JsonObject | null | undefined, key: string): unknown {
  if (own != null && Object.hasOwn(own, key)) return own[key]
  return batch !== null && Object.hasOwn(batch, key) ? batch[key] : undefined
}

function isHistorical(content: SegmentContent, index: number): boolean {
  return content.receivedAtMs - timestampMs(content, index) > HISTORICAL_MS
}

function allOr(indexes: readonly number[], total: number): readonly number[] | null {
  return indexes.length === total ? null : indexes
}

function skipped(destinationId: string, reason: SkipReason, indexes: readonly number[], total: number): Skip {
  return { destinationId, reason, indexes: allOr(indexes, total) }
}
