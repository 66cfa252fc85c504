// Names of sources, destinations and OAuth applications: any text that can be read on one line. Several may have the same name, unless the
// request that creates one requires a unique name.

import { object, withDefault } from '../api/schema.ts'
import { ApiError } from '../errors.ts'
import { queryBoolean } from './query.ts'

export const CREATION_QUERY = object({
  uniqueName: withDefault(
    queryBoolean({ description: 'If true and the name is already in use, nothing is created and the request fails with `name_taken`.' }),
    false,
  ),
})

/** Throws name_taken if the name must be unique and is not. */
export function checkName({ uniqueName }: { uniqueName: boolean }, name: string, others: ReadonlyMap<string, { name: string }>): void {
  if (uniqueName && [...others.values()].some((other) => other.name === name)) {
    throw new ApiError('name_taken', {
      field: 'name',
      message: `The name ${JSON.stringify(name)} is already in use, and the request has uniqueName=true. Choose another name.`,
    })
  }
}

/** Returns what is wrong with a name, as the end of a sentence that starts with the field; null if it is valid. */
export function nameProblem(name: string): string | null {
  return name.trim() === '' || /\p{Cc}/u.test(name) ? 'must not be blank and must not contain control characters' : null
}
