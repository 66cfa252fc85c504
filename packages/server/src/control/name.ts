// Names that people give to sources and destinations: anything that can be read on one line. Several may have the same one, unless who
// creates one asks for a name of its own.

import { ApiError } from '../errors.ts'
import { queryBoolean } from './query.ts'
import { object, withDefault } from './schema.ts'

export const CREATION_QUERY = object({
  uniqueName: withDefault(
    queryBoolean({ description: 'Creates nothing if something of this kind has the name already: `name_taken`.' }),
    false,
  ),
})

/** Throws when the name must be unique and is not. */
export function checkName({ uniqueName }: { uniqueName: boolean }, name: string, others: ReadonlyMap<string, { name: string }>): void {
  if (uniqueName && [...others.values()].some((other) => other.name === name)) throw new ApiError('name_taken', { field: 'name' })
}

/** What is wrong with a name, completing "The field …". */
export function nameProblem(name: string): string | null {
  return name.trim() === '' || /\p{Cc}/u.test(name) ? 'must be readable text: not blank, without control characters' : null
}
