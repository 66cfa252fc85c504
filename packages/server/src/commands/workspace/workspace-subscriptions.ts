// Works out what becomes of the subscriptions of a destination.

import { isObject } from '@switchyard/protocol'
import { type PlannedDestination, type PlannedSubscription, uniqueNames } from './planned-workspace.ts'
import { type CatalogIntegration, has } from './workspace-catalog.ts'
import type { ExportedDestination, ExportedSubscription } from './workspace-export.ts'
import { isMasked } from './workspace-masks.ts'

/** A field of mappings at Segment that is a setting of the subscription here. */
const SYNC_MODE = '__segment_internal_sync_mode'
/** Fields that Segment adds to every mapping of an action that can send batches. Here, batches are a setting of the destination. */
const BATCH_FIELDS: ReadonlySet<string> = new Set(['enable_batching', 'batch_size', 'batch_bytes', 'batch_keys'])

export function planSubscriptions(
  planned: PlannedDestination,
  destination: ExportedDestination,
  { actions }: CatalogIntegration,
  subscriptions: readonly ExportedSubscription[] | undefined,
  given: Readonly<Record<string, unknown>>,
): void {
  if (subscriptions === undefined)
    planned.notes.push('The export contains no subscriptions of this destination, so it sends nothing until you add some.')
  const names = uniqueNames(subscriptions ?? [], ({ action }) => action)
  const secrets = isObject(given['subscriptions']) ? given['subscriptions'] : {}
  let isBatched = false
  for (const exported of subscriptions ?? []) {
    const name = names.get(exported) as string
    const subscription: PlannedSubscription = { name, action: exported.action, outcome: 'create', reason: null, notes: [], body: {} }
    planned.subscriptions.push(subscription)
    const definition = actions.find(({ slug }) => slug === exported.action)
    const reason = reasonAgainst(exported, destination, definition)
    if (reason !== null || definition === undefined) {
      Object.assign(subscription, { outcome: 'not_supported', reason })
      continue
    }
    isBatched ||= exported.enabled && exported.mapping['enable_batching'] === true && !has(definition.fields.properties, 'enable_batching')
    const own = isObject(secrets[name]) ? secrets[name] : {}
    const mapping = mappingOf(subscription, exported, definition.fields.properties, own, (field) => {
      planned.mappingSecrets.set(name, [...(planned.mappingSecrets.get(name) ?? []), field])
    })
    const { [SYNC_MODE]: mode } = exported.mapping
    const syncMode = typeof mode === 'string' && !has(definition.fields.properties, SYNC_MODE) ? { syncMode: mode } : {}
    subscription.body = { name, action: exported.action, subscribe: exported.trigger, mapping, enabled: exported.enabled, ...syncMode }
  }
  if (isBatched) planned.hints.push('Segment sends it batches. To do the same here, set batch.size of the destination, for example to 100.')
}

function reasonAgainst(
  { action, isReverseEtl }: ExportedSubscription,
  { platforms }: ExportedDestination,
  definition: CatalogIntegration['actions'][number] | undefined,
): string | null {
  if (isReverseEtl) return 'It belongs to Reverse ETL, which Switchyard does not have.'
  if (definition !== undefined) return null
  const platform = platforms.get(action)
  if (platform === 'web') return `Its action ${action} runs in browsers (device mode).`
  if (platform === 'mobile') return `Its action ${action} runs in mobile apps (device mode).`
  return `The integration has no action ${action}.`
}

function mappingOf(
  { notes }: PlannedSubscription,
  { mapping }: ExportedSubscription,
  properties: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
  onMissing: (field: string) => void,
): Record<string, unknown> {
  const known: [field: string, value: unknown][] = []
  for (const [field, value] of Object.entries(mapping)) {
    if (!has(properties, field)) {
      if (field !== SYNC_MODE && !BATCH_FIELDS.has(field)) notes.push(`Field ${field} is left out: the action does not have it.`)
    } else if (Object.hasOwn(given, field)) {
      if (given[field] !== null) known.push([field, given[field]])
    } else if (isMasked(value)) onMissing(field)
    else known.push([field, value])
  }
  return Object.fromEntries(known)
}
