// The sources of a caller as a field: `all`, or a list of ids.

import { array, invalidField, type Schema, string } from '../schema.ts'

/** The sources whose data a caller sees and changes: all, or those with these ids. */
export type SourceScope = 'all' | readonly string[]

/** A person may have no sources, but nobody makes a token without any. */
export function sourceScope(description: string, min = 0): Schema<SourceScope> {
  const ids = array(string({ min: 1, max: 100 }), { min, max: 1_000, identity: (id) => id })
  return {
    parse(value, path) {
      if (value === 'all') return 'all'
      if (!Array.isArray(value)) throw invalidField(path, 'must be "all" or a list of ids of sources')
      return ids.parse(value, path)
    },
    toJsonSchema: () => ({ description, oneOf: [{ type: 'string', enum: ['all'] }, ids.toJsonSchema()] }),
  }
}
