// The subscriptions of an integration: which values are accepted, their ids, and those that an integration gets from the presets of its definition.

import type { CatalogAction, CatalogIntegration } from '@switchyard/integrations/catalog'
import type { JsonObject } from '@switchyard/protocol'
import type { Subscription } from '../../model/configuration.ts'
import { newId } from '../../model/new-id.ts'
import { HIDDEN } from '../../secrets/hidden-url.ts'
import type { SettingsProblem } from '../port/kind.ts'
import { subscribeProblem } from '../subscribe/parse-subscribe.ts'
import { inside, mappingProblem, ROOT_TRANSFORM } from '../webhook/shaping/mapping.ts'
import { asDirective, savedPlace, withRootTransform } from './root-transform.ts'

/** As requests give them. */
export interface GivenSubscription {
  id?: string | undefined
  name?: string | undefined
  action: string
  subscribe: string
  mapping?: JsonObject | undefined
  syncMode?: string | null | undefined
  enabled: boolean
}

/** The largest number of presets in the catalogue is 16. */
export const MAX_SUBSCRIPTIONS = 100
const MAX_TOTAL_LENGTH = 512 * 1024
const MAX_LIQUID_LENGTH = 1_000
/** Mappings that are exported from Segment contain the sync mode under this name. */
const SYNC_MODE_FIELD = '__segment_internal_sync_mode'

/** The default of a new integration: the presets that are not for particular events. */
export function presetSubscriptions({ presets }: CatalogIntegration): GivenSubscription[] {
  return presets
    .filter(({ type }) => type === 'automatic')
    .map(({ name, action, subscribe, mapping }) => ({ name, action, subscribe, mapping, enabled: true }))
}

/**
 * Fills in what may be left out. A subscription keeps its id if the request gives the id, or if it gives no id and exactly one stored subscription has
 * its name. If several do, it gets a new id: one that failed must not get the id of another that succeeded, because it would not be run again.
 */
export function withIds(
  given: readonly GivenSubscription[],
  before: readonly Subscription[],
  definition: CatalogIntegration | null,
): Subscription[] {
  const left = new Map(before.map((subscription) => [subscription.id, subscription]))
  for (const { id } of given) if (id !== undefined) left.delete(id)
  return given.map(({ id, name, action, subscribe, mapping, syncMode, enabled }) => {
    const known = definition === null ? undefined : actionOf(definition, action)
    const shown = name ?? known?.name ?? action
    const named = id === undefined ? before.filter((old) => old.name === shown) : []
    const same = named.length === 1 && left.delete((named[0] as Subscription).id) ? named[0] : undefined
    const { [SYNC_MODE_FIELD]: mapped, ...filled } = filledMapping(mapping && withRootTransform(mapping), known)
    const old = same ?? before.find((subscription) => subscription.id === id)
    const mode = syncMode ?? (mapped as string | undefined) ?? (old?.action === action ? old.syncMode : null) ?? defaultMode(known)
    return { id: id ?? same?.id ?? newId('sub'), name: shown, action, subscribe, mapping: filled, syncMode: mode, enabled }
  })
}

/** The server assigns ids: a request may only contain ids that it has read. */
export function idProblem(given: readonly GivenSubscription[], before: readonly Subscription[]): SettingsProblem | null {
  const known = new Set(before.map(({ id }) => id))
  for (const [at, { id }] of given.entries()) {
    if (id !== undefined && !known.delete(id))
      return {
        field: `subscriptions[${at}].id`,
        problem: 'must be the id of a subscription of this destination, and occur only once; leave it out for a new subscription',
      }
  }
  return null
}

export function subscriptionsProblem(subscriptions: readonly Subscription[], definition: CatalogIntegration): SettingsProblem | null {
  let length = 0
  for (const [at, { action, subscribe, mapping, syncMode = null, enabled }] of subscriptions.entries()) {
    const place = `subscriptions[${at}]`
    const known = actionOf(definition, action)
    if (known === undefined)
      return { field: `${place}.action`, problem: 'is not an action of this integration; GET /api/catalog/{slug} lists its actions' }
    const malformed = subscribeProblem(subscribe)
    if (malformed !== null) return { field: `${place}.subscribe`, problem: malformed }
    const mode = modeProblem(syncMode, known)
    if (mode !== null) return { field: `${place}.syncMode`, problem: mode }
    const found = fieldProblem(mapping, known)
    if (found !== null) return { field: `${place}.mapping${found.place}`, problem: found.problem }
    // One that is off does not run, so it may be incomplete.
    const unmapped = enabled ? known.fields.required.find((name) => isBlank(mapping[name])) : undefined
    if (unmapped !== undefined)
      return { field: inside(`${place}.mapping`, unmapped), problem: 'is required by this action and has no default; give it a value' }
    length += JSON.stringify(mapping).length
  }
  const twin = subscriptions.findIndex(({ name }, at) => subscriptions.findIndex((other) => other.name === name) < at)
  if (twin !== -1)
    return { field: `subscriptions[${twin}].name`, problem: 'must be unique: another subscription of this destination has the same name' }
  return length > MAX_TOTAL_LENGTH
    ? { field: 'subscriptions', problem: `must have mappings of at most ${MAX_TOTAL_LENGTH} characters of JSON in total` }
    : null
}

