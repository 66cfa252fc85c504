// HTML from templates: whatever is put in is escaped, unless it is HTML from here. The only way in this folder to make any.

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Part = Html | string | number | null | readonly Part[]

export const NOTHING = new Html('')

export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.reduce((text, string, index) => text + textOf(parts[index - 1] ?? null) + string))
}

/** Text in which `words` are code, and nothing else is marked up. */
export function prose(text: string): Html {
  const pieces = text.split(/`([^`]+)`/)
  return html`${pieces.map((piece, index) => (index % 2 === 0 ? piece : html`<code>${piece}</code>`))}`
}

export function paragraphs(text: string): Html {
  return html`${text.split('\n\n').map((paragraph) => html`<p>${prose(paragraph)}</p>`)}`
}

function textOf(part: Part): string {
  if (part === null) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'object') return part.map(textOf).join('')
  return String(part).replaceAll(/[&<>"']/g, (character) => ESCAPES[character] as string)
}
