// Checks the built documentation site: the table of contents matches the folder, the content of the sources is in the pages,
// every link and anchor exists, and nothing in a page violates the content security policy.

import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import { before, test } from 'node:test'
import { COMMAND_LINE, DOCS, HTTP_API, SECTIONS, unwritten } from '../docs/.vitepress/contents.ts'
import { configureMarkdown, escapeBraces, githubSlug, htmlOrText } from '../docs/.vitepress/markdown.ts'
import { buildDocs } from './build-docs.ts'

const DIST = join(DOCS, '.vitepress', 'dist')
const sources = globSync('**/*.md', { cwd: DOCS }).map((file) => file.replaceAll('\\', '/'))
/** Pages by their address within the site. */
const pages = new Map<string, string>()

before(async () => {
  assert.ok(await buildDocs({ quiet: true }), 'the site can be built')
  for (const file of globSync('**/*.html', { cwd: DIST }))
    pages.set(
      file
        .replaceAll('\\', '/')
        .replace(/(^|\/)index\.html$/, '$1')
        .replace(/\.html$/, ''),
      readFileSync(join(DIST, file), 'utf8'),
    )
})

test('every page of the table of contents is written, and every file is in the table', () => {
  assert.deepEqual(unwritten(), [], 'pages that are not written')
  const listed = new Set(
    [...SECTIONS, HTTP_API, COMMAND_LINE].flatMap(({ folder, pages: own }) => own.map(([name]) => `${folder}/${name}.md`)),
  )
  const others = sources.filter((file) => !listed.has(file) && !/^(?:decisions|integrations)\//.test(file))
  assert.deepEqual(others, ['index.md'])
})

test('no page has an address that the service uses itself', () => {
  for (const taken of ['api', 'openapi.json']) assert.ok(!pages.has(taken) && !existsSync(join(DIST, taken)), taken)
})

test('the icon of the site is the dashboard’s', () => {
  const dashboard = join(DOCS, '..', 'packages', 'dashboard', 'public', 'icon.svg')
  assert.equal(readFileSync(join(DOCS, 'public', 'icon.svg'), 'utf8'), readFileSync(dashboard, 'utf8'))
})

test('braces and tags in the text are shown as text, except HTML tags that are used on purpose', () => {
  assert.equal(escapeBraces('a {{ b }} { c }'), 'a &#123;&#123; b &#125;&#125; { c }')
  for (const html of ['<br>', '<kbd>', '</kbd>', '<details>\n<summary>More</summary>\n', '<!-- a note -->'])
    assert.equal(htmlOrText(html), html)
  assert.equal(htmlOrText('<key>'), '&lt;key&gt;')
  assert.equal(htmlOrText('<Component :a="{{ b }}">'), '&lt;Component :a="&#123;&#123; b &#125;&#125;"&gt;')
  for (const unwanted of ['<script>alert(1)</script>', '<p style="color:red">', '<img src=x onerror=alert(1)>', '<br><iframe src="//x">'])
    assert.ok(!htmlOrText(unwanted).includes('<'), unwanted)
})

test('Markdown that Vue would read as a template is shown as text everywhere', async () => {
  const { createMarkdownRenderer } = await import('vitepress')
  const md = await createMarkdownRenderer(DOCS, { config: configureMarkdown })
  const text = '{{ secret }} <key> <my-thing a="1"> v-if'
  const source = `# H ${text}\n\n${text}\n\n- ${text}\n\n| a | b |\n|--:|:-:|\n| ${text} | ${text} |\n\n[${text}](index.md)\n\n<my-thing>\n{{ x }}\n</my-thing>\n`
  const html = md.render(source, { path: join(DOCS, 'index.md'), relativePath: 'index.md', cleanUrls: true })
  assert.doesNotMatch(html.replaceAll(/<(?:h1|a) [^>]*>/g, ''), /\{\{|<key|<my-thing|style=/)
  assert.match(html, /<td class="to-right">&#123;&#123; secret/)
  assert.equal(visible(`<main${html}</main>`).split('{{ secret }} <key> <my-thing a="1"> v-if').length - 1, 6)
})

test('headings have the same anchors as on GitHub', () => {
  for (const [heading, slug] of [
    ['1. Make a pair of keys', '1-make-a-pair-of-keys'],
    ['What it does, and doesn’t', 'what-it-does-and-doesnt'],
    ['`GET /api/sources/{id}`', 'get-apisourcesid'],
    ['a_b – c', 'a_b--c'],
  ] as const)
    assert.equal(githubSlug(heading), slug)
})

test('text in angle brackets and braces is readable in the pages', () => {
  let placeholders = 0
  for (const file of sources) {
    const text = visible(pages.get(addressOf(file)) ?? '')
    const source = readFileSync(join(DOCS, file), 'utf8')
    for (const [placeholder] of source.matchAll(/<[a-z][\w -]*>|\{\{[^}\n]*\}\}/g)) {
      if (htmlOrText(placeholder) === placeholder) continue
      placeholders += 1
      assert.ok(text.includes(placeholder), `${file}: ${placeholder}`)
    }
  }
  assert.ok(placeholders > 2, `only ${placeholders}`)
})

test('a table, a list of codes and a command are rendered completely', () => {
  const http = visible(pages.get('reference/http/tracking') ?? '')
  for (const text of ['POST /v1/batch', 'POST /v1/import', 'curl "$SWITCHYARD_URL/v1/track"', 'store_unavailable'])
    assert.ok(http.includes(text), text)
  const cells = pages.get('reference/config')?.match(/<td/g)?.length ?? 0
  assert.ok(cells > 30, `${cells} cells in the settings`)
})

test('pages comply with the content security policy: no style attribute, no event handler, two inline scripts, nothing from other hosts', () => {
  const inline = new Set<string>()
  for (const [address, html] of pages) {
    assert.doesNotMatch(html, /<[a-z][^>]*\s(?:style|on[a-z]+)=/, address)
    assert.doesNotMatch(html, /<(?:style|iframe|object|embed)\b/, address)
    for (const [, attributes = '', text = ''] of html.matchAll(/<script\b([^>]*)>([^]*?)<\/script>/g))
      if (!/\ssrc=/.test(attributes)) inline.add(text)
    for (const [, , target = ''] of html.matchAll(/<(link|script|img|source)\b[^>]*?\s(?:src|href)="([^"]*)"/g))
      assert.match(target, /^\/docs\//, `${address} loads ${target}`)
  }
  assert.equal(inline.size, 2)
  // Content that is loaded later, when a reader navigates to the page.
  for (const file of globSync('assets/*.md.*.js', { cwd: DIST }))
    assert.doesNotMatch(readFileSync(join(DIST, file), 'utf8'), / style="/, file)
  for (const file of globSync('**/*.css', { cwd: DIST })) {
    const css = readFileSync(join(DIST, file), 'utf8')
    assert.doesNotMatch(css, /@import/, file)
    for (const [, target = ''] of css.matchAll(/url\(\s*["']?([^"')]*)/g)) {
      if (target.startsWith('data:')) continue
      const { origin, pathname } = new URL(target, `http://site/docs/${file.replaceAll('\\', '/')}`)
      assert.equal(origin, 'http://site', `${file} loads ${target}`)
      assert.match(pathname, /^\/docs\//, `${file} loads ${target}`)
      assert.ok(existsSync(join(DIST, pathname.slice('/docs/'.length))), `${file} loads ${target}, which is not in the build`)
    }
  }
})

test('every link and anchor within the site exists', () => {
  const dead: string[] = []
  let followed = 0
  for (const [address, html] of pages) {
    if (address === '404') continue
    for (const [, href = ''] of html.matchAll(/<a\b[^>]*?\shref="([^"]*)"/g)) {
      if (/^[a-z]+:/.test(href)) continue
      const { pathname, hash } = new URL(href.replaceAll('&amp;', '&'), `http://site/docs/${address}`)
      const target = pathname.replace(/^\/docs\//, '')
      followed += 1
      if (target === 'openapi.json' || (hash === '' && existsSync(join(DIST, decodeURIComponent(target))) && /\.\w+$/.test(target)))
        continue
      const page = pages.get(target)
      const id = decodeURIComponent(hash.slice(1))
      if (page === undefined) dead.push(`${address}: ${href}`)
      else if (id !== '' && !page.includes(` id="${id}"`)) dead.push(`${address}: ${href} (no such heading)`)
    }
  }
  assert.ok(followed > 500, `${followed} links`)
  assert.deepEqual([...new Set(dead)], [])
})

test('links out of the documentation point to files of the repository', () => {
  const dead: string[] = []
  for (const file of sources)
    for (const [, href = ''] of readFileSync(join(DOCS, file), 'utf8').matchAll(/\]\((\.\.?\/[^)\s#]+)/g))
      if (!existsSync(resolve(DOCS, dirname(file), href))) dead.push(`${file}: ${href}`)
  assert.deepEqual(dead, [])
  const page = pages.get('operations/postgresql') ?? ''
  assert.match(page, /title="deploy\/compose\.yml in the repository"/)
  assert.doesNotMatch(page, /href="[^"]*deploy\//)
})

function addressOf(file: string): string {
  return posix
    .join(dirname(file), file.endsWith('README.md') || file === 'index.md' ? '/' : posix.basename(file, '.md'))
    .replace(/^\.?\/$/, '')
}

/** The words of a page's main part. */
function visible(html: string): string {
  return html
    .slice(html.indexOf('<main'), html.indexOf('</main>'))
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replaceAll('&amp;', '&')
}
