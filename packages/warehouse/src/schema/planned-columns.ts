// The types that a tracking plan gives to columns: JSON Schema of properties and traits, by table and path.

import { isObject, type JsonObject, type TrackingPlan } from '@switchyard/protocol'
import type { ColumnType, PlannedColumns } from '../warehouse.ts'
import { eventTable, pathOf } from './names.ts'

const TABLES: Record<string, [table: string, part: string]> = {
  identify: ['identifies', 'traits'],
  page: ['pages', 'properties'],
  screen: ['screens', 'properties'],
  group: ['groups', 'traits'],
}

export function plannedColumns(plan: Pick<TrackingPlan, 'rules'>): PlannedColumns {
  const planned: Record<string, Record<string, ColumnType>> = {}
  for (const rule of plan.rules) {
    const [table, part] =
      'event' in rule && typeof rule.event === 'string' ? [eventTable(rule.event), 'properties'] : (TABLES[rule.type] ?? [])
    if (table === undefined || part === undefined || !isObject(rule.schema)) continue
    planned[table] ??= {}
    addColumns(planned[table], rule.schema, [part])
  }
  return planned
}

function addColumns(columns: Record<string, ColumnType>, schema: JsonObject, keys: readonly string[]): void {
  const properties: unknown = schema['properties']
  if (!isObject(properties)) return
  for (const [key, inner] of Object.entries(properties)) {
    if (!isObject(inner)) continue
    const type = plannedType(inner)
    // Two events of one table may be planned differently: the first one counts.
    if (type !== null) columns[pathOf([...keys, key])] ??= type
    else addColumns(columns, inner, [...keys, key])
  }
}

function plannedType(schema: JsonObject): ColumnType | null {
  const given: unknown = schema['type']
  const types = (Array.isArray(given) ? given : [given]).filter((type) => type !== 'null')
  if (types.length > 0 && types.every((type) => type === 'integer' || type === 'number'))
    return types.includes('number') ? 'double' : 'bigint'
  if (types.length !== 1) return null
  if (types[0] === 'boolean') return 'boolean'
  if (types[0] === 'array') return 'text'
  if (types[0] === 'string') return schema['format'] === 'date-time' ? 'timestamp' : 'text'
  return null
}
