// Escapes untrusted text for a terminal: the log and the commands quote messages, URLs and responses. Control characters (C0 and C1) can move
// the cursor and overwrite text, line breaks can forge a line, and bidirectional controls can reorder text. All of them are shown as JSON
// escapes.

const UNSAFE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r' }

/** Always returns a single line. */
export function harmless(text: string): string {
  return text.replace(UNSAFE, (character) => {
    if (character === '\t') return ' '
    return SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}
