// Parses a condition of a Segment destination filter. Its language, as documented at segment.com/docs/api/public-api/fql: comparisons, `in`, `!`, `and`,
// `or`, parentheses, and functions. Paths stay text: expressions here have the same paths. Throws an ExpressionProblem.

import { ExpressionProblem, shown } from '../../destinations/subscribe/tokens.ts'

type Literal = string | number | boolean | null

export type FqlTerm =
  | { kind: 'field'; text: string }
  | { kind: 'value'; value: Literal }
  | { kind: 'list'; values: Literal[] }
  | { kind: 'call'; name: string; args: FqlTerm[] }

export type FqlNode =
  | { kind: 'and' | 'or'; parts: FqlNode[] }
  | { kind: 'not'; part: FqlNode }
  | { kind: 'compare'; left: FqlTerm; operator: string; right: FqlTerm }
  | { kind: 'in'; value: FqlTerm; list: FqlTerm }
  /** A field or a function that is true or false by itself. */
  | { kind: 'truth'; term: FqlTerm }

const TOKEN =
  /\s*(?:(!=|<=|>=|[=<>!(),[\]])|"([^"]*)"|'([^']*)'|([-+]?\d+(?:\.\d+)?(?![\w.-]))|((?:[\p{L}\p{N}_-]|\\.)+(?:\.(?:[\p{L}\p{N}_-]|\\.)+)*))/suy
const MAX_LENGTH = 8_192
const MAX_DEPTH = 50

interface Token {
  at: number
  kind: 'symbol' | 'text' | 'number' | 'word'
  text: string
}

export function parseFql(text: string): FqlNode {
  if (text.length > MAX_LENGTH) throw new ExpressionProblem(MAX_LENGTH, `its condition is longer than ${MAX_LENGTH} characters`)
  const parser = new Parser(tokensOf(text), text.length)
  const node = parser.any()
  parser.end()
  return node
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  const length = text.trimEnd().length
  for (let at = 0; at < length; ) {
    TOKEN.lastIndex = at
    const found = TOKEN.exec(text)
    if (found === null) throw new ExpressionProblem(at, `its condition has an unexpected ${shown(text.slice(at).trimStart().slice(0, 1))}`)
    const [whole, symbol, double, single, number, word] = found
    at += whole.length
    const quoted = double ?? single
    if (symbol !== undefined) tokens.push({ at, kind: 'symbol', text: symbol })
    else if (quoted !== undefined) tokens.push({ at, kind: 'text', text: quoted })
    else if (number !== undefined) tokens.push({ at, kind: 'number', text: number })
    else tokens.push({ at, kind: 'word', text: word ?? '' })
  }
  return tokens
}

class Parser {
  readonly #tokens: readonly Token[]
  readonly #length: number
  #next = 0
  #depth = 0

  constructor(tokens: readonly Token[], length: number) {
    this.#tokens = tokens
    this.#length = length
  }

  any(): FqlNode {
    return this.#joined('or', () => this.#joined('and', () => this.#condition()))
  }

  end(): void {
    if (this.#next < this.#tokens.length) this.#fail()
  }

  #joined(kind: 'and' | 'or', parse: () => FqlNode): FqlNode {
    const parts = [parse()]
    while (this.#takesWord(kind)) parts.push(parse())
    return parts.length === 1 ? (parts[0] as FqlNode) : { kind, parts }
  }

  #condition(): FqlNode {
    if (this.#takes('!')) return this.#deeper(() => ({ kind: 'not', part: this.#condition() }))
    if (this.#takes('('))
      return this.#deeper(() => {
        const inner = this.any()
        if (!this.#takes(')')) this.#fail()
        return inner
      })
    const left = this.#term()
    if (this.#takesWord('in')) return { kind: 'in', value: left, list: this.#term() }
    const operator = this.#peek()
    if (operator?.kind !== 'symbol' || !/^(?:!=|<=?|>=?|=)$/.test(operator.text)) return { kind: 'truth', term: left }
    this.#next++
    return { kind: 'compare', left, operator: operator.text, right: this.#term() }
  }

  #deeper<T>(parse: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw new ExpressionProblem(this.#next, 'its condition is nested too deeply')
    const result = parse()
    this.#depth--
    return result
  }

  #term(): FqlTerm {
    if (this.#takes('[')) return { kind: 'list', values: this.#values() }
    const token = this.#peek()
    if (token === undefined || token.kind === 'symbol') return this.#fail()
    this.#next++
    if (token.kind === 'text') return { kind: 'value', value: token.text }
    if (token.kind === 'number') return { kind: 'value', value: Number(token.text) }
    if (this.#takes('(')) return { kind: 'call', name: token.text, args: this.#arguments() }
    const constant = new Map<string, Literal>([
      ['true', true],
      ['false', false],
      ['null', null],
    ]).get(token.text)
    return constant === undefined ? { kind: 'field', text: token.text } : { kind: 'value', value: constant }
  }

  #values(): Literal[] {
    return this.#separated(']').map((term) => (term.kind === 'value' ? term.value : this.#fail()))
  }

  #arguments(): FqlTerm[] {
    return this.#deeper(() => this.#separated(')'))
  }

  #separated(close: string): FqlTerm[] {
    const terms: FqlTerm[] = []
    while (!this.#takes(close)) {
      if (terms.length > 0 && !this.#takes(',')) this.#fail()
      terms.push(this.#term())
    }
    return terms
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#next]
  }

  #takes(symbol: string): boolean {
    const token = this.#peek()
    if (token?.kind !== 'symbol' || token.text !== symbol) return false
    this.#next++
    return true
  }

  #takesWord(word: string): boolean {
    const token = this.#peek()
    if (token?.kind !== 'word' || token.text.toLowerCase() !== word) return false
    this.#next++
    return true
  }

  #fail(): never {
    const token = this.#peek()
    const found = token === undefined ? 'ends too early' : `has an unexpected ${shown(token.text)}`
    throw new ExpressionProblem(token?.at ?? this.#length, `its condition ${found}`)
  }
}
