// Changes of the configuration that depend on it. What a caller read before may be older than what is stored: another node or another
// request may have changed it since. So a change is given as a function, which the store calls with what is stored, under the lock
// that all changes take. The function checks limits and existence, merges fields, and throws to refuse the change.

import type { Configuration } from './model.ts'

/**
 * The value, or a function that computes it from what is stored. The function must have no side effects: it is called again when the
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
