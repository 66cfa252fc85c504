// The sources of a caller as a field: `all`, or a list of ids.

import { array, invalidField, type Schema, string } from '../schema.ts'

/** The sources whose data a caller sees and changes: all, or those with these ids. */
export type SourceScope = 'all' | readonly string[]

const IDS = array(string({ min: 1, max: 100 }), { min: 1, max: 1_000, identity: (id) => id })

export function sourceScope(description: string): Schema<SourceScope> {
  return {
    parse(value, path) {
      if (value === 'all') return 'all'
      if (!Array.isArray(value)) throw invalidField(path, 'must be "all" or a list of ids of sources')
      return IDS.parse(value, path)
    },
    toJsonSchema: () => ({ description, oneOf: [{ type: 'string', enum: ['all'] }, IDS.toJsonSchema()] }),
  }
}
