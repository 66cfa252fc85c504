// Parses JSON, and splits it into tokens for syntax colours: in one pass, and only for the output of JSON.stringify. Pure.

export type TokenKind = 'name' | 'string' | 'number' | 'word' | 'plain'
export type Token = readonly [kind: TokenKind, text: string]

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g

export function jsonTokens(text: string): Token[] {
  const tokens: Token[] = []
  let end = 0
  for (const match of text.matchAll(TOKEN)) {
    const [whole, quoted, colon, number] = match
    if (match.index > end) tokens.push(['plain', text.slice(end, match.index)])
    if (quoted === undefined) tokens.push([number === undefined ? 'word' : 'number', whole])
    else {
      tokens.push([colon === undefined ? 'string' : 'name', quoted])
      if (colon !== undefined) tokens.push(['plain', colon])
    }
    end = match.index + whole.length
  }
  if (end < text.length) tokens.push(['plain', text.slice(end)])
  return tokens
}

/** Undefined if the text is not JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
