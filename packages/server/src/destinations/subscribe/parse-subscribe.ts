// Parses a subscribe expression (FQL) to the conditions that `validate` of @segment/destination-subscriptions evaluates. The package's own
// parser accepts almost anything and drops what it does not understand (docs/decisions/0040-subscribe-expressions.md). This one gives the
// same conditions for every expression that the package reads correctly, and refuses the others with a position.

import type { Condition, GroupCondition, Operator } from '@segment/destination-subscriptions'
import { ExpressionProblem, shown, type Token, tokensOf } from './tokens.ts'

export const MAX_EXPRESSION = 8_192
const MAX_DEPTH = 50
/** Searching for a longer text can take milliseconds, if the message was made for it: V8 looks at 250 characters of the text at most. */
const MAX_CONTAINED = 200

const FIELDS = {
  type: 'event-type',
  event: 'event',
  name: 'name',
  userId: 'userId',
  properties: 'event-property',
  traits: 'event-trait',
  context: 'event-context',
} as const
const FIELD_LIST = 'type, event, name, userId, properties.…, traits.… and context.…'
const RESERVED = new Set([...Object.keys(FIELDS), 'and', 'or', 'not', 'contains', 'match'])
const COMPARISONS = new Set(['=', '!=', '<', '<=', '>', '>='])

type Word = Extract<Token, { kind: 'word' }>
type Value = string | number | boolean | null
type Field = { readonly type: 'event-type' | 'event' | 'name' | 'userId' } | Nested
interface Nested {
  readonly type: 'event-property' | 'event-trait' | 'event-context'
  readonly name: string
}

/** Returns what is wrong with an expression and where, as the end of a sentence; null if it is valid. */
export function subscribeProblem(text: string): string | null {
  try {
    parseSubscribe(text)
    return null
  } catch (error) {
    if (!(error instanceof ExpressionProblem)) throw error
    return `is not a valid expression. ${placeOf(text, error.at)}: ${error.message}`
  }
}

/** Throws an ExpressionProblem. */
export function parseSubscribe(text: string): GroupCondition {
  if (text.length > MAX_EXPRESSION) throw new ExpressionProblem(MAX_EXPRESSION, `longer than ${MAX_EXPRESSION} characters`)
  const condition = new Parser(tokensOf(text)).expression()
  return condition.type === 'group' ? condition : { type: 'group', operator: 'and', children: [condition] }
}

function placeOf(text: string, at: number): string {
  const lines = text.slice(0, at).split('\n')
  const column = `column ${(lines.at(-1)?.length ?? 0) + 1}`
  return text.includes('\n') ? `Line ${lines.length}, ${column}` : `At ${column}`
}

