// Works out what `switchyard import-workspace` would create from an export. Every source, destination, subscription, setting and mapped
// field of the export is either created, already there, or listed with the reason why it is not imported. Secrets are part of the
// requests only, never of what is shown.

import type { ConditionalFilter } from '../../model/configuration.ts'
import { type Catalog, type CatalogIntegration, has } from './workspace-catalog.ts'
import type { ExportedDestination, ExportedFilter, ExportedSource, ExportedSubscription, Workspace } from './workspace-export.ts'
import { convertFilters } from './workspace-filters.ts'

/** `created` and `failed` are results of a run; a plan has the others. */
export type Outcome = 'create' | 'exists' | 'needs_secrets' | 'not_supported' | 'created' | 'failed'

interface Planned {
  name: string
  segmentId: string
  outcome: Outcome
  /** Why it is not created; null otherwise. */
  reason: string | null
  /** Parts that are not imported, although the entry itself is. */
  notes: string[]
}

export interface PlannedSource extends Planned {
  writeKeys: readonly string[]
  /** The id of the source here; null until it is created. */
  id: string | null
  body: object
}

export interface PlannedSubscription {
  name: string
  action: string
  outcome: 'create' | 'not_supported'
  reason: string | null
  notes: string[]
  body: object
}

export interface PlannedDestination extends Planned {
  integration: string
  /** The names by which messages refer to it, besides its own. */
  aliases: string[]
  source: PlannedSource | null
  /** Settings that the export does not contain, because Segment does not reveal secrets. */
  secrets: string[]
  subscriptions: PlannedSubscription[]
  settings: Record<string, unknown>
  conditionalFilters: ConditionalFilter[]
  enabled: boolean
}

export interface WorkspacePlan {
  sources: PlannedSource[]
  destinations: PlannedDestination[]
  others: { part: string; count: number; reason: string }[]
}

/** What already exists in the service. */
export interface Existing {
  sources: readonly { id: string; name: string; writeKeys: readonly string[] }[]
  /** `names`: all names by which messages may refer to it. */
  destinations: readonly {
    name: string
    integration: unknown
    names: readonly string[]
    conditionalFilters: readonly ConditionalFilter[]
  }[]
}

/** Values of settings by the name of the destination, from the file of --secrets. Null leaves a setting out. */
export type Secrets = ReadonlyMap<string, Readonly<Record<string, unknown>>>

export function planWorkspace(workspace: Workspace, existing: Existing, catalog: Catalog, secrets: Secrets): WorkspacePlan {
  const sourceNames = uniqueNames(workspace.sources, ({ slug }) => slug)
  const sources = new Map(workspace.sources.map((source) => [source.id, planSource(source, sourceNames.get(source) as string, existing)]))
  const names = uniqueNames(workspace.destinations, ({ sourceId }) => sources.get(sourceId)?.name ?? sourceId)
  const destinations = workspace.destinations.map((destination) => {
    const name = names.get(destination) as string
    const subscriptions = workspace.subscriptions.get(destination.id)
    return planDestination({
      destination,
      name,
      subscriptions,
      filters: workspace.filters?.get(destination.id) ?? [],
      source: sources.get(destination.sourceId) ?? null,
      existing,
      catalog,
      secrets,
    })
  })
  return { sources: [...sources.values()], destinations, others: othersOf(workspace) }
}

function planSource(source: ExportedSource, name: string, existing: Existing): PlannedSource {
  const { id: segmentId, enabled, writeKeys } = source
  const planned: PlannedSource = { name, segmentId, outcome: 'create', reason: null, notes: [], writeKeys, id: null, body: {} }
  const owner = existing.sources.find((other) => other.writeKeys.some((key) => writeKeys.includes(key)))
  const found = owner ?? existing.sources.find((other) => other.name === name)
  if (found !== undefined) {
    const missing = writeKeys.filter((key) => !found.writeKeys.includes(key))
    if (found.name !== name) planned.notes.push(`The existing source ${found.name} has the same write key, so it is used.`)
    if (missing.length > 0)
      planned.notes.push(
        `The existing source does not have the write key ${missing.join(', ')}. Add it with \`switchyard sources add-key\`; otherwise messages with this key are rejected.`,
      )
    return { ...planned, outcome: 'exists', id: found.id }
  }
  if (source.isCloudEventSource)
    return {
      ...planned,
      outcome: 'not_supported',
      reason: `It is a cloud source (${source.kind}): the tool sends its data to Segment, not to Switchyard.`,
    }
  if (writeKeys.length === 0)
    planned.notes.push(
      'The export has no write keys, so the service generates a new one, which clients have to use. To keep the keys, export with a token that has the role Source Admin.',
    )
  return { ...planned, body: { name, enabled, ...(writeKeys.length === 0 ? {} : { writeKeys }) } }
}

