// Works out what becomes of the destinations of a workspace: an integration of the catalogue, a webhook for the classic destination Webhooks, or nothing,
// with the reason. A destination that already exists is compared with the export, so that every run says what is missing.

import { isDeepStrictEqual } from 'node:util'
import { isObject } from '@switchyard/protocol'
import type { ConditionalFilter } from '../../model/configuration.ts'
import { type Existing, ORIGIN_PREFIX, type PlannedDestination, type PlannedSource, type Secrets } from './planned-workspace.ts'
import { type Catalog, type CatalogIntegration, has } from './workspace-catalog.ts'
import type { ExportedDestination, ExportedFilter, ExportedSubscription } from './workspace-export.ts'
import { convertFilters } from './workspace-filters.ts'
import { isMasked } from './workspace-masks.ts'
import { planSubscriptions } from './workspace-subscriptions.ts'
import { planWebhook } from './workspace-webhook.ts'

/** The classic destination that is a webhook here. */
const WEBHOOKS = 'webhooks'

type ExistingDestination = Existing['destinations'][number]

export interface AboutDestination {
  destination: ExportedDestination
  name: string
  /** Undefined if the export has none for this destination. */
  subscriptions: readonly ExportedSubscription[] | undefined
  filters: readonly ExportedFilter[]
  /** The name of the function, if the destination is one. */
  functionName: string | undefined
  source: PlannedSource | null
  existing: Existing
  catalog: Catalog
  secrets: Secrets
}

export function planDestination(about: AboutDestination): PlannedDestination {
  const { destination, name, source, existing, secrets } = about
  const { id: segmentId, slug, enabled } = destination
  const type = slug === WEBHOOKS && destination.platforms.size === 0 ? 'webhook' : 'integration'
  const found = foundIn(existing, about, type)
  const planned: PlannedDestination = {
    name: found?.name ?? name,
    segmentId,
    type,
    integration: slug,
    // Also the one that is its name now, because it may be renamed.
    aliases: destination.publishedNames.filter((alias) => type !== 'webhook' || alias !== 'Webhooks'),
    source,
    outcome: 'create',
    reason: null,
    notes: [],
    hints: [],
    secrets: [],
    mappingSecrets: new Map(),
    subscriptions: [],
    settings: {},
    conditionalFilters: [],
    enabled,
    id: found?.id ?? null,
    adopts: found !== undefined && found.origin === null,
  }
  const notSupported = (reason: string): PlannedDestination => ({ ...planned, outcome: 'not_supported', reason })
  if (found === undefined && existing.destinations.some((other) => other.name === name))
    return notSupported('Another destination has this name. Rename it, and run the command again.')
  const given = secrets.get(name) ?? (found === undefined ? undefined : secrets.get(found.name)) ?? {}
  if (type === 'webhook') planWebhook(planned, destination, given)
  else {
    const integration = about.catalog.get(slug)
    if (integration === undefined) return notSupported(unknownReason(about))
    const { available, problem } = integration
    if (!available) return notSupported(problem ?? 'It is not available.')
    if (problem !== null) planned.notes.push(`The integration does not work outside of Segment. ${problem}`)
    planSettings(planned, destination, integration, given)
    planSubscriptions(planned, destination, integration, about.subscriptions, given)
  }
  if (source === null) return notSupported(`Its source (${destination.sourceId}) is not in the export.`)
  if (source.outcome === 'not_supported') return notSupported(`Its source ${source.name} is not imported.`)
  planFilters(planned, about.filters, found)
  if (found !== undefined)
    return {
      ...planned,
      outcome: 'exists',
      secrets: [],
      mappingSecrets: new Map(),
      notes: [...planned.notes, ...missingIn(planned, found)],
    }
  if (planned.outcome !== 'create') return planned
  const needs = [
    ...(planned.secrets.length === 0 ? [] : [`Its settings need ${planned.secrets.join(', ')}.`]),
    ...[...planned.mappingSecrets].map(([subscription, fields]) => `Its subscription ${subscription} needs ${fields.join(', ')}.`),
  ]
  return needs.length === 0 ? planned : { ...planned, outcome: 'needs_secrets', reason: needs.join(' ') }
}

