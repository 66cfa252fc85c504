// Schemas for query parameters, which arrive as text.

import { parseTime } from '@switchyard/protocol'
import { type Described, integer, invalidField, type Schema } from './schema.ts'

export function queryInteger(options: Described & { min?: number; max?: number } = {}): Schema<number> {
  const schema = integer(options)
  return {
    ...schema,
    parse: (value, path) => schema.parse(typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value, path),
  }
}

export function queryBoolean(options: Described = {}): Schema<boolean> {
  return {
    parse(value, path) {
      if (value !== 'true' && value !== 'false') throw invalidField(path, 'must be true or false')
      return value === 'true'
    },
    toJsonSchema: () => ({ type: 'boolean', ...options }),
  }
}

/** Parses an ISO 8601 time to milliseconds. */
export function queryTime(options: Described = {}): Schema<number> {
  return {
    parse(value, path) {
      const ms = typeof value === 'string' ? parseTime(value) : undefined
      if (ms === undefined) throw invalidField(path, 'must be an ISO 8601 time, such as 2026-11-14T09:00:00.000Z')
      return ms
    },
    toJsonSchema: () => ({ type: 'string', format: 'date-time', ...options }),
  }
}
