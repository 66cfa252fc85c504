// Entries of the audit log. An entry has the actor, and the resource before and after the change as responses show it, so without secrets. It
// is stored in the same transaction as the change.

import type { JsonObject } from '@switchyard/protocol'
import type { Actor, Audit, HistoryStore, NewAuditEntry } from '../../store/store.ts'

/** `action` is the kind of resource and the change, such as `source.update`. */
export function audited<T extends { id: string }>(
  actor: Actor,
  action: string,
  view: (resource: T) => JsonObject,
  /** The sources that it belongs to; null if it belongs to none, or to all. */
  sourcesOf: (resource: T) => readonly string[] | null,
): Audit<T> {
  const shown = (resource: T | null): JsonObject | null => (resource === null ? null : view(resource))
  return (after, before) => ({
    actor,
    action,
    subject: (after ?? before)?.id ?? null,
    before: shown(before),
    after: shown(after),
    sources: unitedSources([before, after].flatMap((each) => (each === null ? [] : [sourcesOf(each)]))),
  })
}

function unitedSources(lists: readonly (readonly string[] | null)[]): readonly string[] | null {
  return lists.includes(null) ? null : [...new Set(lists.flatMap((ids) => ids ?? []))]
}

/** Records an action that changes nothing in the store, such as a test. */
export function recordAction(
  store: Pick<HistoryStore, 'noteAudit'>,
  { actor, action, subject, after, sources = null }: Omit<NewAuditEntry, 'before'>,
): Promise<void> {
  return store.noteAudit({ actor, action, subject, before: null, after, sources })
}
