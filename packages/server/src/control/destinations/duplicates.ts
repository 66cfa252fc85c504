// Refuses a destination that would send every message twice: one with the name and the URL, or the name and the integration, of another destination
// of the same source. It is nearly always a command or a request that was repeated. The check runs on the stored configuration, under its lock.

import { queryBoolean } from '../../api/query-values.ts'
import { object, withDefault } from '../../api/schema.ts'
import { kindOf } from '../../destinations/kinds.ts'
import { ApiError } from '../../errors.ts'
import type { Configuration, NewDestination } from '../../store/store.ts'
import { CREATION_QUERY } from '../routes/resource-routes.ts'

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

/** Throws destination_exists. */
export function checkDuplicate(
  { allowDuplicate }: { allowDuplicate: boolean },
  wanted: NewDestination,
  { destinations }: Configuration,
): void {
  if (allowDuplicate) return
  for (const other of destinations.values()) {
    const what = sharedReceiver(other, wanted)
    if (what === null) continue
    throw new ApiError('destination_exists', {
      field: 'name',
      destinationId: other.id,
      message: `The destination ${other.id} already has the name ${JSON.stringify(other.name)} and ${what}, and gets messages of the same source, so every message would be sent twice. Change that destination, choose another name, or repeat the request with allowDuplicate=true.`,
    })
  }
}

/** What both have in common besides the name and a source; null if they are not the same. */
function sharedReceiver(one: NewDestination, other: NewDestination): string | null {
  const isAlike = one.type === other.type && one.name === other.name && one.sourceIds.some((id) => other.sourceIds.includes(id))
  return isAlike ? kindOf(one).sameReceiver(one, other) : null
}
