// The mapping of a subscription while it is edited, field by field. What the editor has no form for is edited as JSON, so nothing is ever lost:
// `valueOf(fieldDraftOf(value))` is the value. Pure.

import { jsonProblem } from '../../text/code-problems.ts'
import type { FieldSchema, ObjectSchema } from './definition.ts'

export type FieldDraft =
  | { mode: 'none' }
  | { mode: 'constant'; value: string | number | boolean }
  | { mode: 'path' | 'template' | 'json'; text: string }
  /** An object with fields of its own. */
  | { mode: 'fields'; fields: MappingDraft }

export type MappingDraft = Readonly<Record<string, FieldDraft>>
export type Mode = FieldDraft['mode']

export function fieldDraftOf(value: unknown, schema: Pick<FieldSchema, 'properties'> | undefined): FieldDraft {
  if (value === undefined) return { mode: 'none' }
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return { mode: 'constant', value }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const keys = Object.keys(value)
    const { '@path': path, '@template': template } = value as Record<string, unknown>
    if (keys.length === 1 && typeof path === 'string') return { mode: 'path', text: path }
    if (keys.length === 1 && typeof template === 'string') return { mode: 'template', text: template }
    if (schema?.properties !== undefined && !keys.some((key) => key.startsWith('@')))
      return { mode: 'fields', fields: mappingDraftOf(value as Record<string, unknown>, schema.properties) }
  }
  return { mode: 'json', text: JSON.stringify(value, null, 2) }
}

export function mappingDraftOf(mapping: Readonly<Record<string, unknown>>, properties: ObjectSchema['properties']): MappingDraft {
  return Object.fromEntries(Object.entries(mapping).map(([key, value]) => [key, fieldDraftOf(value, properties[key])]))
}

/** The value for the API; undefined if the field is not mapped. The draft must have no problems. */
export function valueOf(draft: FieldDraft): unknown {
  switch (draft.mode) {
    case 'none':
      return undefined
    case 'constant':
      return draft.value
    case 'path':
      return { '@path': draft.text }
    case 'template':
      return { '@template': draft.text }
    case 'fields':
      return mappingOf(draft.fields)
    case 'json':
      return JSON.parse(draft.text) as unknown
  }
}

export function mappingOf(draft: MappingDraft): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(draft)
      .filter(([, field]) => field.mode !== 'none')
      .map(([key, field]) => [key, valueOf(field)]),
  )
}

/** The fields without problems. Lookups of other fields use them while the mapping is edited. */
export function usableMapping(draft: MappingDraft): Record<string, unknown> {
  const usable = Object.entries(draft).flatMap(([key, field]): [string, unknown][] => {
    if (field.mode === 'none' || fieldProblem(field) !== null) return []
    return [[key, field.mode === 'fields' ? usableMapping(field.fields) : valueOf(field)]]
  })
  return Object.fromEntries(usable)
}

/** The field in another mode, with as much of its value as fits. */
export function inMode(draft: FieldDraft, mode: Mode, schema: FieldSchema | undefined): FieldDraft {
  const text = 'text' in draft && draft.mode !== 'json' ? draft.text : draft.mode === 'constant' ? String(draft.value) : ''
  switch (mode) {
    case 'none':
      return { mode }
    case 'constant':
      return { mode, value: schema?.oneOf?.[0]?.const ?? (isBoolean(schema) ? true : draft.mode === 'template' ? text : '') }
    case 'path':
      return { mode, text: draft.mode === 'template' ? pathIn(text) : '' }
    case 'template':
      return { mode, text: draft.mode === 'path' ? `{{${text.replace(/^\$\./, '')}}}` : text }
    case 'fields':
      return { mode, fields: {} }
    case 'json': {
      const value = fieldProblem(draft) === null ? valueOf(draft) : undefined
      return { mode, text: JSON.stringify(value ?? null, null, 2) }
    }
  }
}

function pathIn(template: string): string {
  const key = /^\{\{\s*([^{}]+?)\s*\}\}$/.exec(template)?.[1]
  return key === undefined ? '' : `$.${key}`
}

export function isBoolean(schema: FieldSchema | undefined): boolean {
  return schema?.type === 'boolean'
}

/** What is wrong with a value, whatever the field; null if nothing is. */
function fieldProblem(draft: FieldDraft): string | null {
  if (draft.mode === 'json') return jsonProblem(draft.text)?.message ?? null
  if (draft.mode === 'path' && draft.text.trim() === '') return 'Enter a path, such as $.properties.total.'
  return null
}

/** By field, such as `mapping.user_id`. */
export function mappingProblems(draft: MappingDraft, schema: ObjectSchema, prefix = 'mapping'): Map<string, string> {
  const problems = new Map<string, string>()
  for (const key of new Set([...schema.required, ...Object.keys(draft)])) {
    const field = draft[key] ?? { mode: 'none' }
    const name = `${prefix}.${key}`
    const problem = fieldProblem(field)
    if (problem !== null) problems.set(name, problem)
    else if (schema.required.includes(key) && isBlank(field)) problems.set(name, 'This field is required.')
    else if (field.mode === 'fields') {
      const { properties = {}, required = [] } = schema.properties[key] ?? {}
      for (const [inner, text] of mappingProblems(field.fields, { properties, required }, name)) problems.set(inner, text)
    }
  }
  return problems
}

function isBlank(field: FieldDraft): boolean {
  return field.mode === 'none' || (field.mode === 'constant' && field.value === '') || (field.mode === 'template' && field.text === '')
}

/** Whether the field is as the definition suggests it. */
export function isDefault(draft: FieldDraft, schema: FieldSchema | undefined): boolean {
  if (schema?.default === undefined || fieldProblem(draft) !== null) return false
  return JSON.stringify(valueOf(draft)) === JSON.stringify(schema.default)
}

/** As the definition suggests it, with an empty input for each text that is required. */
export function defaultMapping({ properties, required }: ObjectSchema): MappingDraft {
  return Object.fromEntries(
    Object.entries(properties).flatMap(([key, field]): [string, FieldDraft][] => {
      if (field.default !== undefined) return [[key, fieldDraftOf(field.default, field)]]
      return required.includes(key) && field.type === 'string' && field.oneOf === undefined ? [[key, { mode: 'constant', value: '' }]] : []
    }),
  )
}
