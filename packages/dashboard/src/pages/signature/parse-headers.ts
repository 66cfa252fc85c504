// Parses headers as people paste them: raw lines from a log, the output of `curl -v`, a `curl` command, a JSON object, or only the value
// of a signature. Keeps all values of a header, because a repeated header is one of the mistakes to report.

import { parsedJson } from '../../text/json-tokens.ts'

export type SignatureHeader = 'x-signature' | 'webhook-id' | 'webhook-timestamp' | 'webhook-signature'

export interface PastedHeaders {
  /** Keyed by lower-case name, in the order of the text. */
  values: ReadonlyMap<string, readonly string[]>
  /** The header that a value without a name was taken for; null if every value had a name. */
  guessed: SignatureHeader | null
  /** Lines that are not headers. */
  ignored: readonly string[]
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

export function parseHeaders(text: string): PastedHeaders {
  const whole = text.trim()
  const fromJson = whole.startsWith('{') || whole.startsWith('[') ? jsonHeaders(whole) : null
  if (fromJson !== null) return fromJson
  const values = new Map<string, string[]>()
  const ignored: string[] = []
  let guessed: SignatureHeader | null = null
  let last: string[] | null = null
  for (const raw of whole.split(/\r?\n/)) {
    // A line that starts with white space continues the previous header, as in old HTTP and in wrapped logs.
    if (/^[ \t]+\S/.test(raw) && last !== null && lineOf(unwrapped(raw)) === null) {
      last.push(`${last.pop() ?? ''} ${raw.trim()}`.trim())
      continue
    }
    const line = unwrapped(raw)
    if (line === '') continue
    const pair = lineOf(line)
    if (pair !== null) {
      last = values.get(pair[0]) ?? []
      last.push(pair[1])
      values.set(pair[0], last)
      continue
    }
    const name = bareName(line)
    if (name === null) ignored.push(line)
    else {
      guessed = name
      values.set(name, [...(values.get(name) ?? []), line])
    }
  }
  return { values, guessed, ignored }
}

/** Removes what `curl -v`, a `curl` command or a list puts around a header. */
function unwrapped(raw: string): string {
  let line = raw
    .trim()
    .replace(/^[<>]\s+/, '')
    .replace(/\\$/, '')
    .trim()
  line = line.replace(/^(?:-H|--header)\s*/, '').trim()
  const quoted = /^(['"])((?:(?!\1).)*)\1,?$/.exec(line)
  return (quoted?.[2] ?? line).trim()
}

function lineOf(line: string): [name: string, value: string] | null {
  const at = line.indexOf(':')
  if (at < 1) return null
  const name = line
    .slice(0, at)
    .trim()
    .replace(/^['"]|['"]$/g, '')
  if (!NAME.test(name)) return null
  const value = line
    .slice(at + 1)
    .trim()
    .replace(/,$/, '')
  return [name.toLowerCase(), /^(['"])(.*)\1$/.exec(value)?.[2] ?? value]
}

/** The header that a value without a name must belong to, judged by its form; null if unclear. */
function bareName(line: string): SignatureHeader | null {
  if (/^v\d+a?,/.test(line)) return 'webhook-signature'
  if (/^(?:sha1=)?[0-9a-f]{6,64}(?:\.{3}|…)?$/i.test(line) || /^[A-Za-z0-9+/]{27}=$/.test(line)) return 'x-signature'
  if (/^[A-Za-z0-9+/]{43}=$/.test(line)) return 'webhook-signature'
  return null
}

/** Parses `{"X-Signature": "…"}`, as programs log their headers, or a list of pairs. Null if the text is not JSON. */
function jsonHeaders(text: string): PastedHeaders | null {
  const parsed = parsedJson(text)
  if (typeof parsed !== 'object' || parsed === null) return null
  const values = new Map<string, string[]>()
  const pairs: unknown[] = Array.isArray(parsed) ? pairsOf(parsed) : Object.entries(parsed)
  for (const pair of pairs) {
    if (!Array.isArray(pair) || typeof pair[0] !== 'string') continue
    const name = pair[0].toLowerCase()
    const given: unknown[] = Array.isArray(pair[1]) ? pair[1] : [pair[1]]
    for (const value of given)
      if (typeof value === 'string' || typeof value === 'number') values.set(name, [...(values.get(name) ?? []), String(value)])
  }
  return { values, guessed: null, ignored: [] }
}

/** Accepts `[["a","1"]]` and `["a","1","b","2"]`, the form of rawHeaders in Node.js. */
function pairsOf(list: unknown[]): unknown[] {
  if (!list.every((each) => typeof each === 'string')) return list
  return list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1]]] : []))
}
