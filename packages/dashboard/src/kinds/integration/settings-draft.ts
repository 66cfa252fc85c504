// The settings of an integration while they are edited. Secrets are write-only: a stored one can be kept, replaced or removed, but not read. Pure.

import { jsonProblem } from '../../text/code-problems.ts'
import { type FieldSchema, isOfType, isRequired, isShown, type ObjectSchema } from './definition.ts'

type Values = Readonly<Record<string, unknown>>

export interface SettingsDraft {
  /** What is typed, by key. Objects and lists of objects are edited as JSON text. */
  values: Values
  /** Secrets to set, by key; null removes one. A stored secret that is not here is kept. */
  secrets: Readonly<Record<string, string | null>>
}

/** Settings with fields of their own, such as `oauth`, are edited by the fields. */
export interface SettingField {
  /** `apiKey`, or `oauth.clientId`. */
  key: string
  schema: FieldSchema
  isRequired: boolean
}

/** The fields to show for these values, in the order of the definition. Secrets that are typed are values too. */
export function settingFields(schema: ObjectSchema, values: Values): SettingField[] {
  return Object.entries(schema.properties).flatMap(([key, field]): SettingField[] => {
    if (!isShown(field, values)) return []
    const required = isRequired(key, schema, values)
    if (field.properties === undefined || !isOfType(field, 'object')) return [{ key, schema: field, isRequired: required }]
    const inner = { properties: field.properties, required: field.required ?? [] }
    // The service stores and hides such an object as a whole, also those of its fields that are not secret.
    const isSecret = Object.values(field.properties).some(({ writeOnly }) => writeOnly === true)
    return settingFields(inner, valuesInside(values, key)).map((each) => ({
      key: `${key}.${each.key}`,
      schema: isSecret ? { ...each.schema, writeOnly: true } : each.schema,
      isRequired: required && each.isRequired,
    }))
  })
}

function valuesInside(values: Values, key: string): Values {
  const entries = Object.entries(values).filter(([name, value]) => name.startsWith(`${key}.`) && !isEmpty(value))
  return Object.fromEntries(entries.map(([name, value]) => [name.slice(key.length + 1), value]))
}

/** All that is typed, by key. */
export function typedValues({ values, secrets }: SettingsDraft): Values {
  return { ...values, ...secrets }
}

export function isJson(schema: FieldSchema): boolean {
  return isOfType(schema, 'object') || (isOfType(schema, 'array') && schema.items?.properties !== undefined)
}

export function settingsDraftOf(schema: ObjectSchema, stored: Values | null): SettingsDraft {
  const values: Record<string, unknown> = {}
  const all = settingFields({ ...schema, properties: withoutConditions(schema.properties) }, {})
  for (const { key, schema: field } of all) {
    if (field.writeOnly === true) continue
    const value = stored === null ? field.default : valueAt(stored, key)
    if (value !== undefined) values[key] = isJson(field) ? JSON.stringify(value, null, 2) : value
  }
  return { values, secrets: {} }
}

function withoutConditions(properties: ObjectSchema['properties']): ObjectSchema['properties'] {
  return Object.fromEntries(Object.entries(properties).map(([key, field]) => [key, { ...field, 'x-shown-if': {} }]))
}

function valueAt(values: Values, key: string): unknown {
  return key.split('.').reduce<unknown>((value, part) => (value as Values | undefined)?.[part], values)
}

export function isStored(stored: readonly string[], key: string): boolean {
  return stored.includes(key) || stored.includes(key.split('.')[0] as string)
}

/** By field of the API, such as `settings.apiKey`. `stored`: the secrets that are set. */
export function settingsProblems(schema: ObjectSchema, draft: SettingsDraft, stored: readonly string[]): Map<string, string> {
  const problems = new Map<string, string>()
  for (const { key, schema: field, isRequired: required } of settingFields(schema, typedValues(draft))) {
    const value = field.writeOnly === true ? draft.secrets[key] : draft.values[key]
    const isKept = field.writeOnly === true && value === undefined && isStored(stored, key)
    if (value === '' && field.writeOnly === true && isStored(stored, key)) {
      problems.set(`settings.${key}`, 'Enter the new value, or keep the current one.')
    } else if (isEmpty(value)) {
      if (required && !isKept)
        problems.set(`settings.${key}`, field.oneOf === undefined ? `Enter ${field.title}.` : `Choose ${field.title}.`)
    } else if (isJson(field)) {
      const problem = jsonProblem(String(value))
      if (problem !== null) problems.set(`settings.${key}`, problem.message)
    }
  }
  return problems
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

/** The settings as the API takes them: all that are shown and not empty. The draft must have no problems. */
export function settingsOf(schema: ObjectSchema, draft: SettingsDraft): Record<string, unknown> {
  const settings: Record<string, unknown> = {}
  for (const { key, schema: field } of settingFields(schema, typedValues(draft))) {
    const value = field.writeOnly === true ? draft.secrets[key] : draft.values[key]
    if (!isEmpty(value)) put(settings, key, isJson(field) ? (JSON.parse(String(value)) as unknown) : value)
  }
  return settings
}

/** What differs from the saved settings, for PATCH, where null removes a setting; null if nothing does. */
export function settingsChanges(schema: ObjectSchema, before: SettingsDraft, draft: SettingsDraft): Record<string, unknown> | null {
  const changes: Record<string, unknown> = {}
  for (const { key, schema: field } of settingFields(schema, typedValues(draft))) {
    if (field.writeOnly === true) {
      if (draft.secrets[key] !== undefined) put(changes, key, draft.secrets[key])
      continue
    }
    const value = draft.values[key]
    if (JSON.stringify(before.values[key]) === JSON.stringify(value)) continue
    put(changes, key, isEmpty(value) ? null : isJson(field) ? (JSON.parse(String(value)) as unknown) : value)
  }
  return Object.keys(changes).length === 0 ? null : changes
}

function put(settings: Record<string, unknown>, key: string, value: unknown): void {
  const dot = key.indexOf('.')
  if (dot === -1) {
    settings[key] = value
    return
  }
  const inner = (settings[key.slice(0, dot)] ??= {}) as Record<string, unknown>
  put(inner, key.slice(dot + 1), value)
}
