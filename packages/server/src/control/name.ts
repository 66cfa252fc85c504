// Names that people give to sources and destinations: anything that can be read on one line. Several may have the same name,
// unless the request that creates one asks for a unique name.

import { object, withDefault } from '../api/schema.ts'
import { ApiError } from '../errors.ts'
import { queryBoolean } from './query.ts'

export const CREATION_QUERY = object({
  uniqueName: withDefault(
    queryBoolean({ description: 'If true and the name is already in use, nothing is created and the answer is `name_taken`.' }),
    false,
  ),
})

/** Throws when the name must be unique and is not. */
export function checkName({ uniqueName }: { uniqueName: boolean }, name: string, others: ReadonlyMap<string, { name: string }>): void {
  if (uniqueName && [...others.values()].some((other) => other.name === name)) {
    throw new ApiError('name_taken', {
      field: 'name',
      message: `The name ${JSON.stringify(name)} is already in use, and the request has uniqueName=true. Choose another name.`,
    })
  }
}

/** What is wrong with a name, completing "The field …". */
export function nameProblem(name: string): string | null {
  return name.trim() === '' || /\p{Cc}/u.test(name) ? 'must not be blank and must not contain control characters' : null
}
