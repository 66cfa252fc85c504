// Encodes arbitrary text from clients for text columns. PostgreSQL rejects the character NUL, and a lone surrogate has no UTF-8 encoding.
// Both are escaped as in a JSON string, so that every text can be stored and read back unchanged, and different texts stay different.

const LONE_SURROGATE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

export function writeText(text: string): string {
  if (!text.includes('\0') && !text.includes('\\') && !LONE_SURROGATE.test(text)) return text
  // An escaped text starts with a backslash, and a text that contains a backslash is always escaped, so the two cannot be confused.
  return `\\${JSON.stringify(text).slice(1, -1)}`
}

export function readText(column: string): string {
  return column.startsWith('\\') ? (JSON.parse(`"${column.slice(1)}"`) as string) : column
}
