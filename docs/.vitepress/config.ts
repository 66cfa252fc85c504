// The documentation site: the markdown files under docs/, as GitHub shows them, built to files that the service serves at /docs.
// Nothing in it comes from elsewhere, it has no inline style, and its policy allows its two inline scripts by their hashes.

import { copyFileSync, globSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { defineConfig } from 'vitepress'
import { coloursByClass, STYLESHEET, stylesheet, THEMES } from './code-colours.ts'
import { DOCS, decisions, HTTP_API, itemsOf, OPENAPI, SECTIONS, unwritten } from './contents.ts'
import { configureMarkdown, githubSlug } from './markdown.ts'

const sidebar = [
  ...SECTIONS.map((section) => ({ text: section.title, items: itemsOf(section) })).filter(({ items }) => items.length > 0),
  { text: 'More', items: [{ text: 'Decisions', link: '/decisions/' }] },
]

const BACK = { text: 'Back', items: [{ text: 'Documentation', link: '/' }] }

/** Where a word of the navigation leads: to the first page of its section. */
const firstOf = (title: string): string => sidebar.find(({ text }) => text === title)?.items[0]?.link ?? '/'

export default defineConfig({
  base: '/docs/',
  lang: 'en',
  title: 'Switchyard',
  description: 'Analytics routing: a tracking API in, signed and retried webhooks out, nothing acknowledged lost.',
  cleanUrls: true,
  // Its data as a file with a hashed name: one inline script less.
  metaChunk: true,
  cacheDir: join(DOCS, '..', 'node_modules', '.cache', 'vitepress'),
  // A dead link fails the build, except to a page that is about to be written. A test fails while there is such a page.
  ignoreDeadLinks: unwritten().map((page) => new RegExp(`(?:^|/)${basename(page)}$`)),
  rewrites: { 'decisions/README.md': 'decisions/index.md' },
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: '/docs/icon.svg' }],
    ['meta', { name: 'color-scheme', content: 'light dark' }],
  ],
  // Without it, changing the scheme adds a style element, which the policy does not take.
  appearance: { disableTransition: false },
  markdown: {
    theme: THEMES,
    codeTransformers: [coloursByClass],
    config: configureMarkdown,
    anchor: { slugify: githubSlug },
    externalLinks: { target: '_blank', rel: 'noreferrer' },
  },
  vite: {
    // The service compresses and caches; a picture stays a file.
    build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 4_000, reportCompressedSize: false },
    plugins: [
      {
        name: 'code-colours',
        resolveId: (id: string) => (id === STYLESHEET ? `\0${STYLESHEET}` : undefined),
        load: (id: string) => (id === `\0${STYLESHEET}` ? stylesheet() : undefined),
      },
    ],
  },
  // What the theme draws on the server with a style attribute: the policy takes none, and style.css says the same.
  transformHtml: (html) => html.replaceAll(/ style="(?:position:relative;|--vp-vh:0px;)"/g, ''),
  // The letters that every page needs are loaded beside the styles that name the font, and not after them.
  transformHead({ assets }) {
    const font = assets.find((file) => /inter-latin-wght-normal\.[\w-]+\.woff2$/.test(file))
    if (font === undefined) throw new Error('The build has no file of the font Inter with Latin letters to preload')
    return [['link', { rel: 'preload', as: 'font', type: 'font/woff2', href: font, crossorigin: '' }]]
  },
  // Files that pages link to, beside the pages; and the font's licence, as the SIL Open Font License requires.
  buildEnd({ outDir }) {
    copyFileSync(createRequire(import.meta.url).resolve('@fontsource-variable/inter/LICENSE'), join(outDir, 'assets', 'inter-LICENSE.txt'))
    for (const file of globSync('{guide,operations,reference}/**/*.{yml,json}', { cwd: DOCS })) {
      mkdirSync(dirname(join(outDir, file)), { recursive: true })
      copyFileSync(join(DOCS, file), join(outDir, file))
    }
  },
  themeConfig: {
    logo: { src: '/icon.svg', alt: '' },
    nav: [
      { text: 'Guide', link: firstOf('Start') === '/' ? firstOf('Guide') : firstOf('Start'), activeMatch: '^/guide/' },
      { text: 'Operations', link: firstOf('Operations'), activeMatch: '^/operations/' },
      { text: 'HTTP API', link: '/reference/http', activeMatch: '^/reference/http' },
      { text: 'Reference', link: '/reference/cli', activeMatch: '^/reference/(?!http)' },
    ],
    sidebar: {
      '/': sidebar,
      '/reference/http': [{ text: HTTP_API.title, items: [...itemsOf(HTTP_API), OPENAPI] }, BACK],
      '/decisions/': [{ text: 'Decisions', link: '/decisions/', items: decisions() }, BACK],
    },
    outline: { level: [2, 3], label: 'On this page' },
    search: { provider: 'local' },
    notFound: {
      title: 'There is no such page',
      quote: 'The address is not one of this documentation. The search may find what you look for.',
      linkLabel: 'to the start of the documentation',
      linkText: 'To the start',
    },
    externalLinkIcon: false,
    footer: {
      message: 'Released under the Apache License 2.0.',
      copyright: 'Served by Switchyard itself; nothing is loaded from elsewhere.',
    },
  },
})
