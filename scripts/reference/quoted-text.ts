// Text that we did not write, as Markdown: it reads the same on GitHub and in the site, and nothing in it is taken for markup. Links to
// http(s) addresses and code in backticks are kept. Names such as `traits.name` would become links to hosts, `:key:` an emoji, and `{…}`
// attributes or a Vue expression, so their punctuation is escaped.

import { code } from './markdown.ts'

/** A Markdown link, code in backticks, or an address. */
const KEPT = /\[([^[\]]+)\]\((https?:\/\/[^\s()<>]+)\)|`([^`]+)`|(https?:\/\/[^\s<>"'`()[\]{}|\\]*[^\s<>"'`()[\]{}|\\.,;:!?])/g

export function quoted(text: string): string {
  // Bold text is shown as plain text.
  const line = text
    .trim()
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\*\*([^*]+)\*\*/g, '$1')
  let markdown = ''
  let end = 0
  for (const match of line.matchAll(KEPT)) {
    const [all, title, target, codeText, address] = match
    markdown += escaped(line.slice(end, match.index))
    end = match.index + all.length
    if (codeText !== undefined) markdown += code(codeText)
    else if (title !== undefined && isAddress(target)) markdown += `[${escaped(title)}](${target})`
    else if (isAddress(address)) markdown += `<${address}>`
    else markdown += escaped(all)
  }
  return markdown + escaped(line.slice(end))
}

/** Code that may contain backticks. */
export function quotedCode(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ')
  return line.includes('`') ? `\`\` ${line} \`\`` : code(line)
}

function isAddress(text: string | undefined): text is string {
  return text !== undefined && URL.canParse(text)
}

function escaped(text: string): string {
  return text.replaceAll(/[\\`*_{}[\]<>~|&!]|[.@](?=[^\s.])|:(?=\S)|^[#+=>-]|(?<=^\d+)[.)]/g, '\\$&')
}