/** By its id at Segment; otherwise by its name, if it is of the same kind and was not imported from something else. */
function foundIn(
  { destinations }: Existing,
  { destination, name }: AboutDestination,
  type: PlannedDestination['type'],
): ExistingDestination | undefined {
  const origin = ORIGIN_PREFIX + destination.id
  const isSame = (other: ExistingDestination): boolean =>
    other.type === type && (type === 'webhook' || other.integration === destination.slug) && other.origin === null
  return destinations.find((other) => other.origin === origin) ?? destinations.find((other) => other.name === name && isSame(other))
}

function unknownReason({ destination: { kind, slug, platforms }, functionName }: AboutDestination): string {
  if (functionName !== undefined)
    return `${functionName} is a destination function, whose code runs at Segment. If it needs no network, make its code a transformation of a webhook; otherwise send to your own server, which runs it.`
  if (platforms.size === 0)
    return `${kind} is a classic destination, which is not part of Segment's open-source integrations. If it has a newer version (Actions), use that, or send to it as a webhook.`
  const places = new Set(platforms.values())
  if (!places.has('cloud')) return `${kind} runs only in ${places.has('web') ? 'browsers' : 'mobile apps'} (device mode).`
  return `The catalogue has no integration ${slug}.`
}

function planSettings(
  planned: PlannedDestination,
  destination: ExportedDestination,
  { settings: { properties, required } }: CatalogIntegration,
  given: Readonly<Record<string, unknown>>,
): void {
  const missing = new Set<string>()
  for (const [key, value] of Object.entries(destination.settings)) {
    // Tokens of Segment's own OAuth app are of no use here; `oauth` is always asked for.
    if (value === null || value === '' || key === 'oauth') continue
    if (!has(properties, key)) planned.notes.push(`Setting ${key} is left out: the integration does not have it.`)
    else if (isMasked(value)) missing.add(key)
    else planned.settings[key] = value
  }
  for (const key of required) if (planned.settings[key] === undefined) missing.add(key)
  for (const [key, value] of Object.entries(given)) {
    if (key === 'subscriptions' && !has(properties, key) && isObject(value)) continue
    if (!has(properties, key)) {
      planned.notes.push(`Setting ${key} of --secrets is ignored: the integration does not have it.`)
      continue
    }
    missing.delete(key)
    if (value === null) delete planned.settings[key]
    else planned.settings[key] = value
  }
  planned.secrets = [...missing]
}

/** A destination whose filters are not known completely could send what was kept back at Segment. */
function planFilters(planned: PlannedDestination, exported: readonly ExportedFilter[], found: ExistingDestination | undefined): void {
  const { filters, problems } = convertFilters(exported)
  planned.conditionalFilters = filters
  if (problems.length === 0) return
  const prefix = found === undefined ? 'It is created disabled, because a filter is missing. ' : ''
  planned.notes.push(...problems.map((problem) => `${prefix}${problem}`))
  planned.enabled = false
}

/** What the export has, and the existing destination does not have. */
function missingIn(planned: PlannedDestination, found: ExistingDestination): string[] {
  for (const subscription of planned.subscriptions) {
    if (subscription.outcome !== 'create') continue
    if (found.subscriptions.includes(subscription.name)) subscription.outcome = 'exists'
    else
      Object.assign(subscription, {
        outcome: 'not_supported',
        reason: 'The existing destination does not have it. Add it there if you need it.',
      })
  }
  return [...missingAliases(planned.aliases, found), ...missingFilters(planned.conditionalFilters, found)]
}

/** A message that turns the destination off by a name that it does not have would be sent, perhaps without consent. */
function missingAliases(aliases: readonly string[], { name, names }: ExistingDestination): string[] {
  const missing = aliases.filter((alias) => !names.includes(alias))
  if (missing.length === 0) return []
  return [
    `The existing destination does not have the ${missing.length === 1 ? 'alias' : 'aliases'} ${missing.join(', ')}, so messages that turn it off by such a name are sent all the same. Add them with \`switchyard destinations update ${JSON.stringify(name)} --alias …\`.`,
  ]
}

function missingFilters(filters: readonly ConditionalFilter[], { conditionalFilters }: ExistingDestination): string[] {
  return filters
    .filter((filter) => filter.enabled && !conditionalFilters.some((existing) => isDeepStrictEqual(existing, filter)))
    .map(
      ({ name }) => `The existing destination does not have the filter ${name}, or has changed it. Add it with --conditional-filters-file.`,
    )
}
