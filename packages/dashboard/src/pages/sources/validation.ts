// Validates the names of sources, by the same rules as the control API
// (packages/server/src/control/sources/sources.ts). The API decides. Pure.

/** A sentence about what is wrong with the name; null if it is valid. */
export function nameProblem(name: string): string | null {
  if (name.trim() === '') return 'Enter a name.'
  if (name.length > 100) return 'Use at most 100 characters.'
  return /\p{Cc}|\p{Surrogate}/u.test(name) ? 'Use one line of text without control characters.' : null
}
