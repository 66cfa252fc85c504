// Decides to which destinations the messages of a batch are sent, and why not to the others (docs/guide/delivery.md). Pure: the
// same configuration and content give the same routing, which is stored with the messages in one transaction. Invariant: every pair
// of a message and a destination attached to its source is in exactly one shipment or skip. Destinations of other sources cost
// nothing, however many there are.

import { allIntegrations, type JsonObject } from '@switchyard/protocol'
import { kindOf } from '../destinations/kinds.ts'
import type { FilterJudge } from '../destinations/port/kind.ts'
import { oncePerObject } from '../model/once-per-object.ts'
import { timestampMs } from '../outbound/outbound-message.ts'
import {
  type Configuration,
  type Destination,
  FILTER_RULES,
  type FilterRule,
  type RoutedShipment,
  type Routing,
  type SegmentContent,
  type Skip,
} from '../store/store.ts'
import { filterJudge } from './filter.ts'

const HISTORICAL_MS = 24 * 60 * 60 * 1_000

/** The keys of `integrations` that select a destination, besides `All`. */
interface Names {
  own: string
  /** Its aliases and the names that it shares with others. None of them is more specific than another. */
  others: readonly string[]
}

interface Attached {
  destination: Destination
  names: Names
  /** Null if there is no filter, no subscribe expression and no subscription. */
  filter: FilterJudge | null
}

interface Routes {
  attached: readonly Attached[]
  /** The routing for a batch without `integrations`; null if it depends on the messages. */
  usual: Routing | null
}

const NOWHERE: Routes = {
  attached: [],
  usual: { shipments: [], skips: [{ destinationId: null, reason: 'no_destination', indexes: null }] },
}

const routesOf = oncePerObject(indexBySource)

export function routeMessages(configuration: Configuration, sourceId: string, content: SegmentContent): Routing {
  const routes = routesOf(configuration).get(sourceId) ?? NOWHERE
  const hasSelection = routes !== NOWHERE && (content.integrations !== null || hasIntegrations(content.items))
  if (routes.usual !== null && !hasSelection) return routes.usual
  return planByMessage(routes.attached, content, hasSelection)
}

function indexBySource({ destinations }: Configuration): Map<string, Routes> {
  const bySource = new Map<string, Attached[]>()
  for (const destination of destinations.values()) {
    const { name, aliases = [] } = destination
    const others = new Set([...aliases, ...kindOf(destination).sharedNames(destination)])
    const names = { own: name, others: [...others].filter((other) => other !== name) }
    const one: Attached = { destination, names, filter: filterJudge(destination) }
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

function usualPlan(attached: readonly Attached[]): Routing | null {
  const shipments: RoutedShipment[] = []
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

function planByMessage(attached: readonly Attached[], content: SegmentContent, hasSelection: boolean): Routing {
  const shipments: RoutedShipment[] = []
  const skips: Skip[] = []
  let old: boolean[] | undefined
  for (const { destination, names, filter } of attached) {
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
      if (hasSelection && !isSelected(content.integrations, item['integrations'], names)) {
        unwanted.push(index)
        continue
      }
      const rule = filter === null ? null : filter(item, content)
      if (rule !== null) (filtered[rule] ??= []).push(index)
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

/** The destination's own name decides, then all its other names together, then `All`. */
function isSelected(batch: JsonObject | null, message: JsonObject | null | undefined, { own, others }: Names): boolean {
  const value = valueOf(batch, message, own) ?? valueOfOthers(batch, message, others) ?? valueOfAll(batch, message)
  // Only `false` deselects a destination. An object contains options for it and selects it.
  return value !== false
}

/** `false` under one of the names decides, because it may be the choice of a person who did not give consent. */
function valueOfOthers(batch: JsonObject | null, message: JsonObject | null | undefined, names: readonly string[]): unknown {
  let found: unknown
  for (const name of names) {
    const value = valueOf(batch, message, name)
    if (value === false) return false
    found ??= value
  }
  return found
}

/** The message overrides its batch. Only own keys count: a destination may be named `constructor`. */
function valueOf(batch: JsonObject | null, own: JsonObject | null | undefined, key: string): unknown {
  if (own != null && Object.hasOwn(own, key)) return own[key]
  return batch !== null && Object.hasOwn(batch, key) ? batch[key] : undefined
}

function valueOfAll(batch: JsonObject | null, own: JsonObject | null | undefined): unknown {
  const value = own == null ? undefined : allIntegrations(own)
  return value === undefined && batch !== null ? allIntegrations(batch) : value
}

function isHistorical(content: SegmentContent, index: number): boolean {
  return content.receivedAtMs - timestampMs(content, index) > HISTORICAL_MS
}

function allOr(indexes: readonly number[], total: number): readonly number[] | null {
  return indexes.length === total ? null : indexes
}
