// Refuses a destination that would send every message twice: one with the name and the URL, or the name and the integration, of another destination
// of the same source. It is nearly always a command or a request that was repeated. The check runs on the stored configuration, under its lock.

import { object, withDefault } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { Configuration, Destination, NewDestination } from '../../store/store.ts'
import { CREATION_QUERY } from '../name.ts'
import { queryBoolean } from '../query.ts'

export const DESTINATION_QUERY = object({
  ...CREATION_QUERY.fields,
  allowDuplicate: withDefault(
    queryBoolean({
      description:
        'If true, the destination is created even if another destination of one of its sources has the same name and one of its URLs, or the same name and integration. Every message is then sent twice. Otherwise, the request fails with `destination_exists`.',
    }),
    false,
  ),
})

type Compared = Pick<Destination, 'name' | 'urls' | 'sourceIds' | 'integration'>

/** Throws destination_exists. */
export function checkDuplicate(
  { allowDuplicate }: { allowDuplicate: boolean },
  wanted: NewDestination,
  { destinations }: Configuration,
): void {
  if (allowDuplicate) return
  const found = [...destinations.values()].find((other) => isSame(other, wanted))
  if (found === undefined) return
  const what = found.integration === null ? 'the same URL' : 'the same integration'
  throw new ApiError('destination_exists', {
    field: 'name',
    destinationId: found.id,
    message: `The destination ${found.id} already has the name ${JSON.stringify(found.name)} and ${what}, and gets messages of the same source, so every message would be sent twice. Change that destination, choose another name, or repeat the request with allowDuplicate=true.`,
  })
}

function isSame(one: Compared, other: Compared): boolean {
  return (
    one.name === other.name &&
    one.integration?.slug === other.integration?.slug &&
    one.sourceIds.some((id) => other.sourceIds.includes(id)) &&
    (one.integration !== null || one.urls.some((url) => other.urls.includes(url)))
  )
}
