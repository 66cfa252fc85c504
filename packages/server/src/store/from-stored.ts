// Changes of the configuration that depend on it. What a caller read before may be older than what is stored: another node or another
// request may have changed it since. So a change is given as a function, which the store calls with what is stored, under the lock
// that all changes take. Limits, merges and 'does it exist' are judged there, and a refusal is thrown.

import type { Configuration } from './model.ts'

/**
 * What is wanted, or a function that says it from what is stored. The function must have no effects: it is called again when the
 * transaction is repeated.
 */
export type FromStored<Wanted, Stored extends readonly unknown[] = [configuration: Configuration]> =
  | Wanted
  | ((...stored: Stored) => Wanted)

/** Of an update: the fields to change, from the thing as it is stored. */
export type ChangeOf<Thing, New> = FromStored<Partial<New>, [before: Thing, configuration: Configuration]>

export function resolve<Wanted extends object, Stored extends readonly unknown[]>(
  wanted: FromStored<Wanted, Stored>,
  ...stored: Stored
): Wanted {
  return typeof wanted === 'function' ? wanted(...stored) : wanted
}
