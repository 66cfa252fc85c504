// The font of the dashboard and of the documentation site, Inter, is part of both builds and served by the service. Every page needs the
// Latin letters, so they are preloaded. The SIL Open Font License requires that the licence is distributed with the font files.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Plugin } from 'vite'

const LATIN = /inter-latin-wght-normal[.-][\w-]+\.woff2$/

export const FONT_LICENCE = {
  path: createRequire(import.meta.url).resolve('@fontsource-variable/inter/LICENSE'),
  name: 'assets/inter-LICENSE.txt',
}

/** The attributes of the `link` element that preloads the Latin letters. `files` are the paths of the build's files in the site. */
export function fontPreload(files: readonly string[]): Record<string, string> {
  const href = files.find((file) => LATIN.test(file))
  if (href === undefined) throw new Error('The build contains no Inter font file with Latin letters to preload')
  // Browsers load fonts without credentials: without `crossorigin` the preloaded copy would not be used.
  return { rel: 'preload', as: 'font', type: 'font/woff2', href, crossorigin: '' }
}

export function font(): Plugin {
  return {
    name: 'font',
    apply: 'build',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: FONT_LICENCE.name, source: readFileSync(FONT_LICENCE.path, 'utf8') })
    },
    transformIndexHtml: {
      order: 'post',
      handler(_html, { bundle = {} }) {
        return [{ tag: 'link', attrs: fontPreload(Object.keys(bundle).map((file) => `/${file}`)), injectTo: 'head' }]
      },
    },
  }
}