interface AboutDestination {
  destination: ExportedDestination
  name: string
  /** Undefined if the export has none for this destination. */
  subscriptions: readonly ExportedSubscription[] | undefined
  filters: readonly ExportedFilter[]
  source: PlannedSource | null
  existing: Existing
  catalog: Catalog
  secrets: Secrets
}

function planDestination(about: AboutDestination): PlannedDestination {
  const { destination, name, source, existing, catalog, secrets } = about
  const { id: segmentId, slug, enabled } = destination
  const planned: PlannedDestination = {
    name,
    segmentId,
    integration: slug,
    aliases: destination.publishedNames.filter((alias) => alias !== name),
    source,
    outcome: 'create',
    reason: null,
    notes: [],
    secrets: [],
    subscriptions: [],
    settings: {},
    conditionalFilters: [],
    enabled,
  }
  const notSupported = (reason: string): PlannedDestination => ({ ...planned, outcome: 'not_supported', reason })
  const found = existing.destinations.find((other) => other.name === name)
  if (found !== undefined && found.integration !== slug)
    return notSupported('Another destination has this name. Rename it, and run the command again.')
  if (found !== undefined) {
    const { filters, problems } = convertFilters(about.filters)
    return {
      ...planned,
      outcome: 'exists',
      notes: [...missingAliases(planned.aliases, found), ...problems, ...missingFilters(filters, found)],
    }
  }
  const integration = catalog.get(slug)
  if (integration === undefined) return notSupported(unknownReason(destination))
  const { available, problem } = integration
  if (!available) return notSupported(problem ?? 'It is not available.')
  if (source === null) return notSupported(`Its source (${destination.sourceId}) is not in the export.`)
  if (source.outcome === 'not_supported') return notSupported(`Its source ${source.name} is not imported.`)
  if (problem !== null) planned.notes.push(`The integration does not work outside of Segment. ${problem}`)
  planSettings(planned, destination, integration, secrets.get(name) ?? {})
  planSubscriptions(planned, destination, integration, about.subscriptions)
  planFilters(planned, about.filters)
  if (planned.secrets.length === 0) return planned
  return { ...planned, outcome: 'needs_secrets', reason: `Its settings need ${planned.secrets.join(', ')}.` }
}

/** A message that turns the destination off by a name that it does not have would be sent, perhaps without consent. */
function missingAliases(aliases: readonly string[], { name, names }: Existing['destinations'][number]): string[] {
  const missing = aliases.filter((alias) => !names.includes(alias))
  if (missing.length === 0) return []
  return [
    `The existing destination does not have the ${missing.length === 1 ? 'alias' : 'aliases'} ${missing.join(', ')}, so messages that turn it off by such a name are sent all the same. Add them with \`switchyard destinations update ${JSON.stringify(name)} --alias …\`.`,
  ]
}

function missingFilters(filters: readonly ConditionalFilter[], { conditionalFilters }: Existing['destinations'][number]): string[] {
  const existing = new Set(conditionalFilters.map((filter) => JSON.stringify(filter)))
  return filters
    .filter((filter) => filter.enabled && !existing.has(JSON.stringify(filter)))
    .map(
      ({ name }) => `The existing destination does not have the filter ${name}, or has changed it. Add it with --conditional-filters-file.`,
    )
}

/** A destination whose filters are not known completely could send what was kept back at Segment. */
function planFilters(planned: PlannedDestination, exported: readonly ExportedFilter[]): void {
  const { filters, problems } = convertFilters(exported)
  planned.conditionalFilters = filters
  if (problems.length === 0) return
  planned.notes.push(...problems.map((problem) => `It is created disabled, because a filter is missing. ${problem}`))
  planned.enabled = false
}