class Parser {
  readonly #tokens: readonly Token[]
  #next = 0
  #depth = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  expression(): Condition {
    const condition = this.#alternatives()
    const { kind } = this.#peek()
    if (kind !== 'end') this.#fail('"and", "or" or the end of the expression')
    return condition
  }

  #alternatives(): Condition {
    return this.#joined('or', () => this.#joined('and', () => this.#condition()))
  }

  #joined(operator: 'and' | 'or', parse: () => Condition): Condition {
    const first = parse()
    const children = [first]
    while (isKeyword(this.#peek(), operator)) {
      this.#next++
      children.push(parse())
    }
    return children.length === 1 ? first : { type: 'group', operator, children }
  }

  #condition(): Condition {
    const token = this.#peek()
    if (this.#takes('(')) return this.#group(token)
    const isNegated = this.#takes('!')
    const word = this.#peek()
    if (isNegated && !isFunction(word)) {
      throw new ExpressionProblem(token.at, '"!" is only possible before contains(…) and match(…); use != to negate a comparison')
    }
    if (isKeyword(word, 'not')) {
      throw new ExpressionProblem(word.at, '"not" is not supported; use !=, !contains(…) or !match(…)')
    }
    if (word.kind !== 'word' || isKeyword(word, 'and') || isKeyword(word, 'or')) return this.#fail('a condition')
    this.#next++
    if (this.#takes('(')) return this.#call(word, isNegated)
    const field = fieldOf(word)
    const operator = this.#take('a comparison (=, !=, <, <=, > or >=)', ({ kind, text }) => kind === 'symbol' && COMPARISONS.has(text))
    const value = this.#peek()
    return comparison(field, operator.text as Operator, this.#value('a value'), value)
  }

  #group(start: Token): Condition {
    if (++this.#depth > MAX_DEPTH) throw new ExpressionProblem(start.at, `parentheses are nested more than ${MAX_DEPTH} levels deep`)
    const inner = this.#alternatives()
    this.#symbol(')', '"and", "or" or ")"')
    this.#depth--
    return inner
  }

  #call(name: Word, isNegated: boolean): Condition {
    const { text } = name
    if (text !== 'contains' && text !== 'match') {
      throw new ExpressionProblem(name.at, `unknown function ${shown(text)}; the functions are contains and match`)
    }
    const field = fieldOf(this.#take('a field', ({ kind }) => kind === 'word') as Word)
    this.#symbol(',', '","')
    const token = this.#peek()
    const value = this.#value('text in quotes')
    this.#symbol(')', '")"')
    if (text === 'match') return pattern(field, token, isNegated)
    if (value === null) throw new ExpressionProblem(token.at, 'expected text in quotes; to test for null, use = null or != null')
    const contained = String(value)
    if (contained.length > MAX_CONTAINED) {
      throw new ExpressionProblem(token.at, `the text of contains must have at most ${MAX_CONTAINED} characters`)
    }
    return condition(field, isNegated ? 'not_contains' : 'contains', contained)
  }

  #value(expected: string): Value {
    const token = this.#peek()
    if (token.kind !== 'word' && token.kind !== 'text' && token.kind !== 'number') return this.#fail(expected)
    this.#next++
    return token.kind === 'word' ? bareValue(token) : token.value
  }

  #symbol(text: string, expected: string): void {
    this.#take(expected, (token) => token.kind === 'symbol' && token.text === text)
  }

  #take(expected: string, fits: (token: Token) => boolean): Token {
    const token = this.#peek()
    if (!fits(token)) this.#fail(expected)
    this.#next++
    return token
  }

  #takes(symbol: string): boolean {
    const { kind, text } = this.#peek()
    if (kind !== 'symbol' || text !== symbol) return false
    this.#next++
    return true
  }

  #peek(): Token {
    // The last token is the end, which is never taken.
    return this.#tokens[this.#next] as Token
  }

  #fail(expected: string): never {
    const { at, kind, text } = this.#peek()
    throw new ExpressionProblem(at, `expected ${expected}, found ${kind === 'end' ? 'the end of the expression' : shown(text)}`)
  }
}

/** Segment's own presets contain `AND`, which its parser takes for nothing at all. */
function isKeyword({ kind, text }: Token, keyword: string): boolean {
  return kind === 'word' && text.toLowerCase() === keyword
}

function isFunction({ kind, text }: Token): boolean {
  return kind === 'word' && (text === 'contains' || text === 'match')
}

function fieldOf({ at, text, keys }: Word): Field {
  const [root = '', ...path] = keys
  if (!Object.hasOwn(FIELDS, root)) throw new ExpressionProblem(at, `unknown field ${shown(text)}; the fields are ${FIELD_LIST}`)
  const type = FIELDS[root as keyof typeof FIELDS]
  if (type === 'event-property' || type === 'event-trait' || type === 'event-context') {
    const name = path.join('.')
    const read = keysRead(name)
    if (read.length === 0) throw new ExpressionProblem(at + root.length, `expected "." and a key after ${shown(root)}`)
    const inherited = read.find((key) => key in Object.prototype)
    // The evaluation does not distinguish these from the keys of the message.
    if (inherited !== undefined) throw new ExpressionProblem(at, `the key ${shown(inherited)} cannot be used, because every object has it`)
    return { type, name }
  }
  if (path.length > 0) throw new ExpressionProblem(at + root.length, `${shown(root)} is text and has no keys`)
  return { type }
}

