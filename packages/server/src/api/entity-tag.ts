// The entity tag of a resource is a hash of its representation in the control API. The service sends it as ETag and compares it with If-Match;
// commands compute it from an entry of a list. So no versions need to be stored, and a viewer gets no hash of values that it may not see.

import { createHash } from 'node:crypto'

/** Returns the tag including its quotes, as in the header. */
export function entityTag(shown: unknown): string {
  // Warnings about a change are not part of the resource.
  const { warnings: _, ...resource } = typeof shown === 'object' && shown !== null ? (shown as { warnings?: unknown }) : { shown }
  return `"${createHash('sha256')
    .update(JSON.stringify(inOrder(resource)))
    .digest('base64url')
    .slice(0, 22)}"`
}

/** Whether the If-Match header contains the tag. Weak tags are accepted, because proxies that compress responses mark tags as weak. */
export function isNamedIn(header: string, tag: string): boolean {
  return header.split(',').some((each) => ['*', tag].includes(each.trim().replace(/^W\//, '')))
}

/** Sorts fields by name, because their order does not matter. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, of]) => [name, inOrder(of)]))
}
