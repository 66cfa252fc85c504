// Mantine has one style sheet for all of its components. This plugin removes the rules of the components that the dashboard does not
// use: it follows the imports from our sources into Mantine's modules, which contain the names of their classes. The build fails if it
// contains a class whose rules were removed.

import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Plugin } from 'vite'

const CLASS = /\bm_[0-9a-f]{4,8}\b/g
const modules = join(dirname(createRequire(import.meta.url).resolve('@mantine/core/styles.css')), 'esm')

export function usedStyles(sources: string): Plugin {
  let used = new Set<string>()
  let all = new Set<string>()
  return {
    name: 'used-styles',
    apply: 'build',
    enforce: 'pre',
    transform(code, id) {
      if (!id.endsWith('@mantine/core/styles.css')) return undefined
      used = classesOf(reached(sources))
      all = new Set(code.match(CLASS))
      return { code: filtered(code.replaceAll(/\/\*[^]*?\*\//g, ''), used), map: null }
    },
    generateBundle(_, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk') continue
        const missing = (chunk.code.match(CLASS) ?? []).filter((name) => all.has(name) && !used.has(name))
        if (missing.length > 0) this.error(`${chunk.fileName} uses classes whose rules were removed: ${missing.join(', ')}`)
      }
    },
  }
}

/** The modules of @mantine/core that our sources use, directly or through Mantine's other packages. */
function reached(sources: string): Set<string> {
  const index = readFileSync(join(modules, 'index.mjs'), 'utf8')
  const fileOf = new Map<string, string>()
  for (const [, names = '', path = ''] of index.matchAll(/import \{([^}]*)\} from "(\.[^"]+)"/g))
    for (const name of names.split(',')) fileOf.set((name.split(' as ').at(-1) as string).trim(), join(modules, path))
  const others = globSync('../{notifications,spotlight,code-highlight}/esm/**/*.mjs', { cwd: dirname(modules) }).map((path) =>
    join(dirname(modules), path),
  )
  const files = new Set<string>()
  const add = (file: string): void => {
    if (files.has(file)) return
    files.add(file)
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(/(?:from|import) "(\.[^"]+)"/g)) add(join(dirname(file), path))
  }
  for (const file of [...globSync(`${sources}/**/*.{ts,tsx}`), ...others]) {
    for (const [, names = ''] of readFileSync(file, 'utf8').matchAll(/import \{([^}]*)\} from ['"]@mantine\/core['"]/g))
      for (const name of names.split(',')) {
        const found = fileOf.get(
          (
            name
              .trim()
              .replace(/^type /, '')
              .split(' as ')[0] as string
          ).trim(),
        )
        if (found !== undefined) add(found)
      }
  }
  return files
}

function classesOf(files: Set<string>): Set<string> {
  const names = new Set<string>()
  for (const file of files) for (const name of readFileSync(file, 'utf8').match(CLASS) ?? []) names.add(name)
  return names
}

/** Removes selectors with an unused class, then rules without a selector, then blocks without a rule. */
function filtered(css: string, used: ReadonlySet<string>): string {
  let kept = ''
  for (let at = 0; at < css.length; ) {
    const open = css.indexOf('{', at)
    if (open === -1) return kept + css.slice(at)
    const end = closing(css, open)
    const head = css.slice(at, open).trim()
    const body = css.slice(open + 1, end)
    at = end + 1
    if (head.startsWith('@keyframes')) kept += `${head}{${body}}\n`
    else if (head.startsWith('@')) {
      const inner = filtered(body, used)
      if (inner.trim() !== '') kept += `${head}{${inner}}\n`
    } else {
      const selectors = split(head).filter((selector) => (selector.match(CLASS) ?? []).every((name) => used.has(name)))
      if (selectors.length > 0) kept += `${selectors.join(',')}{${body}}\n`
    }
  }
  return kept
}

function closing(css: string, open: number): number {
  let depth = 0
  for (let at = open; at < css.length; at++) {
    if (css[at] === '{') depth++
    else if (css[at] === '}' && --depth === 0) return at
  }
  return css.length
}

/** Splits at commas outside of parentheses. An unused class in :is(…) or :not(…) removes the whole selector; generateBundle checks the result. */
function split(selectors: string): string[] {
  const parts: string[] = []
  let depth = 0
  let from = 0
  for (let at = 0; at <= selectors.length; at++) {
    const character = selectors[at]
    if (character === '(') depth++
    else if (character === ')') depth--
    else if (character === undefined || (character === ',' && depth === 0)) {
      parts.push(selectors.slice(from, at).trim())
      from = at + 1
    }
  }
  return parts
}
