// Limits the time that regular expressions take, because senders choose the texts. JavaScript tries all ways to match, and there can be
// exponentially many if a repeated group contains another repetition or alternatives, as in `(a+)+`. Such patterns are rejected. For what is
// left, the number of ways is known: a power of the length of the text, times the choices that do not depend on it. Each way is as long as the
// fixed parts of the pattern. Each message has a number of steps (judging-steps.ts).

import type { JudgingSteps } from './judging-steps.ts'

export const MAX_PATTERN_LENGTH = 500
const MAX_POWER = 3
const MAX_CHOICES = 1_000
/** More repetitions than this count as unlimited. */
const MANY = 50
/** `a{40}` counts as forty characters. */
const MAX_SIZE = 2_000
/** Characters that have to match one after the other are compared this much faster than ways are tried. */
const CHARACTERS_PER_STEP = 2

interface Ways {
  choices: number
  /** The number of steps grows with the length of the text to this power. */
  power: number
  /** The number of characters in the fixed parts. */
  size: number
}

/** Returns what is wrong with a pattern, as the end of a sentence that starts with the name of the field; null if it can be used. */
export function patternProblem(pattern: string): string | null {
  const ways = waysToMatch(pattern)
  if (typeof ways === 'string') return ways
  return ways.size > MAX_SIZE
    ? `has more than ${MAX_SIZE} characters in its fixed parts (a{50} counts as 50 characters), which can take a very long time to match`
    : null
}

function waysToMatch(pattern: string): Ways | string {
  if (pattern.length > MAX_PATTERN_LENGTH) return `is longer than ${MAX_PATTERN_LENGTH} characters`
  /** The open groups. `choices` are those of the current alternative, `others` those of the alternatives before it. */
  let group = { choices: 1, others: 0, isVariable: false, size: 0 }
  const around: (typeof group)[] = []
  let unlimited = 0
  let isAnchored = pattern.startsWith('^')
  /** The group before the current position, if there is one, and the number of characters that a repetition there repeats. */
  let closed: typeof group | null = null
  let repeated = 0
  const add = (size: number): void => {
    repeated = size
    group.size += size
  }
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at] as string
    const before = closed
    closed = null
    if (char === '\\') {
      if (/[1-9k]/.test(pattern[at + 1] ?? ''))
        return 'has a back reference, which can take a very long time to match. Write the pattern without it'
      at++
      add(1)
    } else if (char === '[') {
      while (at < pattern.length && pattern[at] !== ']') at += pattern[at] === '\\' ? 2 : 1
      add(1)
    } else if (char === '(') {
      if (/^\(\?<?[=!]/.test(pattern.slice(at)))
        return 'has a lookahead or lookbehind, which can take a very long time to match. Write the pattern without it'
      // In `(?:a)` and `(?<name>a)`, the question mark is no repetition.
      at += (/^\(\?(?:[a-z-]*:|<\w+>)/.exec(pattern.slice(at))?.[0].length ?? 1) - 1
      around.push(group)
      group = { choices: 1, others: 0, isVariable: false, size: 0 }
    } else if (char === ')') {
      closed = group
      // What is variable in a group is variable in the group around it.
      const outer = around.pop() ?? group
      outer.choices *= group.choices + group.others
      outer.isVariable ||= group.isVariable
      group = outer
      add(closed.size)
    } else if (char === '|') {
      if (around.length === 0) isAnchored = false
      group.others += group.choices
      group.choices = 1
      group.isVariable = true
    } else {
      const repetition = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(pattern.slice(at))
      if (repetition === null) {
        add(char === '^' || char === '$' ? 0 : 1)
        continue
      }
      const [text, least, comma, most] = repetition
      at += text.length - 1
      const min = Number(least ?? (text.startsWith('+') ? 1 : 0))
      const max = least === undefined ? (text.startsWith('?') ? 1 : Infinity) : comma === '' ? min : most === '' ? Infinity : Number(most)
      if (max > 1 && before?.isVariable === true)
        return 'repeats a group that contains a repetition or alternatives, which can take a very long time to match. Repeat a character class instead'
      // What an unlimited repetition matches is part of the length of the text.
      group.size += repeated * ((max <= MANY || max === min ? max : min > 1 ? min : 0) - 1)
      // A fixed number of repetitions is no choice.
      if (max === min) continue
      if (max > MANY) unlimited++
      else group.choices *= before === null ? max - min + 1 : max + 1
      group.isVariable = true
    }
  }
  // A pattern without ^ is tried at every position.
  const power = unlimited + (isAnchored ? 0 : 1)
  if (power > MAX_POWER)
    return isAnchored
      ? `has more than ${MAX_POWER} unlimited repetitions, which can take a very long time to match`
      : `has more than ${MAX_POWER - 1} unlimited repetitions and does not start with ^, which can take a very long time to match`
  const choices = group.choices + group.others
  return choices > MAX_CHOICES
    ? 'has too many optional parts and alternatives, which can take a very long time to match'
    : { choices, power, size: group.size }
}

interface LimitedPattern {
  test: (text: string) => boolean
  toString: () => string
}

/** A pattern that takes steps. A text for which there are too few left counts as matching. */
export function limitedPattern(pattern: string, flags: string, steps: JudgingSteps): LimitedPattern {
  const expression = new RegExp(pattern, flags)
  const ways = waysToMatch(pattern)
  // Such a pattern is not accepted, so it is one of the validator's own.
  if (typeof ways === 'string') return expression
  const { choices, power, size } = ways
  const test = (text: string): boolean => {
    const needed =
      (choices * text.length ** power * (1 + Math.min(size, text.length) / CHARACTERS_PER_STEP)) / (power < 2 ? 1 : power === 2 ? 2 : 6)
    return !steps.takeForPattern(needed, text) || expression.test(text)
  }
  // The validator keeps one pattern for each text that this returns.
  return { test, toString: () => String(expression) }
}
