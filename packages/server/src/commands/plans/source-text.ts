// Text of a plan inside generated source code. Names and descriptions come from anybody who may change the plan, so they can neither end a string or
// a comment, nor make code look different from what it is.

import { harmless } from '../../logging/terminal-text.ts'

/** A string literal. */
export function quoted(text: string): string {
  // JSON escapes C0 control characters and lone surrogates; the rest of what an editor would not show becomes an escape as well.
  return harmless(JSON.stringify(text))
}

/** A doc comment on lines of its own, or nothing without text. Each paragraph may have several lines. */
export function docComment(paragraphs: readonly string[]): string {
  const lines = paragraphs.flatMap((paragraph, index) => [...(index > 0 ? [''] : []), ...paragraph.trim().split(/\r\n|[\n\r\u2028\u2029]/)])
  if (lines.every((line) => line.trim() === '')) return ''
  if (lines.length === 1) return `/** ${commented(lines[0] as string)} */\n`
  return `/**\n${lines.map((line) => ` * ${commented(line)}`.trimEnd()).join('\n')}\n */\n`
}

/** The text can contain neither the end of the comment nor a tag such as @deprecated, to which the compiler would react. */
function commented(line: string): string {
  return harmless(line.trim())
    .replaceAll('*/', '*\\/')
    .replaceAll(/(^|\s)@/g, '$1\\@')
}
