// Texts of strangers in columns. PostgreSQL refuses the character NUL, and half of a surrogate pair has no form in UTF-8: both
// are written as in a JSON string, so that every text fits, none is changed, and no two become one.

const HALF_A_PAIR = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/

export function writeText(text: string): string {
  if (!text.includes('\0') && !text.includes('\\') && !HALF_A_PAIR.test(text)) return text
  // A text that is written carries a backslash, and one with a backslash is always written: so it can be told which was.
  return `\\${JSON.stringify(text).slice(1, -1)}`
}

export function readText(column: string): string {
  return column.startsWith('\\') ? (JSON.parse(`"${column.slice(1)}"`) as string) : column
}
