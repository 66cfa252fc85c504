// The definition of an integration as the catalogue describes it: what its settings and the fields of its actions are, and which of them are
// needed, given the values of others. Pure.

import type { Answer } from '../../api/client.ts'

type Described = Answer<'GET /api/catalog/{slug}'>

/** With the schemas as the catalogue writes them: the API describes them only as JSON Schema. */
export interface Definition extends Omit<Described, 'settings' | 'actions' | 'presets'> {
  settings: ObjectSchema
  actions: readonly Action[]
  presets: readonly Preset[]
}

export interface Action {
  slug: string
  name: string
  description: string
  /** When it usually runs; null if the definition does not say. */
  defaultSubscription: string | null
  batch: boolean
  /** How records of the tool are changed; null if it has no such modes. */
  syncMode: FieldSchema | null
  fields: ObjectSchema
}

export interface Preset {
  name: string
  action: string
  subscribe: string
  mapping: Readonly<Record<string, unknown>>
  /** `specificEvent`: for events that only some sources have. */
  type: 'automatic' | 'specificEvent'
}

export interface ObjectSchema {
  properties: Readonly<Record<string, FieldSchema>>
  required: readonly string[]
}

export interface FieldSchema {
  title: string
  description?: string
  type?: string | readonly string[]
  format?: string
  default?: unknown
  oneOf?: readonly { const: string | number | boolean | null; title: string }[]
  items?: { type?: string | readonly string[]; oneOf?: FieldSchema['oneOf']; properties?: FieldSchema['properties'] }
  properties?: Readonly<Record<string, FieldSchema>>
  required?: readonly string[]
  /** A secret: it can be set but is never shown. */
  writeOnly?: boolean
  'x-required-if'?: Conditions
  'x-shown-if'?: Conditions
  'x-hidden'?: boolean
  /** The tool can be asked for its values, or for the names of its properties. */
  'x-dynamic'?: 'values' | 'keys'
}

/** As the definitions write them. */
export interface Conditions {
  match?: 'any' | 'all'
  conditions?: readonly { fieldKey?: string; type?: string; operator?: string; value?: unknown }[]
}

export function definitionOf(described: Described): Definition {
  return described as unknown as Definition
}

/** Whether a field has this type; null beside a type only says that the value may be left out. */
export function isOfType({ type }: Pick<FieldSchema, 'type'>, ...names: readonly string[]): boolean {
  const types = (typeof type === 'string' ? [type] : (type ?? [])).filter((name) => name !== 'null')
  return types.length > 0 && types.every((name) => names.includes(name))
}

/** Under this name, the sync mode of the subscription is among the values that conditions are about. */
export const SYNC_MODE = '__segment_internal_sync_mode'

/** Whether conditions on the values of other fields hold. If a value depends on the message, they may hold: no field is hidden by mistake. */
export function holds(conditions: Conditions | undefined, values: Readonly<Record<string, unknown>>): boolean {
  const each = (conditions?.conditions ?? []).map(({ fieldKey, type, operator, value }) => {
    const current = values[type === 'syncMode' ? SYNC_MODE : (fieldKey ?? '')] ?? undefined
    if (typeof current === 'object') return true
    const isEqual = (Array.isArray(value) ? value : [value]).some((one: unknown) => (one ?? undefined) === current)
    return operator === 'is_not' ? !isEqual : isEqual
  })
  return each.length === 0 || (conditions?.match === 'any' ? each.some(Boolean) : each.every(Boolean))
}

export function isShown(field: FieldSchema, values: Readonly<Record<string, unknown>>): boolean {
  return field['x-hidden'] !== true && holds(field['x-shown-if'], values)
}

export function isRequired(key: string, { properties, required }: ObjectSchema, values: Readonly<Record<string, unknown>>): boolean {
  const condition = properties[key]?.['x-required-if']
  return required.includes(key) || (condition !== undefined && holds(condition, values))
}
