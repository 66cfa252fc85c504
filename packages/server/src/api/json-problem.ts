// Says what is wrong with a body or a text that is not valid JSON, and where. It runs only after JSON.parse has failed, so it costs nothing
// for valid input. It quotes at most one character of the input.

import { isUtf8 } from 'node:buffer'

const WHITESPACE = /[ \t\n\r]*/y
const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
/** From the space on, all but the quote and the backslash. */
const STRING_CHARACTERS = /[ !#-[\]-\uffff]*/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/y
const FORM = /^[\w%+.[\]-]{1,100}=[^\s{]/
/** Takes about 10 ms. Anybody can send a compressed body of a few hundred bytes that needs many more. */
const MAX_STEPS = 100_000

/** `what` is the subject of the sentence, such as `The request body`. */
export function bytesProblem(what: string, bytes: Buffer): string {
  if (bytes.length === 0) return `${what} is empty. Send a JSON object.`
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
    return `${what} is encoded as UTF-16. Send JSON encoded as UTF-8.`
  if (bytes[0] === 0x1f && bytes[1] === 0x8b)
    return `${what} is compressed with gzip, but the request does not say so. Add the header Content-Encoding: gzip.`
  if (!isUtf8(bytes)) return `${what} is not valid UTF-8. Send JSON encoded as UTF-8.`
  return textProblem(what, bytes.toString('utf8'))
}

export function textProblem(what: string, text: string): string {
  if (text.trim() === '') return `${what} is empty. Send a JSON object.`
  if (FORM.test(text)) return `${what} is a form (name=value), not JSON. Send a JSON object.`
  const error = findError(text)
  return error === null ? `${what} is not valid JSON.` : `${what} is not valid JSON: ${explain(text, error)}`
}

interface JsonError {
  at: number
  /** `later` if the error was not found within the limit. */
  kind: 'value' | 'key' | 'colon' | 'comma' | 'string' | 'after' | 'later'
  /** Whether the last token was a comma. */
  afterComma: boolean
}

/** Returns the first position at which the text cannot be continued to JSON. */
function findError(text: string): JsonError | null {
  const closers: ('}' | ']')[] = []
  let at = 0
  let expected: 'value' | 'key' | 'colon' | 'comma' = 'value'
  let mayClose = false
  let afterComma = false
  const skip = (pattern: RegExp): number => {
    pattern.lastIndex = at
    return pattern.test(text) ? pattern.lastIndex : at
  }
  for (let steps = 0; ; steps++) {
    at = skip(WHITESPACE)
    const character = text[at]
    const fail = (kind: JsonError['kind'], where = at): JsonError => ({ at: where, kind, afterComma })
    if (steps >= MAX_STEPS) return fail('later')
    if (expected === 'comma' && closers.length === 0) return character === undefined ? null : fail('after')
    if (character !== undefined && character === closers.at(-1) && (expected === 'comma' || mayClose)) {
      closers.pop()
      at += 1
      expected = 'comma'
      mayClose = false
      afterComma = false
      continue
    }
    if (expected === 'comma') {
      if (character !== ',') return fail('comma')
      at += 1
      expected = closers.at(-1) === '}' ? 'key' : 'value'
      afterComma = true
      continue
    }
    mayClose = false
    if (expected === 'colon') {
      if (character !== ':') return fail('colon')
      at += 1
      expected = 'value'
      continue
    }
    if (character === '"') {
      const end = stringEnd(text, at)
      if (end < 0) return fail('string', -end)
      at = end
      expected = expected === 'key' ? 'colon' : 'comma'
    } else if (expected === 'key') return fail('key')
    else if (character === '{' || character === '[') {
      closers.push(character === '{' ? '}' : ']')
      at += 1
      expected = character === '{' ? 'key' : 'value'
      mayClose = true
    } else {
      const end = skip(LITERAL)
      if (end === at) return fail('value')
      at = end
      expected = 'comma'
    }
    afterComma = false
  }
}

/** The index after the closing quote; negative: where the string is not valid. */
function stringEnd(text: string, start: number): number {
  let at = start + 1
  for (;;) {
    STRING_CHARACTERS.lastIndex = at
    STRING_CHARACTERS.test(text)
    at = STRING_CHARACTERS.lastIndex
    if (text[at] === '"') return at + 1
    ESCAPE.lastIndex = at
    if (!ESCAPE.test(text)) return -at
    at = ESCAPE.lastIndex
  }
}

function explain(text: string, { at, kind, afterComma }: JsonError): string {
  const character = text[at]
  const isCutOff = kind === 'later' ? !/[}\]]\s*$/.test(text.slice(-100)) : character === undefined
  if (isCutOff || character === undefined) return 'it ends too early. It may have been cut off.'
  if (kind === 'later') return `the error is after ${position(text, at)}.`
  const where = `at ${position(text, at)}`
  if (kind === 'string')
    return character === '\\'
      ? `invalid escape sequence in a string ${where}. Write a backslash as \\\\.`
      : `unescaped control character in a string ${where}. Write a line break as \\n and a tab as \\t.`
  if (afterComma && (character === '}' || character === ']')) return `trailing comma before ${character} ${where}. Remove the comma.`
  if (kind === 'after') return `unexpected text after the end of the value ${where}.`
  if (character === "'" || character === '‘' || character === '’' || character === '“' || character === '”')
    return `unexpected ${character} ${where}. JSON uses double quotes (") around names and strings.`
  if (character === '/' || character === '#') return `comment or unexpected ${character} ${where}. JSON has no comments.`
  // Not more than one character, because the text may be a secret.
  const found = /[\p{Cc}\p{Cs}]/u.test(character) ? 'unexpected character' : `unexpected ${character}`
  const advice = { value: ' A value is missing or is not quoted.', key: ' Names must be in double quotes.' } as const
  const expected = { colon: ' A colon is missing after the name.', comma: ' A comma or a closing bracket is missing.' } as const
  return `${found} ${where}.${{ ...advice, ...expected }[kind]}`
}

function position(text: string, at: number): string {
  const before = text.slice(0, at)
  const line = before.split('\n').length
  return line === 1 ? `position ${at + 1}` : `line ${line}, column ${at - before.lastIndexOf('\n')}`
}
