// The tag of a resource as the control API shows it: it is the same as long as the answer is the same. The service sends it as ETag and compares
// it with If-Match; a command computes it from an entry of a list. So no versions are stored, and a viewer gets no hash of what it may not see.

import { createHash } from 'node:crypto'

/** Includes the quotes, as in the header. */
export function entityTag(shown: unknown): string {
  return `"${createHash('sha256')
    .update(JSON.stringify(inOrder(shown)))
    .digest('base64url')
    .slice(0, 22)}"`
}

/** Whether the tag is one of those in the header If-Match. A proxy that compresses answers marks tags as weak; those are accepted. */
export function isNamedIn(header: string, tag: string): boolean {
  return header.split(',').some((each) => ['*', tag].includes(each.trim().replace(/^W\//, '')))
}

/** The order of fields does not matter. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, of]) => [name, inOrder(of)]))
}
