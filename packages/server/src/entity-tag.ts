// The tag of a thing as an answer of the control API shows it: equal as long as the answer is. The service sends it as ETag and compares it
// with If-Match; a command computes it from an entry of a list. So nobody has to store versions, and no hash of what a viewer may not see is shown to one.

import { createHash } from 'node:crypto'

/** With its quotes, as it stands in a header. */
export function entityTag(shown: unknown): string {
  return `"${createHash('sha256')
    .update(JSON.stringify(inOrder(shown)))
    .digest('base64url')
    .slice(0, 22)}"`
}

/** Whether the tag is one of those in the header If-Match. A proxy that compresses answers marks tags as weak; that is let pass. */
export function isNamedIn(header: string, tag: string): boolean {
  return header.split(',').some((each) => ['*', tag].includes(each.trim().replace(/^W\//, '')))
}

/** The order of fields says nothing. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, of]) => [name, inOrder(of)]))
}
