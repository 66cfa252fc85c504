// Works out what `switchyard import-workspace` would create from an export. Every source, destination, subscription, setting and mapped
// field of the export is either created, already there, or listed with the reason why it is not imported. Secrets are part of the
// requests only, never of what is shown.

import { type Existing, ORIGIN_PREFIX, type PlannedSource, type Secrets, uniqueNames, type WorkspacePlan } from './planned-workspace.ts'
import type { Catalog } from './workspace-catalog.ts'
import { planDestination } from './workspace-destinations.ts'
import type { ExportedSource, Workspace } from './workspace-export.ts'
import { planTrackingPlans } from './workspace-tracking-plans.ts'

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
      functionName: workspace.functions.get(destination.catalogId),
      source: sources.get(destination.sourceId) ?? null,
      existing,
      catalog,
      secrets,
    })
  })
  const plans = planTrackingPlans(workspace.plans, sources, existing)
  return { sources: [...sources.values()], destinations, plans, others: othersOf(workspace) }
}

function planSource(source: ExportedSource, name: string, existing: Existing): PlannedSource {
  const { id: segmentId, enabled, writeKeys } = source
  const origin = ORIGIN_PREFIX + segmentId
  const planned: PlannedSource = {
    name,
    segmentId,
    outcome: 'create',
    reason: null,
    notes: [],
    hints: [],
    writeKeys,
    id: null,
    adopts: false,
    body: {},
  }
  const isFree = (other: Existing['sources'][number]): boolean => other.origin === null || other.origin === origin
  const found =
    existing.sources.find((other) => other.origin === origin) ??
    existing.sources.find((other) => other.writeKeys.some((key) => writeKeys.includes(key))) ??
    existing.sources.find((other) => other.name === name && isFree(other))
  if (found !== undefined) {
    const missing = writeKeys.filter((key) => !found.writeKeys.includes(key))
    if (found.name !== name) planned.hints.push(`It is the existing source ${found.name}.`)
    if (missing.length > 0)
      planned.notes.push(
        `The existing source does not have the write key ${missing.join(', ')}. Add it with \`switchyard sources add-key\`; otherwise messages with this key are rejected.`,
      )
    return { ...planned, outcome: 'exists', id: found.id, adopts: found.origin === null }
  }
  const reason = cloudReason(source)
  if (reason !== null) return { ...planned, outcome: 'not_supported', reason }
  if (writeKeys.length === 0)
    planned.notes.push(
      'The export has no write keys, so the service generates a new one, which clients have to use. To keep the keys, export with a token that has the role Source Admin.',
    )
  return { ...planned, body: { name, enabled, origin, ...(writeKeys.length === 0 ? {} : { writeKeys }) } }
}

/** The categories of Segment's catalogue for libraries, whose messages applications send themselves. */
const LIBRARY_CATEGORIES: ReadonlySet<string> = new Set(['website', 'mobile', 'server', 'ott'])

/** Why no application can send to the source. `isCloudEventSource` is false for sources of objects, such as Stripe, and of warehouses. */
function cloudReason({ kind, categories, isCloudEventSource }: ExportedSource): string | null {
  const all = categories.map((category) => category.toLowerCase())
  if (!isCloudEventSource && (all.length === 0 || all.some((category) => LIBRARY_CATEGORIES.has(category)))) return null
  if (all.includes('warehouse'))
    return `It is a Reverse ETL source (${kind}): Segment reads it from a warehouse, which Switchyard does not do.`
  if (all.includes('internal'))
    return `It is a source of Segment itself (${kind}), for audiences and profiles, which Switchyard does not have.`
  return `It is a cloud source (${kind}): the tool sends its data to Segment, not to Switchyard.`
}

const UNKNOWN_FILTERS =
  'The export does not contain the answers to GET /destination/{id}/filters, so filters that keep messages back at Segment are missing. Export the workspace again with the script in the guide.'

const OTHER_REASONS: Readonly<Record<string, string>> = {
  warehouses:
    'They are not imported. Switchyard loads Parquet lakes, PostgreSQL and ClickHouse: create a destination of the type warehouse.',
  functions: 'Their code runs at Segment. A function that needs no network can become a transformation.',
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
