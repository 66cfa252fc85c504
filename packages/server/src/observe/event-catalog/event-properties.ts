// Walks the properties or traits of a message: the paths of the values, and their JSON types. The event catalogue uses it to count types
// and, when somebody asks for samples, to collect values. Pure. The work for one message is bounded, whatever it contains.

import { isObject, type JsonObject, type PlannedType, plannedField } from '@switchyard/protocol'

/** The order is that of the stored counts, so it must not change. */
export const VALUE_TYPES = ['string', 'number', 'boolean', 'object', 'array', 'null'] as const

/** The most values of one message that are visited. */
const MAX_VALUES = 300
/** `a.b.c` is visited, `a.b.c.d` is not. */
const MAX_DEPTH = 3

/** Calls `visit` at most once for each path, values of the first level first. Within an array, only the first element is visited. */
export function eachProperty(item: JsonObject, visit: (path: string, value: unknown) => void): void {
  const properties: unknown = item[plannedField(item['type'] as PlannedType)]
  if (!isObject(properties)) return
  const waiting: { prefix: string; object: JsonObject; depth: number }[] = [{ prefix: '', object: properties, depth: 1 }]
  let visited = 0
  for (const { prefix, object, depth } of waiting) {
    for (const name of Object.keys(object)) {
      if (++visited > MAX_VALUES) return
      const path = prefix + name
      const value: unknown = object[name]
      visit(path, value)
      if (depth === MAX_DEPTH || typeof value !== 'object' || value === null) continue
      if (!Array.isArray(value)) waiting.push({ prefix: `${path}.`, object: value, depth: depth + 1 })
      else if (isObject(value[0])) waiting.push({ prefix: `${path}[].`, object: value[0], depth: depth + 1 })
    }
  }
}

/** The index in VALUE_TYPES. */
export function valueType(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return 0
    case 'number':
      return 1
    case 'boolean':
      return 2
    default:
      return value === null ? 5 : Array.isArray(value) ? 4 : 3
  }
}
