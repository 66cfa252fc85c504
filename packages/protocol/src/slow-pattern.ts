// Finds regular expressions that can take very long for some texts. JavaScript tries all ways to match, and there can be exponentially many if
// a repeated group contains another repetition or alternatives, as in `(a+)+`. Such patterns are refused, because senders choose the texts.
// What is left takes at most time in proportion to a power of the length: the number of unlimited repetitions, which is limited, too.

export const MAX_PATTERN_LENGTH = 500
const MAX_UNLIMITED = 3
/** More repetitions than this count as unlimited. */
const MANY = 50

/** Returns what is wrong with a pattern, as the end of a sentence that starts with the name of the field; null if it can be used. */
export function patternProblem(pattern: string): string | null {
  if (pattern.length > MAX_PATTERN_LENGTH) return `is longer than ${MAX_PATTERN_LENGTH} characters`
  /** For each open group, whether it contains a repetition or alternatives. */
  const groups = [false]
  let unlimited = 0
  /** Whether the element before the current position is a group that contains a repetition or alternatives. */
  let isVariable = false
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at] as string
    const before = isVariable
    isVariable = false
    if (char === '\\') {
      if (/[1-9k]/.test(pattern[at + 1] ?? '')) return 'has a back reference, which can take very long. Write the pattern without it'
      at++
    } else if (char === '[') {
      while (at < pattern.length && pattern[at] !== ']') at += pattern[at] === '\\' ? 2 : 1
    } else if (char === '(') {
      if (/^\(\?<?[=!]/.test(pattern.slice(at)))
        return 'has a lookahead or lookbehind, which can take very long. Write the pattern without it'
      groups.push(false)
    } else if (char === ')') {
      isVariable = groups.pop() ?? false
      // What is variable in a group is variable in the group around it.
      if (isVariable) mark(groups)
    } else if (char === '|') mark(groups)
    else {
      const repetition = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(pattern.slice(at))
      if (repetition === null) continue
      const [text, least, comma, most] = repetition
      at += text.length - 1
      const max =
        least === undefined ? (text.startsWith('?') ? 1 : Infinity) : comma === '' ? Number(least) : most === '' ? Infinity : Number(most)
      mark(groups)
      if (max <= 1) continue
      if (before)
        return 'repeats a group that contains a repetition or alternatives, which can take very long. Repeat a character class instead'
      if (max > MANY && ++unlimited > MAX_UNLIMITED) return `has more than ${MAX_UNLIMITED} unlimited repetitions, which can take very long`
    }
  }
  return null
}

function mark(groups: boolean[]): void {
  groups[groups.length - 1] = true
}
