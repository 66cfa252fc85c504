// The documentation site: the markdown files under docs/, as GitHub shows them, built to files that the service serves at /docs.
// It loads nothing from other hosts, has no inline styles, and its content security policy allows its two inline scripts by their hashes.

import { copyFileSync, globSync, mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { defineConfig } from 'vitepress'
import { FONT_LICENCE, fontPreload } from '../../packages/dashboard/font.ts'
import { coloursByClass, STYLESHEET, stylesheet, THEMES } from './code-colours.ts'
import { COMMAND_LINE, DOCS, decisions, HTTP_API, itemsOf, OPENAPI, SECTIONS, unwritten } from './contents.ts'
import { configureMarkdown, githubSlug } from './markdown.ts'

/** The sidebar does not list them: each of the more than 200 pages would contain the whole list. */
const ALL_INTEGRATIONS = { text: 'All integrations', link: '/integrations/' }

const sidebar = [
  ...SECTIONS.map((section) => ({ text: section.title, items: itemsOf(section) })).filter(({ items }) => items.length > 0),
  {
    text: 'More',
    items: [ALL_INTEGRATIONS, { text: 'Decisions', link: '/decisions/' }],
  },
]

const BACK = { text: 'Back', items: [{ text: 'Documentation', link: '/' }] }

/** A link of the navigation leads to the first page of its section. */
const firstOf = (title: string): string => sidebar.find(({ text }) => text === title)?.items[0]?.link ?? '/'

export default defineConfig({
  base: '/docs/',
  lang: 'en',
  title: 'Switchyard',
  description:
    'Analytics routing: a tracking API receives messages, and signed webhooks with retries deliver them. No acknowledged message is lost.',
  cleanUrls: true,
  // Writes its data to a file with a hashed name, which saves one inline script.
  metaChunk: true,
  cacheDir: join(DOCS, '..', 'node_modules', '.cache', 'vitepress'),
  // A dead link fails the build, except to a listed page that is not written yet. A test fails while there is such a page.
  ignoreDeadLinks: unwritten().map((page) => new RegExp(`(?:^|/)${basename(page)}$`)),
  rewrites: { 'decisions/README.md': 'decisions/index.md', 'integrations/README.md': 'integrations/index.md' },
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: '/docs/icon.svg' }],
    ['meta', { name: 'color-scheme', content: 'light dark' }],
  ],
  // Without it, changing the colour scheme adds a style element, which the policy forbids.
  appearance: { disableTransition: false },
  markdown: {
    theme: THEMES,
    codeTransformers: [coloursByClass],
    config: configureMarkdown,
    anchor: { slugify: githubSlug },
    externalLinks: { target: '_blank', rel: 'noreferrer' },
  },
  vite: {
    // Pictures stay files: the service compresses and caches them.
    build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 4_000, reportCompressedSize: false },
    plugins: [
      {
        name: 'code-colours',
        resolveId: (id: string) => (id === STYLESHEET ? `\0${STYLESHEET}` : undefined),
        load: (id: string) => (id === `\0${STYLESHEET}` ? stylesheet() : undefined),
      },
    ],
  },
  // Removes style attributes that the theme renders: the policy forbids them, and style.css sets the same styles.
  transformHtml: (html) => html.replaceAll(/ style="(?:position:relative;|--vp-vh:0px;)"/g, ''),
  transformHead: ({ assets }) => [['link', fontPreload(assets)]],
  // Copies the font's licence, and files that pages link to.
  buildEnd({ outDir }) {
    copyFileSync(FONT_LICENCE.path, join(outDir, FONT_LICENCE.name))
    for (const file of globSync('{guide,operations,reference}/**/*.{yml,json}', { cwd: DOCS })) {
      mkdirSync(dirname(join(outDir, file)), { recursive: true })
      copyFileSync(join(DOCS, file), join(outDir, file))
    }
  },
  themeConfig: {
    logo: { src: '/icon.svg', alt: '' },
    nav: [
      { text: 'Guide', link: firstOf('Start') === '/' ? firstOf('Guide') : firstOf('Start'), activeMatch: '^/guide/' },
      { text: 'Integrations', link: '/integrations/', activeMatch: '^/integrations/' },
      { text: 'Operations', link: firstOf('Operations'), activeMatch: '^/operations/' },
      { text: 'HTTP API', link: '/reference/http', activeMatch: '^/reference/http' },
      { text: 'Reference', link: '/reference/cli', activeMatch: '^/reference/(?!http)' },
    ],
    sidebar: {
      '/': sidebar,
      '/reference/http': [{ text: HTTP_API.title, items: [...itemsOf(HTTP_API), OPENAPI] }, BACK],
      '/reference/cli': [{ text: COMMAND_LINE.title, items: itemsOf(COMMAND_LINE) }, BACK],
      '/integrations/': [{ text: 'Integrations', items: [ALL_INTEGRATIONS] }, BACK],
      '/decisions/': [{ text: 'Decisions', link: '/decisions/', items: decisions() }, BACK],
    },
    outline: { level: [2, 3], label: 'On this page' },
    search: {
      provider: 'local',
      options: {
        // Pages of integrations are found by their names: all their fields would more than double the size of the index.
        _render: (source, env, md) =>
          md.render(env.relativePath.startsWith('integrations/') ? (/^# .*$/m.exec(source)?.[0] ?? '') : source, env),
      },
    },
    notFound: {
      title: 'Page not found',
      quote: 'This address is not part of the documentation. Try the search.',
      linkLabel: 'Go to the home page of the documentation',
      linkText: 'Go to the home page',
    },
    externalLinkIcon: false,
    footer: {
      message: 'Released under the Apache License 2.0.',
      copyright: 'Served by Switchyard itself, without third-party requests.',
    },
  },
})
