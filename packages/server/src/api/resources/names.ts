// Names and ids that people choose for resources.

import { type Schema, string } from '../schema.ts'

/** Any text that can be read on one line. Several resources may have the same name. */
export function displayName(description = 'The display name.'): Schema<string> {
  return string({ min: 1, max: 100, description, check: nameProblem })
}

/** Returns what is wrong with a name, as the end of a sentence that starts with the field; null if it is valid. */
export function nameProblem(name: string): string | null {
  return name.trim() === '' || /\p{Cc}/u.test(name) ? 'must not be blank and must not contain control characters' : null
}

/** Where an import took a resource from. */
export const ORIGIN: Schema<string> = string({
  min: 1,
  max: 300,
  description:
    'What the resource was imported from: the system and its id there, such as `segment:5GFhvtz8fha42Cm8B9E6L8`. `import-workspace` sets it and recognises the resource by it. Null if it was not imported.',
  check: nameProblem,
})

/** An id that works unescaped in the path of a URL, in a header, and as the user name of Basic authentication, which must not contain a colon. */
export function urlSafeId(description: string): Schema<string> {
  const pattern = '^[A-Za-z0-9][A-Za-z0-9._~-]*$'
  const isSafe = new RegExp(pattern)
  return string({
    min: 1,
    max: 100,
    pattern,
    description,
    check: (id) =>
      isSafe.test(id) ? null : 'must start with a letter or digit and contain only letters, digits and the characters . _ ~ -',
  })
}
