// Text of others, rendered as the site renders it: it reads as it was written, and nothing in it becomes markup.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, test } from 'node:test'
import type { MarkdownRenderer } from 'vitepress'
import { DOCS } from '../../docs/.vitepress/contents.ts'
import { configureMarkdown } from '../../docs/.vitepress/markdown.ts'
import type { CatalogIntegration } from '../../packages/integrations/src/catalog.ts'
import { integrationText } from './integrations.ts'
import { table } from './markdown.ts'
import { quoted } from './quoted-text.ts'

let md: MarkdownRenderer
before(async () => {
  const { createMarkdownRenderer } = await import('vitepress')
  md = await createMarkdownRenderer(DOCS, { config: configureMarkdown })
})

const render = (markdown: string): string =>
  md.render(markdown, { path: join(DOCS, 'integrations/x.md'), relativePath: 'integrations/x.md', cleanUrls: true })

const textOf = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replaceAll('&amp;', '&')

const tagsOf = (html: string): string[] => [...new Set([...html.matchAll(/<([a-z][\w-]*)/gi)].map(([, tag = '']) => tag))].sort()

const HOSTILE = [
  'Hello {{first_name}} and {{ constructor.constructor("return 1")() }}.',
  '<script>alert(1)</script> <img src=x onerror=alert(1)> <my-thing v-html="x"> </td></table> <!-- -->',
  'the value of traits.name, context.ip, user.id or ada@example.com; see example.com',
  '[click](javascript:alert(1)) [x](data:text/html,y) ! [[toc]]',
  'a {.class #id onclick=x} b { #id }',
  ':key: :+1: :) a:b::: tip',
  '**bold, *not closed, _under_scored_, ~~struck~~, ^sup^ a|b \\| c \\',
  '&lt;b&gt; &amp;amp; &#123;',
  '# not a heading',
  '- not a list',
  '1. not a list',
  '> not a quote',
  '+ no',
  '=== no',
  '``` no fence',
  '<<< @/file.ts',
  '@include: x',
  '<!--@include: ../../package.json-->',
  '$.properties.products.*.price, see [^1] and [a][b] and [c]: https://example.com',
]

test('hostile text is shown as it was written, in a paragraph and in a table, without any tag of its own', () => {
  for (const text of HOSTILE) {
    const shown = text.replaceAll(/\*\*([^*]+)\*\*/g, '$1')
    const paragraph = render(`Text: ${quoted(text)}\n`)
    assert.equal(textOf(paragraph).trim(), `Text: ${shown}`)
    const own = render(`${quoted(text)}\n`)
    assert.equal(textOf(own).trim(), shown)
    const cell = render(table(['a', 'b'], [[quoted(text), 'x']]))
    assert.ok(textOf(cell).includes(shown), textOf(cell))
    for (const html of [paragraph, own])
      assert.deepEqual(
        tagsOf(html).filter((tag) => !/^[pa]$/.test(tag)),
        [],
        html,
      )
    for (const html of [paragraph, own, cell]) {
      assert.doesNotMatch(html, /\{\{|class="class"|onclick="|javascript:[^<]*"/)
      for (const [, href = ''] of html.matchAll(/href="([^"]*)"/g)) assert.match(href, /^https:\/\/example\.com/)
    }
  }
})

test('links and code are kept, and a picture becomes a link', () => {
  assert.match(
    render(quoted('![picture](https://example.com/a.png)')),
    /^<p>!<a href="https:\/\/example\.com\/a\.png"[^<]*>picture<\/a><\/p>$/m,
  )
  assert.equal(
    render(quoted('See [the `docs`.](https://example.com/a_b?c=*d*#e), or https://example.com/x_y_z. Use `a_{{b}}`')),
    '<p>See <a href="https://example.com/a_b?c=*d*#e" target="_blank" rel="noreferrer">the `docs`.</a>, or <a href="https://example.com/x_y_z" target="_blank" rel="noreferrer">https://example.com/x_y_z</a>. Use <code>a_&#123;&#123;b&#125;&#125;</code></p>\n',
  )
})

test('a page of an integration whose every text is hostile has only tags of ours', () => {
  const text = HOSTILE.join(' ')
  const fields = {
    type: 'object' as const,
    properties: { field: { title: text, description: text, type: 'string', default: text, oneOf: [{ const: text, title: text }] } },
    required: ['field'],
    additionalProperties: false,
  }
  const integration: CatalogIntegration = {
    slug: 'x',
    name: text,
    title: text,
    description: text,
    category: 'other',
    keywords: [],
    popularity: null,
    auth: 'custom',
    actionCount: 1,
    presetCount: 1,
    batch: false,
    available: true,
    problem: null,
    needs: null,
    requiredSettingCount: 0,
    segmentId: 'x',
    directory: 'x',
    settings: fields,
    actions: [{ slug: 'act', name: text, description: text, defaultSubscription: text, batch: true, syncMode: null, fields }],
    presets: [{ name: text, action: 'act', subscribe: text, mapping: {}, type: 'automatic' }],
    deletes: false,
  }
  const html = render(integrationText(integration))
  const ours = new Set([
    'a',
    'button',
    'code',
    'div',
    'h1',
    'h2',
    'h3',
    'p',
    'pre',
    'span',
    'strong',
    'table',
    'tbody',
    'td',
    'th',
    'thead',
    'tr',
  ])
  assert.deepEqual(
    tagsOf(html.replaceAll(/<!--.*?-->/g, '')).filter((tag) => !ours.has(tag)),
    [],
  )
  assert.doesNotMatch(html.replaceAll(/ (?:id|href|aria-label)="[^"]*"/g, ''), /\{\{|onclick="|onerror="/)
})
