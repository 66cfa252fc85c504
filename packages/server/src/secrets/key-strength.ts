// The minimum length of a key that encrypts stored secrets. The key is not stretched by a slow hash, so a short one could be guessed from a copy of the
// store.

const MIN_KEY_LENGTH = 16

/** Returns what is wrong with a key, as a sentence that starts with the name of its variable; null if it is long enough. */
export function keyProblem(variable: string, key: string): string | null {
  if (key.length >= MIN_KEY_LENGTH) return null
  return `${variable} has ${key.length} characters, and needs at least ${MIN_KEY_LENGTH}. Generate one with \`switchyard rotate-key --generate\` or \`openssl rand -base64 32\`.`
}
