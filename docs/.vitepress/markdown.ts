// Renders Markdown as GitHub does, although pages of the site are Vue templates: braces and tags in the text are shown as text, links
// are the repository's links, and no element has a style attribute, because the service's policy forbids them. The sources need nothing special for this.

import { dirname, join, relative, resolve, sep } from 'node:path'
import type { MarkdownRenderer } from 'vitepress'
import { DOCS } from './contents.ts'

const ROOT = join(DOCS, '..')

/** HTML tags that the sources use on purpose. Any other tag is a placeholder that somebody wrote without backticks. */
const TAGS = new Set(['a', 'b', 'br', 'code', 'dd', 'details', 'dl', 'dt', 'em', 'hr', 'i', 'img', 'kbd', 'p', 'picture', 'source'])
for (const tag of ['strong', 'sub', 'summary', 'sup', 'table', 'tbody', 'td', 'th', 'thead', 'tr']) TAGS.add(tag)

/** The part of markdown-it that is used here; its own types are not installed at the root. */
interface Token {
  type: string
  content: string
  children: Token[] | null
  attrGet(name: string): string | null
  attrSet(name: string, value: string): void
  attrJoin(name: string, value: string): void
  attrs: [string, string][] | null
}
interface State {
  tokens: Token[]
  env: { path?: string }
}

export function configureMarkdown(md: MarkdownRenderer): void {
  const { rules } = md.renderer
  const { text, code_inline: code } = rules
  if (text === undefined || code === undefined) throw new Error('the Markdown renderer has changed: a rule that this file wraps is missing')
  rules.text = (...args) => escapeBraces(text(...args))
  rules.code_inline = (...args) => escapeBraces(code(...args))
  rules.html_inline = (tokens, at) => htmlOrText(tokens[at]?.content ?? '')
  rules.html_block = (tokens, at) => htmlOrText(tokens[at]?.content ?? '')
  rules['html_of_site'] = (tokens, at) => tokens[at]?.content ?? ''
  md.core.ruler.push('repository-links', (state) => linkWithin(state))
  md.core.ruler.push('no-style-attributes', (state) => alignByClass(state.tokens))
}

/** The anchor of a heading, as on GitHub: the sources use these in links. */
export function githubSlug(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
}

/** Braces are written as entities, which Vue decodes only after it has looked for braces. */
export function escapeBraces(html: string): string {
  return html.replaceAll('{{', '&#123;&#123;').replaceAll('}}', '&#125;&#125;')
}

export function htmlOrText(html: string): string {
  const tags = [...html.matchAll(/<\/?([A-Za-z][\w-]*)/g)].map(([, tag = '']) => tag.toLowerCase())
  if (html.startsWith('<!--')) return html
  const isMeant = tags.length > 0 && tags.every((tag) => TAGS.has(tag)) && !/\sstyle\s*=|\son\w+\s*=/i.test(html)
  return escapeBraces(isMeant ? html : html.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'))
}

/** Converts links, which are relative to the file as on GitHub, to the site's addresses. */
function linkWithin({ tokens, env: { path: file } }: State): void {
  if (file === undefined) return
  for (const { children } of tokens) {
    for (const [at, open] of (children ?? []).entries()) {
      const href = open.type === 'link_open' ? open.attrGet('href') : null
      if (href === null || href.startsWith('#') || /^[a-z][a-z\d+.-]*:/i.test(href)) continue
      const [path = '', hash] = decodeURI(href).split('#')
      const target = resolve(dirname(file), path)
      if (!target.startsWith(DOCS + sep)) nameInPlaceOfLink(children ?? [], at, relative(ROOT, target).split(sep).join('/'))
      else if (path.endsWith('README.md'))
        open.attrSet('href', `${path.replace(/README\.md$/, '') || './'}${hash === undefined ? '' : `#${hash}`}`)
    }
  }
}

/** Files outside docs/ have no address in the site. A test checks that they exist. */
function nameInPlaceOfLink(tokens: Token[], at: number, name: string): void {
  const close = tokens.findIndex(({ type }, index) => index > at && type === 'link_close')
  const shown = tokens.slice(at + 1, close)
  const text = shown.map(({ content }) => content).join('')
  const write = (token: Token | undefined, content: string): unknown =>
    token && Object.assign(token, { type: 'html_of_site', nesting: 0, content })
  const code = `<code v-pre>${name}</code>`
  // If the text of the link is the file's name, it is replaced by the full path; otherwise the path is added.
  const isName = name.endsWith(text.replace(/\/$/, ''))
  if (isName) for (const token of shown) write(token, '')
  write(tokens[at], `<span title="${name} in the repository">${isName ? code : ''}`)
  write(tokens[close], `</span>${isName || text.includes(name) ? '' : ` (${code})`}`)
}

/** Aligns columns with a class. */
function alignByClass(tokens: Token[]): void {
  for (const token of tokens) {
    const [, side] = /^text-align:\s*(left|right|center)$/.exec(token.attrGet('style') ?? '') ?? []
    if (side === undefined || token.attrs === null) continue
    token.attrs = token.attrs.filter(([name]) => name !== 'style')
    token.attrJoin('class', `to-${side}`)
  }
}
