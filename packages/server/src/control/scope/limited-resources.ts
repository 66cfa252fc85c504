// Changes of the configuration by a caller that is limited to sources. A resource out of scope is not found, as if it did not exist. Checks run on
// the stored state, inside the transaction of the change, because another node may have attached a source a moment ago.

import { isDeepStrictEqual } from 'node:util'
import { invalidField } from '../../api/schema.ts'
import { withSecret } from '../../destinations/warehouse/place.ts'
import type { WarehousePlace } from '../../destinations/warehouse/settings.ts'
import { ApiError } from '../../errors.ts'
import { resolve } from '../../store/port/from-stored.ts'
import type { Configuration, ConfigurationStore, Destination, Store, StoredPlan } from '../../store/store.ts'
import { unreachable } from './out-of-reach.ts'
import type { Scope } from './scope.ts'

/** Thrown inside of a change to end it. */
class OutOfScope extends Error {
  override name = 'OutOfScope'
}

async function orElse<T, Other>(change: Promise<T>, other: Other): Promise<T | Other> {
  try {
    return await change
  } catch (error) {
    if (error instanceof OutOfScope) return other
    throw error
  }
}

/** What belongs to no source exists only for callers with all sources, so a limited one cannot create it. */
function assertOwn(scope: Scope, sourceIds: readonly string[]): void {
  if (sourceIds.length === 0)
    throw invalidField('sourceIds', 'must have at least one source, because your access is limited to some sources')
  if (!scope.hasAll(sourceIds)) throw invalidField('sourceIds', 'has an id that is not the id of a source')
}

/**
 * Tables that a warehouse finds at its place may be those of a destination that the caller must not change, or even know. A destination that an admin has let
 * adopt them keeps that, as long as it stays there.
 */
function assertNoAdoption(made: Partial<Destination>, before?: Destination): void {
  const place = 'warehouse' in made ? made.warehouse : undefined
  if (!place?.adopt) return
  const known = before !== undefined && 'warehouse' in before ? before.warehouse : undefined
  if (known?.adopt && isDeepStrictEqual(placeOf(known), placeOf(place))) return
  throw invalidField('warehouse.adopt', 'requires access to all sources, because the tables may belong to other destinations. Ask an admin')
}

/** Without what does not say where the tables are. */
function placeOf(place: WarehousePlace): Record<string, unknown> {
  const { keepDays: _, ...where } = withSecret(place, null)
  return where
}

export function limitedResources(store: Store, scope: Scope): ConfigurationStore {
  const { resources } = store
  return {
    ...limitedDestinations(store, scope),
    ...limitedPlans(resources, scope),
    createSource: unreachable('creating a source'),
    async updateSource(id, wanted, audit) {
      if (!scope.has(id)) return undefined
      return resources.updateSource(id, (before, configuration) => resolve(wanted, before, scope.limit(configuration)), audit)
    },
    deleteSource: unreachable('deleting a source'),
    ensureSystemSource: unreachable('the source system'),
    createOAuthApp: unreachable('creating an OAuth application'),
    updateOAuthApp: unreachable('changing an OAuth application'),
    deleteOAuthApp: unreachable('deleting an OAuth application'),
    // Only people, for themselves: the route checks the owner and the scope.
    createToken: (wanted, audit) => resources.createToken(wanted, audit),
    deleteToken: (id, audit) => resources.deleteToken(id, audit),
    tokenUses: unreachable('the uses of tokens'),
    useToken: unreachable('the use of a token'),
    getSetting: unreachable('a setting of the service'),
    setSetting: unreachable('a setting of the service'),
  }
}

type DestinationChange = 'createDestination' | 'updateDestination' | 'deleteDestination' | 'destinationVersions' | 'destinationVersion'

function limitedDestinations(store: Store, scope: Scope): Pick<ConfigurationStore, DestinationChange> {
  const { resources } = store
  const assertWhole = (configuration: Configuration, destination: Destination): void => {
    if (!scope.limit(configuration).destinations.has(destination.id) && !destination.sourceIds.some(scope.has)) throw new OutOfScope()
    if (!scope.isWhole(configuration, destination)) throw new ApiError('shared_destination')
  }
  const exists = (destinationId: string): boolean => scope.limit(store.configuration()).destinations.has(destinationId)
  return {
    createDestination: (wanted, audit) =>
      resources.createDestination((configuration) => {
        const made = resolve(wanted, scope.limit(configuration))
        assertOwn(scope, made.sourceIds)
        assertNoAdoption(made)
        return made
      }, audit),
    updateDestination: (id, wanted, audit) =>
      orElse(
        resources.updateDestination(
          id,
          (before, configuration) => {
            assertWhole(configuration, before)
            const change = resolve(wanted, before, scope.limit(configuration))
            if (change.sourceIds !== undefined) assertOwn(scope, change.sourceIds)
            assertNoAdoption(change, before)
            return change
          },
          audit,
        ),
        undefined,
      ),
    deleteDestination: (id, audit, check) =>
      orElse(
        resources.deleteDestination(id, audit, (before) => {
          assertWhole(store.configuration(), before)
          check?.(before)
        }),
        false,
      ),
    destinationVersions: async (id, page) => (exists(id) ? resources.destinationVersions(id, page) : { data: [], next: null }),
    destinationVersion: async (id, version) => (exists(id) ? resources.destinationVersion(id, version) : undefined),
  }
}

function limitedPlans(resources: ConfigurationStore, scope: Scope): Pick<ConfigurationStore, 'createPlan' | 'updatePlan' | 'deletePlan'> {
  const assertPlan = ({ sourceIds }: StoredPlan): void => {
    if (!scope.hasAll(sourceIds)) throw new OutOfScope()
  }
  return {
    createPlan: (wanted, audit) =>
      resources.createPlan((configuration) => {
        const made = resolve(wanted, scope.limit(configuration))
        assertOwn(scope, made.sourceIds)
        return made
      }, audit),
    updatePlan: (id, wanted, audit) =>
      orElse(
        resources.updatePlan(
          id,
          (before, configuration) => {
            assertPlan(before)
            const change = resolve(wanted, before, scope.limit(configuration))
            if (change.sourceIds !== undefined) assertOwn(scope, change.sourceIds)
            return change
          },
          audit,
        ),
        undefined,
      ),
    deletePlan: (id, audit, check) =>
      orElse(
        resources.deletePlan(id, audit, (before) => {
          assertPlan(before)
          check?.(before)
        }),
        false,
      ),
  }
}