function actionOf({ actions }: CatalogIntegration, slug: string): CatalogAction | undefined {
  return actions.find((action) => action.slug === slug)
}

function defaultMode(action: CatalogAction | undefined): string | null {
  const mode = action?.syncMode?.default
  return typeof mode === 'string' ? mode : null
}

function modeProblem(mode: unknown, { syncMode }: CatalogAction): string | null {
  if (syncMode === null) return mode === null ? null : 'must be null, because this action has no sync modes'
  const choices = syncMode.oneOf?.map((choice) => choice.const) ?? []
  return choices.includes(mode as string) ? null : `must be one of ${choices.join(', ')}`
}

/** The library does not fill in defaults, so required fields that are left out get theirs here. Without a mapping, all fields do. */
function filledMapping(mapping: JsonObject | undefined, action: CatalogAction | undefined): JsonObject {
  if (action === undefined) return mapping ?? {}
  const defaults = defaultMapping(action)
  if (mapping === undefined) return defaults
  // Refused later; next to fields, the directive would not be what is wrong.
  if (Object.keys(mapping).some((name) => name.startsWith('@'))) return mapping
  const left = action.fields.required.filter((name) => isBlank(mapping[name]) && !isBlank(defaults[name]))
  return left.length === 0 ? mapping : { ...mapping, ...Object.fromEntries(left.map((name) => [name, defaults[name] ?? null])) }
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || value === ''
}

function defaultMapping({ fields }: CatalogAction): JsonObject {
  const filled = Object.entries(fields.properties).flatMap(([name, field]) => (field.default === undefined ? [] : [[name, field.default]]))
  return Object.fromEntries(filled) as JsonObject
}

/** Whether a message has the values that required fields read is checked by the library, for each message. */
function fieldProblem(mapping: Readonly<JsonObject>, { fields }: CatalogAction): { place: string; problem: string } | null {
  const directive = asDirective(mapping)
  if (directive === null) return { place: `.${ROOT_TRANSFORM}`, problem: 'must be { "@transform": { "apply": { … } } }' }
  const found = mappingProblem(withoutLiquid(directive), { isHosted: true })
  if (found !== null) return Object.hasOwn(mapping, ROOT_TRANSFORM) ? { ...found, place: savedPlace(found.place) } : found
  const placeholder = placeholderProblem(mapping, '')
  if (placeholder !== null) return placeholder
  const around = Object.keys(mapping).find((name) => name.startsWith('@'))
  if (around !== undefined)
    return {
      place: `.${around}`,
      problem:
        'must be inside a field of the action; only a @transform with the fields of the action as its mapping can be around all of them',
    }
  const unknown = Object.keys(mapping).find((name) => !Object.hasOwn(fields.properties, name))
  if (unknown === undefined || fields.additionalProperties) return null
  return { place: inside('', unknown), problem: 'is not a field of this action; GET /api/catalog/{slug} lists its fields' }
}

/** Templates in Liquid are allowed here, because the library evaluates them in a host process. The check of mappings does not know them. */
function withoutLiquid(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutLiquid)
  if (typeof value !== 'object' || value === null) return value
  const keys = Object.keys(value)
  const { '@liquid': template } = value as { '@liquid'?: unknown }
  if (keys.length === 1 && typeof template === 'string' && template.length <= MAX_LIQUID_LENGTH) return ''
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutLiquid(inner)]))
}

/** What viewers and the audit log show instead of a value must not be stored in place of it. */
function placeholderProblem(value: unknown, place: string): { place: string; problem: string } | null {
  if (value === HIDDEN) return { place, problem: 'is the placeholder "(hidden)"; send the real value' }
  if (typeof value !== 'object' || value === null) return null
  for (const [key, inner] of Object.entries(value)) {
    const found = placeholderProblem(inner, Array.isArray(value) ? `${place}[${key}]` : inside(place, key))
    if (found !== null) return found
  }
  return null
}
