// What a destination's settings become with the fields of a request: checked against each other, and merged with the settings that stay.
// Creating, updating and previewing use this, so all three accept and reject the same.

import { invalidField } from '../../api/schema.ts'
import { KINDS } from '../../destinations/kinds.ts'
import type { Configuration, Destination, DestinationContent, NewDestination } from '../../store/store.ts'
import type { ControlParts } from '../route.ts'
import { checkSources } from '../sources/sources.ts'
import { checkDeadLetter } from './dead-letter-setting.ts'
import type { DestinationPatch } from './destination-settings.ts'
import { retryOf } from './retry-settings.ts'

/** Throws if the schema accepts settings that do not fit together. `before` is undefined for a new destination. */
export function checkedSettings<T extends Omit<Partial<Destination>, 'retry'>>(
  type: Destination['type'],
  given: T,
  before: Destination | undefined,
  checkUrl: ControlParts['checkUrl'],
): T {
  const settings = KINDS[type].withKeptSecrets(given, before)
  const found = KINDS[type].problem(settings, (url) => checkUrl?.(url) ?? null, before)
  if (found !== null) throw invalidField(found.field, found.problem)
  return settings
}

interface PatchContext extends Pick<ControlParts, 'checkUrl'> {
  configuration: Configuration
  /** The content of the version that the patch restores; null if it restores none. */
  restored: DestinationContent | null
}

/** The fields that an update changes. */
export function patchedSettings(
  { batch, retry, retryWindowMs, ...rest }: DestinationPatch,
  before: Destination,
  { configuration, restored, checkUrl }: PatchContext,
): Partial<NewDestination> {
  checkSources(configuration, rest.sourceIds)
  checkDeadLetter(configuration, rest.deadLetter, before.id)
  const changes = { ...rest, ...restored, ...(batch && { batch: { ...before.batch, ...batch } }) }
  return { ...checkedSettings(before.type, changes, before, checkUrl), ...retryOf({ retry, retryWindowMs }, before) }
}
