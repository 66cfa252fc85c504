// Corrections of defaults: mappings that the action they belong to always refuses, with what they mean, and values that name another service. A destination
// created with such a mapping would get nothing but errors, so the catalogue has corrected ones. A test lists all differences from the definitions.

import type { JsonObject } from '@switchyard/protocol'
import type { Field, Fields } from './definitions.ts'

/** By slug and field: a value that is not among the choices of the field, and the one that it means. */
const CORRECTED_VALUES: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>> = {
  'actions-angler-ai': { eventName: { checkout_payment_info_submitted: 'payment_info_submitted' } },
  'actions-attentive': { eventType: { 'view-item': 'product-view' } },
}

/** Our own defaults by slug and field, for those that would send messages in the name of another service. Undefined: no default. */
const OWN_DEFAULTS: Readonly<Record<string, Readonly<Record<string, string | undefined>>>> = {
  'actions-slack': { username: 'Switchyard', icon_url: undefined },
}

type Json = JsonObject[string]

export function correctedMapping(slug: string, fields: Fields, mapping: JsonObject): JsonObject {
  const entries = Object.entries(mapping).map(([name, value]): [string, Json] => {
    const means = typeof value === 'string' ? CORRECTED_VALUES[slug]?.[name]?.[value] : undefined
    return [name, means ?? asObject(fields[name], value) ?? value]
  })
  return Object.fromEntries(entries)
}

export function correctedFields(slug: string, fields: Fields): Fields {
  const entries = Object.entries(fields).map(([name, field]) => {
    if (field.default === undefined) return [name, field]
    const own = OWN_DEFAULTS[slug] ?? {}
    if (Object.hasOwn(own, name)) return [name, { ...field, default: own[name] }]
    return [name, { ...field, default: correctedMapping(slug, fields, { [name]: field.default as Json })[name] }]
  })
  return Object.fromEntries(entries) as Fields
}

/** `@arrayPath` makes a list, also of one object, which a field for one object refuses. Null if the field is another one. */
function asObject(field: Field | undefined, value: Json): JsonObject | null {
  if (field?.type !== 'object' || field.multiple === true || value === null || typeof value !== 'object') return null
  const [base, shape] = ((value as { '@arrayPath'?: unknown })['@arrayPath'] ?? []) as [unknown?, Record<string, { '@path'?: unknown }>?]
  if (typeof base !== 'string' || shape === undefined) return null
  const paths = Object.entries(shape).map(([name, { '@path': path }]) => [name, path] as const)
  if (!paths.every(([, path]) => typeof path === 'string' && path.startsWith('$.'))) return null
  return Object.fromEntries(paths.map(([name, path]) => [name, { '@path': `${base}.${String(path).slice(2)}` }]))
}
