// Which test files a change can affect, from the import graph. A file also depends on files that it names in other ways: `new URL('./thread.ts',
// import.meta.url)`, `join(import.meta.dirname, '..', 'cli.ts')`, and on all files in a folder or package that it names.

import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const CODE = ['packages/*/{src,test,bin}/**/*.{ts,tsx,mjs,css}', '{scripts,e2e,examples,bench}/**/*.{ts,mjs}']
/** A change of one of these can affect every test. */
const AFFECT_ALL =
  /^(package(-lock)?\.json|packages\/[^/]+\/package\.json|tsconfig\.json|scripts\/(tests|affected-tests|run|install)\.(ts|mjs))$/
const QUOTED = /['"`]([^'"`\n]{2,200})['"`]/g
const JOINED = /\bjoin\(\s*(?:import\.meta\.dirname|root|ROOT)\s*,((?:\s*'[^'\n]+'\s*,?)+)\)/g

/** The files that differ from `base`, committed or not, and those that are new, as paths from `root`. */
export function changedFiles(root: string, base: string): string[] {
  const git = (...args: string[]): string[] => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean)
  const [start = base] = git('merge-base', base, 'HEAD')
  return [...new Set([...git('diff', '--name-only', start), ...git('ls-files', '--others', '--exclude-standard')])].sort()
}

/** The tests to run, and the changed files that no test could be found for. */
export function affectedTests(root: string, changed: readonly string[], tests: readonly string[]): { tests: string[]; untraced: string[] } {
  if (changed.some((file) => AFFECT_ALL.test(file))) return { tests: [...tests], untraced: [] }
  const dependents = dependentsOf(root)
  const affected = new Set<string>()
  const untraced: string[] = []
  for (const file of changed) {
    const reached = new Set([file, ...foldersOf(file)])
    for (const one of reached) for (const dependent of dependents.get(one) ?? []) reached.add(dependent)
    const found = tests.filter((test) => reached.has(test))
    if (found.length === 0) untraced.push(file)
    for (const test of found) affected.add(test)
  }
  return { tests: tests.filter((test) => affected.has(test)), untraced }
}

/** `docs/guide/`, `docs/` for `docs/guide/alerts.md`. */
function foldersOf(file: string): string[] {
  const parts = file.split('/').slice(0, -1)
  return parts.map((_, at) => `${parts.slice(0, at + 1).join('/')}/`)
}

/** For each file or folder, the files that name it. */
function dependentsOf(root: string): ReadonlyMap<string, ReadonlySet<string>> {
  const dependents = new Map<string, Set<string>>()
  const files = globSync(CODE, { cwd: root, exclude: (name) => name === 'node_modules' || name === 'dist' })
  for (const file of files) {
    for (const named of namedIn(root, file, files)) {
      if (named === file) continue
      const those = dependents.get(named) ?? new Set()
      dependents.set(named, those.add(file))
    }
  }
  return dependents
}

function namedIn(root: string, file: string, files: readonly string[]): Set<string> {
  const text = readFileSync(join(root, file), 'utf8')
  const named = new Set<string>()
  const add = (path: string): void => {
    const inside = relative(root, path)
    if (inside === '' || inside.startsWith('..') || inside.startsWith('node_modules') || !existsSync(path)) return
    if (statSync(path).isFile()) named.add(inside)
    else if (/^packages\/[^/]+$/.test(inside)) files.filter((one) => one.startsWith(`${inside}/src/`)).forEach((one) => named.add(one))
    // These are named to find something in them.
    else if (!/^(packages|e2e|scripts|bench|examples)$/.test(inside)) named.add(`${inside}/`)
  }
  for (const [, quoted = ''] of text.matchAll(QUOTED)) {
    if (quoted === '#platform') for (const name of ['node', 'web']) add(join(root, `packages/node/src/platform/${name}.ts`))
    else if (quoted.startsWith('@switchyard/')) add(entryOf(root, quoted))
    else if (/^\.{1,2}\//.test(quoted)) add(resolve(root, dirname(file), quoted))
    // Of a pattern such as `docs/**/*.md`, the folder.
    else if (/^[\w-]+\/[\w@./*{},-]+$/.test(quoted)) add(join(root, quoted.replace(/[*{].*/, '')))
  }
  for (const [, list = ''] of text.matchAll(JOINED)) {
    const parts = Array.from(list.matchAll(/'([^']+)'/g), ([, part]) => part as string)
    add(resolve(root, dirname(file), ...parts))
    add(join(root, ...parts))
  }
  return named
}

/** The file that a specifier such as `@switchyard/node/testing` stands for; the package's folder if it exports none. */
function entryOf(root: string, specifier: string): string {
  const [, name = '', ...rest] = specifier.split('/')
  const folder = join(root, 'packages', name)
  const manifest = join(folder, 'package.json')
  if (!existsSync(manifest)) return folder
  const { exports = {} } = JSON.parse(readFileSync(manifest, 'utf8')) as { exports?: Record<string, string> }
  return join(folder, exports[['.', ...rest].join('/')] ?? '')
}
