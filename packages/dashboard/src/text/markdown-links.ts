// The descriptions of integrations are third-party text with some Markdown. Only links are kept, and only to web pages; everything else is
// shown as plain text. Pure.

export interface TextPart {
  text: string
  /** Null if the part is not a link. */
  href: string | null
}

const LINK = /\[([^\]]+)\]\(\s*<?(https?:\/\/[^\s)>]+)>?(?:\s+"[^"]*")?\s*\)|(https?:\/\/[^\s<>()[\]"'`]+)/gi

export function linkedParts(markdown: string): TextPart[] {
  const parts: TextPart[] = []
  const add = (text: string, href: string | null): void => {
    if (text !== '') parts.push({ text, href })
  }
  let from = 0
  for (const match of markdown.matchAll(LINK)) {
    const [whole, label, target, bare] = match
    // A full stop after an address ends the sentence.
    const address = (target ?? bare ?? '').replace(/[.,;:!?]+$/, '')
    add(plain(markdown.slice(from, match.index)), null)
    const isLink = URL.canParse(address)
    add(isLink ? plain(label ?? address) : whole, isLink ? address : null)
    from = match.index + whole.length - (label === undefined && isLink ? whole.length - address.length : 0)
  }
  add(plain(markdown.slice(from)), null)
  return parts
}

/** Without emphasis, code marks and tags, on one line. */
function plain(text: string): string {
  return text
    .replaceAll(/<\/?[a-z][^>]*>/gi, ' ')
    .replaceAll(/\*\*|__|`/g, '')
    .replaceAll(/\s+/g, ' ')
}

/** The text without its links. */
export function plainText(markdown: string): string {
  return linkedParts(markdown)
    .map(({ text }) => text)
    .join('')
    .trim()
}
