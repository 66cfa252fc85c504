// Changes of the configuration that depend on its current state. What a caller has read may be outdated, because another node or another
// request may have changed it since. So a change is given as a function, which the store calls with the stored state, under the lock that
// all changes take. The function checks limits and existence, merges fields, and throws to reject the change.

import type { Configuration } from '../../model/configuration.ts'

/**
 * The value, or a function that computes it from the stored state. The function must have no side effects: it is called again when the
 * transaction is retried.
 */
export type FromStored<Wanted, Stored extends readonly unknown[] = [configuration: Configuration]> =
  | Wanted
  | ((...stored: Stored) => Wanted)

/** For an update: the fields to change, computed from the resource as it is stored. */
export type ChangeOf<Thing, New> = FromStored<Partial<New>, [before: Thing, configuration: Configuration]>

export function resolve<Wanted extends object, Stored extends readonly unknown[]>(
  wanted: FromStored<Wanted, Stored>,
  ...stored: Stored
): Wanted {
  return typeof wanted === 'function' ? wanted(...stored) : wanted
}
