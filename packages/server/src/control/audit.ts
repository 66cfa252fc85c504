// What is written down about a change: who made it, and the thing before and after as answers show it. Views leave secrets
// out, and so do these. The entry is stored in the change's own transaction.

import type { JsonObject } from '@switchyard/protocol'
import type { Actor, Audit } from '../store/store.ts'

/** `action` is the thing and what was done to it: `source.update`. */
export function audited<T extends { id: string }>(actor: Actor, action: string, view: (thing: T) => object): Audit<T> {
  const shown = (thing: T | null): JsonObject | null => (thing === null ? null : (view(thing) as JsonObject))
  return (after, before) => ({ actor, action, subject: (after ?? before)?.id ?? null, before: shown(before), after: shown(after) })
}
