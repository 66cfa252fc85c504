// Finds the known word closest to a misspelt one, for "Did you mean …?" hints about flags, commands, variables, fields and slugs.

const LONGEST = 100

/**
 * Returns the known word that was probably meant: one that is written in another style (`user_id`), has a typing error (`ulrs`), or is the only
 * one that contains the given word or is contained in it (`amplitude` for `actions-amplitude`).
 */
export function suggestion(word: string, known: readonly string[]): string | undefined {
  if (word.length > LONGEST) return undefined
  const plain = plainForm(word)
  const sameWord = known.find((candidate) => plainForm(candidate) === plain)
  if (sameWord !== undefined) return sameWord
  const containing = plain.length < 3 ? [] : known.filter((candidate) => contains(plainForm(candidate), plain))
  return nearest(word, known) ?? (containing.length === 1 ? containing[0] : undefined)
}

function contains(candidate: string, word: string): boolean {
  return candidate.includes(word) || (candidate.length >= 4 && word.includes(candidate))
}

/** Without case and separators: `user_id` and `userId` are the same. */
function plainForm(word: string): string {
  return word.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')
}

/** Returns the known word with the smallest edit distance, if the distance is small for the length of the word. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  let least = Math.max(2, Math.floor(word.length / 5)) + 1
  for (const candidate of known) {
    const distance = edits(word, candidate)
    if (distance < least) [best, least] = [candidate, distance]
  }
  return best
}

function edits(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const substitution = (previous[column - 1] as number) + (from[row - 1] === to[column - 1] ? 0 : 1)
      current.push(Math.min(substitution, (previous[column] as number) + 1, (current[column - 1] as number) + 1))
    }
    previous = current
  }
  return previous[to.length] as number
}
