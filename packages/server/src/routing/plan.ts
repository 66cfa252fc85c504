// Where the messages of a batch go, and where not and why (docs/guide/delivery.md, “Not sent at all”). Pure: the same configuration and content give the same
// plan, which is stored with the messages in one transaction. Invariant: every message and every destination attached to
// its source is in exactly one shipment or skip. Destinations of other sources cost nothing, however many there are.

import { allIntegrations, type JsonObject } from '@switchyard/protocol'
import { timestampMs } from '../outbound/outbound-message.ts'
import {
  type Configuration,
  type Destination,
  FILTER_RULES,
  type FilterRule,
  type Plan,
  type PlannedShipment,
  type SegmentContent,
  type Skip,
} from '../store/store.ts'
import { type FilterJudge, filterJudge } from './filter.ts'

/** The name that all webhooks share in `integrations`; each also has its own. */
const SHARED_NAME = 'Webhooks'
const HISTORICAL_MS = 24 * 60 * 60 * 1_000

interface Attached {
  destination: Destination
  /** Null: every message passes. */
  filter: FilterJudge | null
}

interface Routes {
  attached: readonly Attached[]
  /** The plan of a batch that says nothing about destinations; null when the messages themselves must be looked at. */
  usual: Plan | null
}

const NOWHERE: Routes = {
  attached: [],
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
  return judged(routes.attached, content, saysWhere)
}

function indexBySource({ destinations }: Configuration): Map<string, Routes> {
  const bySource = new Map<string, Attached[]>()
  for (const destination of destinations.values()) {
    const one: Attached = { destination, filter: filterJudge(destination.filter) }
    for (const sourceId of new Set(destination.sourceIds)) {
      const others = bySource.get(sourceId)
      if (others === undefined) bySource.set(sourceId, [one])
      else others.push(one)
    }
  }
  const routes = new Map<string, Routes>()
  for (const [sourceId, attached] of bySource) routes.set(sourceId, { attached, usual: usualPlan(attached) })
  return routes
}

function usualPlan(attached: readonly Attached[]): Plan | null {
  const shipments: PlannedShipment[] = []
  const skips: Skip[] = []
  for (const { destination, filter } of attached) {
    const { id, enabled, historical } = destination
    if (!enabled) skips.push({ destinationId: id, reason: 'destination_disabled', indexes: null })
    else if (historical && filter === null) shipments.push({ destinationId: id, indexes: null })
    else return null
  }
  return { shipments, skips }
}

function hasIntegrations(items: SegmentContent['items']): boolean {
  for (const item of items) if (item !== null && item['integrations'] != null) return true
  return false
}

function judged(attached: readonly Attached[], content: SegmentContent, saysWhere: boolean): Plan {
  const shipments: PlannedShipment[] = []
  const skips: Skip[] = []
  let old: boolean[] | undefined
  for (const { destination, filter } of attached) {
    const { id, enabled } = destination
    if (!enabled) {
      skips.push({ destinationId: id, reason: 'destination_disabled', indexes: null })
      continue
    }
    if (!destination.historical) old ??= content.items.map((item, index) => item !== null && isHistorical(content, index))
    const sent: number[] = []
    const unwanted: number[] = []
    const filtered: Partial<Record<FilterRule, number[]>> = {}
    const tooOld: number[] = []
    for (const [index, item] of content.items.entries()) {
      if (item === null) continue
      const rule = filter === null ? null : filter(item)
      if (saysWhere && !isWanted(content.integrations, item['integrations'], destination.name)) unwanted.push(index)
      else if (rule !== null) (filtered[rule] ??= []).push(index)
      else if (!destination.historical && old?.[index]) tooOld.push(index)
      else sent.push(index)
    }
    const total = content.items.length
    if (sent.length > 0) shipments.push({ destinationId: id, indexes: allOr(sent, total) })
    if (unwanted.length > 0) skips.push({ destinationId: id, reason: 'integrations_disabled', indexes: allOr(unwanted, total) })
    for (const rule of FILTER_RULES) {
      const indexes = filtered[rule]
      if (indexes !== undefined) skips.push({ destinationId: id, reason: 'filtered', rule, indexes: allOr(indexes, total) })
    }
    if (tooOld.length > 0) skips.push({ destinationId: id, reason: 'historical', indexes: allOr(tooOld, total) })
  }
  return { shipments, skips }
}

/** The most exact name decides: the destination's own, then the one that webhooks share, then All. */
function isWanted(batch: JsonObject | null, own: JsonObject | null | undefined, name: string): boolean {
  const said = valueOf(batch, own, name) ?? valueOf(batch, own, SHARED_NAME) ?? valueOfAll(batch, own)
  // Options for a destination are an object, and a reason to send. Only a false is a no.
  return said !== false
}

/** The message's own word over its batch's. Own keys only: a destination may be called `constructor`. */
function valueOf(batch: JsonObject | null, own: JsonObject | null | undefined, key: string): unknown {
  if (own != null && Object.hasOwn(own, key)) return own[key]
  return batch !== null && Object.hasOwn(batch, key) ? batch[key] : undefined
}

function valueOfAll(batch: JsonObject | null, own: JsonObject | null | undefined): unknown {
  const said = own == null ? undefined : allIntegrations(own)
  return said === undefined && batch !== null ? allIntegrations(batch) : said
}

function isHistorical(content: SegmentContent, index: number): boolean {
  return content.receivedAtMs - timestampMs(content, index) > HISTORICAL_MS
}

function allOr(indexes: readonly number[], total: number): readonly number[] | null {
  return indexes.length === total ? null : indexes
}
