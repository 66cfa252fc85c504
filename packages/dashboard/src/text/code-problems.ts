// Errors in code and JSON with the line that they are about, as the editor shows them. Pure.

export interface CodeProblem {
  /** From 1. */
  line: number
  /** From 1; null if only the line is known. */
  column: number | null
  message: string
}

/** Reads the line and the column from a message of the service, such as `line 3, column 7: unexpected token` or `At column 4`. */
export function placeIn(message: string): { line: number; column: number | null } | null {
  const line = /\bline (\d+)/i.exec(message)?.[1]
  const column = /\bcolumn (\d+)/i.exec(message)?.[1]
  if (line === undefined && column === undefined) return null
  return { line: Number(line ?? 1), column: column === undefined ? null : Number(column) }
}

/** The opposite of placeAt. */
export function offsetOf(text: string, { line, column }: { line: number; column: number | null }): number {
  const before = text.split('\n').slice(0, line - 1)
  return Math.min(before.reduce((sum, each) => sum + each.length + 1, 0) + (column ?? 1) - 1, text.length)
}

/** Null if the text is valid JSON. The errors of JSON.parse are no use here: most browsers leave out the position. */
export function jsonProblem(text: string): CodeProblem | null {
  try {
    JSON.parse(text)
    return null
  } catch {
    const { at, expected } = firstError(text)
    return { ...placeAt(text, at), message: `Not valid JSON: expected ${expected}.` }
  }
}

const TOKEN = /[{}[\]:,]|"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-f]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null/iuy

/** The offset of the first token that cannot be there, and what could. The text must not be valid JSON. */
function firstError(text: string): { at: number; expected: string } {
  const open: ('{' | '[')[] = []
  let expects: 'value' | 'value or ]' | 'name' | 'name or }' | ':' | 'next' = 'value'
  let at = 0
  for (;;) {
    while (/\s/.test(text[at] ?? '')) at++
    TOKEN.lastIndex = at
    const token = TOKEN.exec(text)?.[0] ?? ''
    const inside = open.at(-1)
    const isValue = token !== '' && !/^[}\]:,]$/.test(token)
    if (expects === ':' && token === ':') expects = 'value'
    else if (expects.startsWith('name') && token.startsWith('"')) expects = ':'
    else if (expects.startsWith('value') && isValue) {
      if (token === '{' || token === '[') open.push(token)
      expects = token === '{' ? 'name or }' : token === '[' ? 'value or ]' : 'next'
    } else if (
      (token === '}' && inside === '{' && (expects === 'next' || expects === 'name or }')) ||
      (token === ']' && inside === '[' && (expects === 'next' || expects === 'value or ]'))
    ) {
      open.pop()
      expects = 'next'
    } else if (token === ',' && expects === 'next' && inside !== undefined) expects = inside === '{' ? 'name' : 'value'
    else return { at: Math.min(at, text.trimEnd().length), expected: expectation(expects, inside) }
    at += token.length
  }
}

function expectation(expects: string, inside: '{' | '[' | undefined): string {
  if (expects === 'next') return inside === undefined ? 'the end of the text' : `a comma or ${inside === '{' ? '}' : ']'}`
  if (expects === ':') return 'a colon'
  return expects.replace('name', 'a name in double quotes').replace('value', 'a value')
}

/** The line and the column of an offset. */
export function placeAt(text: string, offset: number): { line: number; column: number } {
  const lines = text.slice(0, offset).split('\n')
  return { line: lines.length, column: (lines.at(-1) as string).length + 1 }
}

/** Where a key is written in JSON, by its path; the place of the last key that is found, or the first line. */
export function placeOfPath(text: string, path: readonly string[]): { line: number; column: number } {
  let at = 0
  for (const key of path) {
    const rest = text.slice(at)
    const found = rest.search(new RegExp(`${escaped(JSON.stringify(key))}\\s*:`))
    if (found === -1) continue
    at += found
  }
  return placeAt(text, at)
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
