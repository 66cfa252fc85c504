// Names that people give to sources and destinations: anything that can be read on one line.

/** What is wrong with a name, completing "The field …". */
export function nameProblem(name: string): string | null {
  return name.trim() === '' || /\p{Cc}/u.test(name) ? 'must be readable text: not blank, without control characters' : null
}
