// What a destination's settings become with the fields of a request: checked against each other, and merged with the settings that stay.
// Creating, updating and previewing use this, so all three accept and reject the same.

import { invalidField } from '../../api/schema.ts'
import type { GivenSettings, SettingsContext } from '../../destinations/kind.ts'
import { KINDS } from '../../destinations/kinds.ts'
import type { Configuration, Destination, DestinationContent, NewDestination } from '../../store/store.ts'
import { checkSources } from '../sources/sources.ts'
import { checkDeadLetter } from './dead-letter-setting.ts'
import { assertFits, type DestinationPatch } from './destination-settings.ts'
import { retryOf } from './retry-settings.ts'

/** Throws if the schema accepts settings that do not fit together. `before` is undefined for a new destination. */
export function checkedSettings(
  type: Destination['type'],
  given: GivenSettings,
  before: Destination | undefined,
  context: SettingsContext,
): Partial<Destination> {
  return withoutProblem(type, completedSettings(type, given, before, context), before, context)
}

function completedSettings(
  type: Destination['type'],
  given: GivenSettings,
  before: Destination | undefined,
  { definition }: SettingsContext,
) {
  const found = KINDS[type].givenProblem(given, before)
  if (found !== null) throw invalidField(found.field, found.problem)
  return KINDS[type].completed(given, before, definition)
}

function withoutProblem(
  type: Destination['type'],
  settings: Partial<Destination>,
  before: Destination | undefined,
  context: SettingsContext,
) {
  const found = KINDS[type].problem(settings, context, before)
  if (found !== null) throw invalidField(found.field, found.problem)
  return settings
}

interface PatchContext extends SettingsContext {
  configuration: Configuration
  /** The content of the version that the patch restores; null if it restores none. */
  restored: DestinationContent | null
}

/** The fields that an update changes. */
export function patchedSettings(patch: DestinationPatch, before: Destination, context: PatchContext): Partial<NewDestination> {
  assertFits(before.type, patch)
  const { batch, retry, retryWindowMs, ...rest } = patch
  const { configuration, restored } = context
  checkSources(configuration, rest.sourceIds)
  checkDeadLetter(configuration, rest.deadLetter, before.id)
  const changes = { ...rest, ...(batch && { batch: { ...before.batch, ...batch } }) }
  const completed = { ...completedSettings(before.type, changes, before, context), ...restored }
  return { ...withoutProblem(before.type, completed, before, context), ...retryOf({ retry, retryWindowMs }, before) }
}