function unknownReason({ kind, slug, platforms }: ExportedDestination): string {
  if (platforms.size === 0)
    return `${kind} is a classic destination, which is not part of Segment's open-source integrations. If it has a newer version (Actions), use that, or send to it as a webhook.`
  if ([...platforms.values()].every((platform) => platform === 'web')) return `${kind} runs only in browsers (device mode).`
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

/** Segment's API returns only the end of a secret, after dots. */
function isMasked(value: unknown): boolean {
  return typeof value === 'string' && /^(?:•+|\*{3,})/.test(value)
}

function planSubscriptions(
  planned: PlannedDestination,
  destination: ExportedDestination,
  { actions }: CatalogIntegration,
  subscriptions: readonly ExportedSubscription[] | undefined,
): void {
  if (subscriptions === undefined)
    planned.notes.push('The export contains no subscriptions of this destination, so it sends nothing until you add some.')
  for (const { name, action, enabled, trigger, mapping, isReverseEtl } of subscriptions ?? []) {
    const subscription: PlannedSubscription = { name, action, outcome: 'create', reason: null, notes: [], body: {} }
    planned.subscriptions.push(subscription)
    const definition = actions.find(({ slug }) => slug === action)
    const reason = isReverseEtl
      ? 'It belongs to Reverse ETL, which Switchyard does not have.'
      : definition !== undefined
        ? null
        : destination.platforms.get(action) === 'web'
          ? `Its action ${action} runs in browsers (device mode).`
          : `The integration has no action ${action}.`
    if (reason !== null || definition === undefined) {
      Object.assign(subscription, { outcome: 'not_supported', reason })
      continue
    }
    const known = Object.entries(mapping).filter(([field]) => has(definition.fields.properties, field))
    for (const field of Object.keys(mapping))
      if (!has(definition.fields.properties, field)) subscription.notes.push(`Field ${field} is left out: the action does not have it.`)
    subscription.body = { name, action, subscribe: trigger, mapping: Object.fromEntries(known), enabled }
  }
}

/** Names are unique here. Entries that share a name get the text of `suffix` in addition, or if that is not enough, their id. */
function uniqueNames<T extends { id: string; name: string }>(entries: readonly T[], suffix: (entry: T) => string): Map<T, string> {
  const counts = (names: Iterable<string>): Map<string, number> => {
    const found = new Map<string, number>()
    for (const name of names) found.set(name, (found.get(name) ?? 0) + 1)
    return found
  }
  let names = new Map(entries.map((entry) => [entry, entry.name.trim()]))
  for (const addition of [suffix, ({ id }: T) => id]) {
    const taken = counts(names.values())
    names = new Map([...names].map(([entry, name]) => [entry, taken.get(name) === 1 ? name : `${entry.name.trim()} (${addition(entry)})`]))
  }
  return names
}

const UNKNOWN_FILTERS =
  'The export does not contain the answers to GET /destination/{id}/filters, so filters that keep messages back at Segment are missing. Export the workspace again with the script in the guide.'

const OTHER_REASONS: Readonly<Record<string, string>> = {
  warehouses: 'Switchyard does not load warehouses.',
}

function othersOf({ others, subscriptions, filters, destinations }: Workspace): WorkspacePlan['others'] {
  const ids = new Set(destinations.map(({ id }) => id))
  const orphans = (part: string, lists: ReadonlyMap<string, readonly unknown[]>): WorkspacePlan['others'] => {
    const count = [...lists].flatMap(([id, list]) => (ids.has(id) ? [] : list)).length
    return count === 0 ? [] : [{ part, count, reason: 'Their destinations are not in the export.' }]
  }
  const unknown = { part: 'filters', count: 0, reason: UNKNOWN_FILTERS }
  return [
    ...orphans('subscriptions', subscriptions),
    ...(filters !== null ? orphans('filters', filters) : destinations.length === 0 ? [] : [unknown]),
    ...[...others].map(([part, count]) => ({
      part,
      count,
      reason: (Object.hasOwn(OTHER_REASONS, part) ? OTHER_REASONS[part] : undefined) ?? 'Switchyard has no equivalent.',
    })),
  ]
}
