// Formats numbers: medians with their spread, and Markdown tables padded so that they are also readable in a terminal.

export interface Spread {
  median: number
  min: number
  max: number
}

export function spreadOf(values: number[]): Spread | undefined {
  const sorted = [...values].sort((a, b) => a - b)
  const [min, max] = [sorted[0], sorted.at(-1)]
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.ceil((sorted.length - 1) / 2)]]
  if (min === undefined || max === undefined || low === undefined || high === undefined) return undefined
  return { median: (low + high) / 2, min, max }
}

/** `median (min–max)`, or a dash if nothing was measured. */
export function spreadText(spread: Spread | undefined, digits: number): string {
  if (!spread) return '–'
  const text = (value: number): string => numberText(value, digits)
  return spread.min === spread.max ? text(spread.median) : `${text(spread.median)} (${text(spread.min)}–${text(spread.max)})`
}

export function numberText(value: number, digits: number): string {
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** The first column is text; the others are numbers and right-aligned, unless `isText` returns true for the column. */
export function tableText(head: string[], rows: string[][], isText: (column: number) => boolean = (column) => column === 0): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: string[]): string =>
    `| ${cells.map((cell, column) => (isText(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`
  const rule = `|${widths.map((width, column) => `${'-'.repeat(width + 1)}${isText(column) ? '-' : ':'}`).join('|')}|`
  return [line(head), rule, ...rows.map(line)].join('\n')
}
