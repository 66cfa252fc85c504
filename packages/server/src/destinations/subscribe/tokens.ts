// Splits a subscribe expression into tokens, each with its place. The rules are those of @segment/fql-ts, with two additions: letters of all
// alphabets in names, and names that start with a digit after a dot (`products.0.price`).

/** What is wrong with an expression, and where: `at` is an index in its text. */
export class ExpressionProblem extends Error {
  readonly at: number

  constructor(at: number, problem: string) {
    super(problem)
    this.at = at
  }
}

export type Token = { at: number; text: string } & (
  | { kind: 'symbol' | 'end' }
  | { kind: 'number'; value: number }
  | { kind: 'text'; value: string }
  /** A dotted path, or a single word. `keys` are without their escapes. */
  | { kind: 'word'; keys: readonly string[] }
)

const BLANK = /[ \t\r\n]+/y
const SYMBOL = /!=|<=|>=|[=<>!(),]/y
const NUMBER = /[-+]?\d+(?:\.\d+)?/y
// Strings have no escapes: text with one kind of quotes is written in the other.
const TEXT = /"([^"]*)"|'([^']*)'/y
const WORD = /(?:[\p{L}_]|\\.)(?:[\p{L}\p{N}_-]|\\.)*(?:\.(?:[\p{L}\p{N}_-]|\\.)+)*/suy
const ESCAPE = /\\(.)/gsu
const WORD_PART = /[\p{L}\p{N}_.\\-]/uy

const HINTS: Readonly<Record<string, string>> = {
  '"': 'the quote is not closed',
  "'": 'the quote is not closed',
  '&': 'write "and"',
  '|': 'write "or"',
  '[': 'write the position in a list after a dot, as in properties.products.0.price',
}

export function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    return pattern.exec(text)
  }
  for (;;) {
    at += take(BLANK)?.[0].length ?? 0
    if (at === text.length) break
    const token = next(take, at)
    if (token === undefined) {
      const character = String.fromCodePoint(text.codePointAt(at) as number)
      throw new ExpressionProblem(at, HINTS[character] ?? `unexpected ${shown(character)}`)
    }
    at += token.text.length
    const isOpen = (token.kind === 'word' || token.kind === 'number') && take(WORD_PART) !== null
    if (isOpen) throw new ExpressionProblem(at, `unexpected ${shown(text.charAt(at))} after ${shown(token.text)}`)
    tokens.push(token)
  }
  return [...tokens, { kind: 'end', at, text: '' }]
}

function next(take: (pattern: RegExp) => RegExpExecArray | null, at: number): Token | undefined {
  const symbol = take(SYMBOL)
  if (symbol !== null) return { kind: 'symbol', at, text: symbol[0] }
  const quoted = take(TEXT)
  if (quoted !== null) return { kind: 'text', at, text: quoted[0], value: quoted[1] ?? quoted[2] ?? '' }
  const number = take(NUMBER)
  if (number !== null) return { kind: 'number', at, text: number[0], value: Number(number[0]) }
  const word = take(WORD)
  return word === null ? undefined : { kind: 'word', at, text: word[0], keys: keysOf(word[0], at) }
}

function keysOf(word: string, at: number): string[] {
  for (const { index, 1: character } of word.matchAll(ESCAPE)) {
    // The evaluation splits names at dots, so an escaped dot would mean the same as one without the backslash.
    if (character === '.') throw new ExpressionProblem(at + index, 'a key that contains a dot cannot be used')
  }
  return word.split('.').map((key) => key.replaceAll(ESCAPE, '$1'))
}

/** Quoted and truncated for a sentence about the expression. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
}
