// The dashboard's font, Inter, is imported by src/main.tsx and served by the service. This preloads its Latin letters, which every page
// needs, and puts the font's licence beside its files, as the SIL Open Font License requires of whoever distributes them.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Plugin } from 'vite'

const LATIN = /inter-latin-wght-normal-[\w-]+\.woff2$/

export function font(): Plugin {
  return {
    name: 'font',
    apply: 'build',
    generateBundle() {
      const source = readFileSync(createRequire(import.meta.url).resolve('@fontsource-variable/inter/LICENSE'), 'utf8')
      this.emitFile({ type: 'asset', fileName: 'assets/inter-LICENSE.txt', source })
    },
    transformIndexHtml: {
      order: 'post',
      handler(_html, { bundle = {} }) {
        const file = Object.keys(bundle).find((name) => LATIN.test(name))
        if (file === undefined) throw new Error('The build contains no Inter font file with Latin letters to preload')
        // Browsers load fonts without credentials: without `crossorigin` the preloaded copy would not be used.
        const attrs = { rel: 'preload', as: 'font', type: 'font/woff2', href: `/${file}`, crossorigin: '' }
        return [{ tag: 'link', attrs, injectTo: 'head' }]
      },
    },
  }
}