/** The keys that `validate` reads for a name, which it splits in the same way for each message. */
export function keysRead(name: string): string[] {
  return name.match(/[^[.\]]+/g) ?? []
}

function bareValue({ at, text, keys }: Word): Value {
  if (text === 'true' || text === 'false') return text === 'true'
  if (text === 'null') return null
  if (/^(?:true|false|null)$/i.test(text))
    throw new ExpressionProblem(at, `write ${text.toLowerCase()} in lower case, or ${shown(text)} in quotes`)
  const [word = '', ...more] = keys
  if (more.length > 0 || RESERVED.has(word.toLowerCase()) || RESERVED.has(word)) {
    throw new ExpressionProblem(at, `expected a value, found ${shown(text)}; put text in quotes`)
  }
  return word
}

function comparison(field: Field, operator: Operator, value: Value, token: Token): Condition {
  const isEqual = operator === '='
  if (!isEqual && operator !== '!=') return ordering(field, operator, value, token)
  if (value === null) return condition(field, isEqual ? 'not_exists' : 'exists')
  if (!('name' in field)) {
    if (typeof value === 'number' && String(value) !== token.text) {
      throw new ExpressionProblem(token.at, `put ${token.text.slice(0, 40)} in quotes: it is compared as text`)
    }
    if (field.type === 'userId' && isEqual && typeof value === 'boolean') return condition(field, value ? 'is_true' : 'is_false')
    return condition(field, operator, String(value))
  }
  if (typeof value === 'number') return condition(field, isEqual ? 'number_equals' : 'number_not_equals', finite(value, token))
  if (typeof value === 'string') return condition(field, operator, value)
  // `validate` compares != with the text "true", so it would hold for every boolean.
  if (!isEqual)
    throw new ExpressionProblem(token.at, `"!= ${value}" is not supported; use "= ${!value}", or put ${value} in quotes to compare text`)
  return condition(field, value ? 'is_true' : 'is_false')
}

function ordering(field: Field, operator: Operator, value: Value, token: Token): Condition {
  if (!('name' in field)) throw new ExpressionProblem(token.at, `"${operator}" compares numbers, and this field is text; use = or !=`)
  const isNumeric = typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value))
  if (typeof value === 'number') return condition(field, operator, finite(value, token))
  if (!isNumeric) throw new ExpressionProblem(token.at, `expected a number after "${operator}", found ${shown(token.text)}`)
  return condition(field, operator, value)
}

function finite(value: number, { at }: Token): number {
  if (!Number.isFinite(value)) throw new ExpressionProblem(at, 'the number is too large')
  return value
}

function pattern(field: Field, token: Token, isNegated: boolean): Condition {
  if (token.kind !== 'text') throw new ExpressionProblem(token.at, `expected a pattern in quotes, found ${shown(token.text)}`)
  const { value } = token
  const isStart = value.endsWith('*')
  const fixed = isStart ? value.slice(0, -1) : value.slice(1)
  if (!isStart && !value.startsWith('*')) {
    throw new ExpressionProblem(token.at, 'the pattern of match must start or end with *, as in "Order*"; use = to compare the whole text')
  }
  if (fixed.includes('*')) {
    throw new ExpressionProblem(
      token.at,
      'the pattern of match can have only one *, at its start or its end; use contains to search inside a text',
    )
  }
  if (isStart) return condition(field, isNegated ? 'not_starts_with' : 'starts_with', fixed)
  return condition(field, isNegated ? 'not_ends_with' : 'ends_with', fixed)
}

function condition(field: Field, operator: Operator, value?: string | number): Condition {
  return value === undefined ? ({ ...field, operator } as Condition) : ({ ...field, operator, value } as Condition)
}
