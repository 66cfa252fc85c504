// Checks the settings of an integration against the schema of its definition. The schema is data that the catalogue generates, and uses only a few
// keywords, so a small interpreter is enough. It has our own error messages, compiles no code, and never quotes a value, because it may be a secret.

import type { CatalogIntegration, Conditions, FieldSchema, ObjectSchema } from '@switchyard/integrations/catalog'
import type { JsonObject } from '@switchyard/protocol'
import type { SettingsProblem } from '../port/kind.ts'
import { inside } from '../webhook/shaping/mapping.ts'

/** The names of the settings that are not secret. An object is one only if nothing in it is secret. */
export function shownNames(definition: CatalogIntegration): string[] {
  const isShown = (field: FieldSchema): boolean => field.writeOnly !== true && Object.values(field.properties ?? {}).every(isShown)
  return Object.entries(definition.settings.properties)
    .filter(([, field]) => isShown(field))
    .map(([name]) => name)
}

export function settingsProblem(settings: Readonly<JsonObject>, definition: CatalogIntegration): SettingsProblem | null {
  return objectProblem(settings, definition.settings, 'settings')
}

/** A required setting that has no value, or a choice that the definition does not have; null if there is none. */
export function missingSetting(settings: Readonly<JsonObject>, { settings: schema }: CatalogIntegration): SettingsProblem | null {
  const known = Object.entries(settings).filter(([name]) => Object.hasOwn(schema.properties, name))
  return (
    requiredProblem(settings, schema, 'settings') ??
    known.map(([name, value]) => choiceProblem(value, schema.properties[name] ?? {}, `settings.${name}`)).find((found) => found !== null) ??
    null
  )
}

function objectProblem(
  value: Readonly<Record<string, unknown>>,
  schema: Pick<ObjectSchema, 'properties' | 'required'> & { additionalProperties?: boolean | undefined },
  place: string,
): SettingsProblem | null {
  for (const [name, inner] of Object.entries(value)) {
    const field = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    if (field === undefined) {
      if (schema.additionalProperties === true && name !== '__proto__') continue
      return { field: inside(place, name), problem: 'is not a setting of this integration; GET /api/catalog/{slug} lists its settings' }
    }
    const found = valueProblem(inner, field, inside(place, name))
    if (found !== null) return found
  }
  return requiredProblem(value, schema, place)
}

function requiredProblem(
  value: Readonly<Record<string, unknown>>,
  schema: Pick<ObjectSchema, 'properties' | 'required'>,
  place: string,
): SettingsProblem | null {
  const isMissing = (name: string): boolean => !Object.hasOwn(value, name) || value[name] === ''
  const missing = schema.required.find(isMissing)
  if (missing !== undefined) return { field: inside(place, missing), problem: 'is required' }
  const needed = Object.entries(schema.properties).find(
    ([name, field]) => isMissing(name) && field['x-required-if'] !== undefined && holds(field['x-required-if'], value),
  )
  return needed === undefined ? null : { field: inside(place, needed[0]), problem: `is required ${neededText(needed[1]['x-required-if'])}` }
}

function neededText(needed: Conditions | undefined): string {
  const conditions = needed?.conditions ?? []
  // Values are not quoted; what is given and what is missing is no secret.
  if (conditions.length === 0 || conditions.some(({ value }) => value !== undefined)) return 'with the current values of the other settings'
  const texts = conditions.map(({ fieldKey, operator }) => `${fieldKey} is ${operator === 'is' ? 'missing' : 'given'}`)
  return `if ${texts.join(needed?.match === 'any' ? ' or ' : ' and ')}`
}

const TYPES: Readonly<Record<string, readonly [is: (value: unknown) => boolean, name: string]>> = {
  string: [(value) => typeof value === 'string', 'a string'],
  number: [(value) => typeof value === 'number' && Number.isFinite(value), 'a number'],
  integer: [(value) => Number.isSafeInteger(value), 'an integer'],
  boolean: [(value) => typeof value === 'boolean', 'true or false'],
  array: [Array.isArray, 'an array'],
  object: [(value) => typeof value === 'object' && value !== null && !Array.isArray(value), 'an object'],
  null: [(value) => value === null, 'null'],
}

const FORMATS: Readonly<Record<string, readonly [is: (text: string) => boolean, name: string]>> = {
  uri: [(text) => URL.canParse(text), 'a URL, such as https://example.com'],
  hostname: [
    (text) => text.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(text),
    'a host name',
  ],
  uuid: [(text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text), 'a UUID'],
}

function valueProblem(value: unknown, schema: Partial<FieldSchema>, place: string): SettingsProblem | null {
  const types = [schema.type ?? []].flat().filter((type) => Object.hasOwn(TYPES, type))
  if (types.length > 0 && !types.some((type) => TYPES[type]?.[0](value)))
    return { field: place, problem: `must be ${types.map((type) => TYPES[type]?.[1]).join(' or ')}` }
  const notChosen = choiceProblem(value, schema, place)
  if (notChosen !== null) return notChosen
  const [isValid, form] = (Object.hasOwn(FORMATS, schema.format ?? '') && FORMATS[schema.format ?? '']) || []
  if (typeof value === 'string' && value !== '' && isValid?.(value) === false) return { field: place, problem: `must be ${form}` }
  const limit = limitProblem(value, schema)
  if (limit !== null) return { field: place, problem: limit }
  if (Array.isArray(value)) {
    const { items } = schema
    if (items === undefined) return null
    for (const [at, item] of value.entries()) {
      const found = valueProblem(item, items, `${place}[${at}]`)
      if (found !== null) return found
    }
    return null
  }
  if (typeof value !== 'object' || value === null || schema.properties === undefined) return null
  const { properties, required = [], additionalProperties } = schema
  return objectProblem(value as Record<string, unknown>, { properties, required, additionalProperties }, place)
}

function choiceProblem(value: unknown, { oneOf }: Partial<FieldSchema>, place: string): SettingsProblem | null {
  const choices = oneOf?.map((choice) => choice.const) ?? []
  const isChosen = choices.length === 0 || Array.isArray(value) || value === null || value === '' || choices.includes(value as string)
  return isChosen ? null : { field: place, problem: `must be one of ${choices.join(', ')}` }
}

function limitProblem(value: unknown, { minimum, maximum, minLength, maxLength }: Partial<FieldSchema>): string | null {
  if (typeof value === 'number' && value < (minimum ?? -Infinity)) return `must be at least ${minimum}`
  if (typeof value === 'number' && value > (maximum ?? Infinity)) return `must be at most ${maximum}`
  if (typeof value === 'string' && value.length < (minLength ?? 0)) return `must be at least ${minLength} characters long`
  if (typeof value === 'string' && value.length > (maxLength ?? Infinity)) return `must be at most ${maxLength} characters long`
  return null
}

function holds({ conditions, match }: Conditions, settings: Readonly<Record<string, unknown>>): boolean {
  const isMet = ({ fieldKey = '', operator, value }: Conditions['conditions'][number]): boolean => {
    const actual = Object.hasOwn(settings, fieldKey) && settings[fieldKey] !== '' ? settings[fieldKey] : undefined
    const isEqual = [value].flat().some((expected) => (expected ?? undefined) === (actual ?? undefined))
    return operator === 'is_not' ? !isEqual : isEqual
  }
  return match === 'any' ? conditions.some(isMet) : conditions.every(isMet)
}
