// The versions of what a destination sends: who changed what, and when. PATCH /destinations/:id restores one.

import type { JsonObject } from '@switchyard/protocol'
import { array, boolean, integer, invalidField, nullable, object, string, time } from '../../api/schema.ts'
import { KINDS, kindOf, VERSIONED } from '../../destinations/kinds.ts'
import { ApiError } from '../../errors.ts'
import {
  type ConfigurationStore,
  type Destination,
  type DestinationContent,
  type DestinationVersion,
  type Role,
} from '../../store/store.ts'
import { listAnswer, listQuery, pageAnswer, pageRequest } from '../routes/query.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

/** No destination gets that many versions. */
const MAX_VERSION = 1_000_000_000

export const VERSION_FIELD = integer({
  min: 1,
  max: MAX_VERSION,
  description:
    'The number of a version to restore. The destination gets the `request` and `transformation`, or the `subscriptions`, of that version, as a new version. Cannot be combined with any of them.',
})

const VERSION = object(
  {
    version: integer(),
    current: boolean({ description: 'Whether the destination uses this version now.' }),
    createdAt: time({ description: 'When the version was saved.' }),
    actor: nullable(
      object({ id: string(), name: string() }, { description: 'The token that saved the version; null if that is not known.' }),
    ),
    changed: array(string(), {
      description:
        'The settings that differ from the previous version, such as `transformation.code` or `subscriptions[0].mapping`. Empty for the first version.',
    }),
    restoredFrom: nullable(
      integer({ description: 'If the version was saved by restoring an older one: the number of that version; otherwise null.' }),
    ),
    ...Object.assign({}, ...Object.values(KINDS).map(({ content }) => content.shown)),
  },
  { title: 'DestinationVersion', description: 'A version of what a destination sends.' },
)

export function versionRoutes({ store }: ControlParts): Route[] {
  return [
    route('GET', '/destinations/:id/versions', {
      summary: 'List the versions of a destination, newest first',
      access: { role: 'viewer', sources: 'limited', subject: 'destination' },
      description:
        'Every change of `request`, `transformation` or `subscriptions` creates a version. The newest 100 are kept. To restore one, send its number as `version` in an update of the destination.',
      query: listQuery({}),
      answer: listAnswer(VERSION),
      errors: ['destination_not_found'],
      async handle({ params, query, roleOn }) {
        const destination = store.configuration().destinations.get(params['id'] ?? '')
        if (destination === undefined) throw new ApiError('destination_not_found')
        const page = await store.resources.destinationVersions(destination.id, pageRequest('versions', query))
        return pageAnswer('versions', page, (version) => versionView(destination, version, roleOn(destination.id)))
      },
    }),
  ]
}

export interface RestoredVersion {
  content: DestinationContent
  /** The origins of the URLs of the destination when the version was saved. Undefined if an earlier version of the service saved it. */
  origins: readonly string[] | undefined
}

/** Returns the version that a change restores; null if it restores none. Throws if that is not possible. */
export async function contentToRestore(
  settings: ConfigurationStore,
  destinationId: string,
  change: { version?: number | undefined },
): Promise<RestoredVersion | null> {
  const { version } = change
  if (version === undefined) return null
  const both = VERSIONED.find((name) => Object.hasOwn(change, name))
  if (both !== undefined) throw invalidField('version', `cannot be combined with ${both}; send one of both`)
  const found = await settings.destinationVersion(destinationId, version)
  if (found === undefined)
    throw invalidField('version', 'is not the number of a version that is kept; GET /api/destinations/{id}/versions lists them')
  return { content: found.content, origins: found.origins }
}

function versionView(destination: Destination, version: DestinationVersion, role: Role) {
  const kind = kindOf(destination)
  const whole: Destination = { ...destination, ...version.content }
  const shown: JsonObject = role !== 'viewer' ? kind.show(whole) : kind.showHidden(whole)
  return {
    ...version,
    current: version.version === destination.version,
    createdAt: version.atMs,
    ...Object.fromEntries(VERSIONED.map((name) => [name, shown[name] ?? null])),
  }
}
