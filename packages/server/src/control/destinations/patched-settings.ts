// What a destination's settings become with the fields of a request: checked against each other, and merged with the settings that stay.
// Creating, updating and previewing use this, so all three accept and reject the same.

import { invalidField } from '../../api/schema.ts'
import { KINDS } from '../../destinations/kinds.ts'
import type { GivenSettings, MoveContext, SettingsContext } from '../../destinations/port/kind.ts'
import { retryOf } from '../../destinations/settings/retry-settings.ts'
import { ApiError } from '../../errors.ts'
import type { Configuration, Destination, DestinationType, NewDestination } from '../../store/store.ts'
import { checkSources } from '../sources/sources.ts'
import { checkDeadLetter } from './dead-letter-setting.ts'
import { assertFits, type DestinationPatch } from './destination-settings.ts'
import type { RestoredVersion } from './versions.ts'

/** Throws if the schema accepts settings that do not fit together. `before` is undefined for a new destination. */
export function checkedSettings(
  type: DestinationType,
  given: GivenSettings,
  before: Destination | undefined,
  context: SettingsContext,
): Partial<Destination> {
  const settings = completedSettings(type, given, before, context)
  if (before !== undefined) assertNoneMoved(given, settings, before, { ...context, restoredOrigins: undefined })
  return withoutProblem(type, settings, before, context)
}

/** Throws if stored secrets would be sent to a server that they were not given for. */
function assertNoneMoved(given: GivenSettings, settings: Partial<Destination>, before: Destination, about: MoveContext): void {
  const fields = KINDS[before.type].movedSecrets(given, settings, before, about)
  if (fields.length === 0) return
  throw new ApiError('secrets_needed', {
    fields,
    message: `The change points the destination to another server, and stored secrets are only sent to the servers they were given for. Send these again in the same request: ${fields.join(', ')}.`,
  })
}

function completedSettings(type: DestinationType, given: GivenSettings, before: Destination | undefined, { definition }: SettingsContext) {
  const found = KINDS[type].givenProblem(given, before)
  if (found !== null) throw invalidField(found.field, found.problem)
  return KINDS[type].completed(given, before, definition)
}

function withoutProblem(type: DestinationType, settings: Partial<Destination>, before: Destination | undefined, context: SettingsContext) {
  const found = KINDS[type].problem(settings, context, before)
  if (found !== null) throw invalidField(found.field, found.problem)
  return settings
}

interface PatchContext extends SettingsContext {
  configuration: Configuration
  /** The version that the patch restores; null if it restores none. */
  restored: RestoredVersion | null
}

/** The fields that an update changes. */
export function patchedSettings(patch: DestinationPatch, before: Destination, context: PatchContext): Partial<NewDestination> {
  assertFits(before.type, patch)
  const { batch, retry, retryWindowMs, ...rest } = patch
  const { configuration, restored } = context
  checkSources(configuration, rest.sourceIds)
  checkDeadLetter(configuration, rest.deadLetter, before.id)
  const changes = { ...rest, ...(batch && { batch: { ...before.batch, ...batch } }) }
  const completed = { ...completedSettings(before.type, changes, before, context), ...restored?.content }
  assertNoneMoved(changes, completed, before, { ...context, restoredOrigins: restored?.origins })
  return { ...withoutProblem(before.type, completed, before, context), ...retryOf({ retry, retryWindowMs }, before) }
}
