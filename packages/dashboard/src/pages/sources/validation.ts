// Which names a source may have and which write keys a user may choose. These are the rules of the control API
// (packages/server/src/control/sources/sources.ts), which has the last word. Pure.

/** What is wrong with it, as a sentence, or null. */
export function nameProblem(name: string): string | null {
  if (name.trim() === '') return 'Give it a name.'
  if (name.length > 100) return 'A name has at most 100 characters.'
  return /\p{Cc}|\p{Surrogate}/u.test(name) ? 'A name is text on one line, without control characters.' : null
}

export function writeKeyProblem(key: string): string | null {
  if (key === '') return 'Give the key.'
  if (key.length > 100) return 'A write key has at most 100 characters.'
  return /^[A-Za-z0-9][A-Za-z0-9._~-]*$/.test(key)
    ? null
    : 'A write key has letters, digits and . _ ~ - only, and begins with a letter or digit.'
}
