// Text from strangers on a terminal: messages, URLs and answers are quoted in the log and by commands. Control characters (C0 and C1)
// can move the cursor and repaint what stands there, line breaks can forge a line, and bidirectional controls can reorder what is
// read. All of them are shown as JSON escapes.

const UNSAFE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r' }

/** Always returns a single line. */
export function harmless(text: string): string {
  return text.replace(UNSAFE, (character) => {
    if (character === '\t') return ' '
    return SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}
