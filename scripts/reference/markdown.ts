// Markdown for the pages of the reference: headings, tables, code.

/** The first lines of every generated page. */
export function heading(title: string, source: string): string {
  return `# ${title}\n\n<!-- Written by scripts/reference.ts from ${source}. Change it there, then run: node scripts/run.mjs scripts/reference.ts -->\n`
}

export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`
  return [line(columns), `|${columns.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}

export function code(text: string): string {
  return `\`${text}\``
}

export function fence(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
