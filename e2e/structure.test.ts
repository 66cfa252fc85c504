// The structure of the workspace: dependencies point one way, neither files nor folders import themselves through others, files and functions are
// short, and what is published depends on nothing. The rules for imports are a table in import-rules.ts.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderCycles, forbiddenImports, importCycles, type Sources } from './import-rules.ts'

const root = join(import.meta.dirname, '..')
const packages = join(root, 'packages')

/** Including test files. */
const MOST_ENTRIES = 27
const MOST_LINES = 450
const MOST_LINES_OF_A_FUNCTION = 80
const MEDIAN_LINES = 100

const isTest = (file: string): boolean => /\.test\.|conformance|fixtures/.test(file)
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8')

const code = globSync(['packages/*/{src,test}/**/*.{ts,tsx}', '{e2e,scripts,bench}/**/*.{ts,mjs}'], {
  cwd: root,
  exclude: (name) => name === 'node_modules' || name === 'dist',
}).map((path) => path.replaceAll('\\', '/'))

/** Named as in import-rules.ts. */
const sources: Sources = new Map(
  code
    .filter((file) => /^packages\/[^/]+\/src\//.test(file) && !isTest(file))
    .map((file) => [file.replace(/^packages\/([^/]+)\/src\//, '$1/'), textOf(file)]),
)
/** The code around the packages, with its tests. */
const surroundings: Sources = new Map(code.filter((file) => !file.startsWith('packages/')).map((file) => [file, textOf(file)]))

test('packages and stages import only what they may', () => {
  assert.ok(sources.size > 500, `only ${sources.size} sources found`)
  assert.deepEqual(forbiddenImports(sources), [])
})

for (const [what, files] of Object.entries({ 'the packages': sources, 'e2e, scripts and bench': surroundings })) {
  test(`no file of ${what} imports itself through others`, () => {
    assert.ok(files.size > 200, `only ${files.size} files found`)
    assert.deepEqual(importCycles(files), [])
  })

  test(`folders of ${what} are layers: none imports itself through others, so no import points upward`, () => {
    assert.deepEqual(folderCycles(files), [])
  })
}

test(`no file has more than ${MOST_LINES} lines, and half of the sources fewer than ${MEDIAN_LINES}`, () => {
  // They grow with the API, and nobody edits them.
  const files = code.map((file) => ({ file, text: textOf(file) })).filter(({ text }) => !text.startsWith('// Written by scripts/'))
  const lines = files.map(({ file, text }) => ({ file, lines: text.split('\n').length - 1 }))
  assert.deepEqual(
    lines.filter((each) => each.lines > MOST_LINES),
    [],
  )
  const ofSources = lines.filter(({ file }) => file.startsWith('packages/') && !isTest(file)).map((each) => each.lines)
  const median = ofSources.sort((a, b) => a - b)[Math.floor(ofSources.length / 2)] ?? 0
  assert.ok(median < MEDIAN_LINES, `the median is ${median}`)
})

test(`no function of the packages has more than ${MOST_LINES_OF_A_FUNCTION} lines, closures and components included`, () => {
  assert.deepEqual(longFunctions(), [])
})

test('no folder of the server or of the end-to-end tests has too many entries', () => {
  const folders = globSync(['packages/server/src/**/', 'e2e/**/'], { cwd: root, exclude: (name) => name === 'node_modules' })
  assert.ok(folders.length > 60, `only ${folders.length} folders found`)
  const crowded = folders.filter((folder) => readdirSync(join(root, folder)).length > MOST_ENTRIES)
  assert.deepEqual(crowded, [])
})

test('the packages for senders and receivers depend on nothing', () => {
  for (const name of ['protocol', 'webhook', 'node']) {
    const manifest = JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')) as Record<string, unknown>
    for (const field of ['dependencies', 'peerDependencies', 'optionalDependencies'])
      assert.equal(manifest[field], undefined, `${name}: ${field}`)
  }
})

test('the integrations have exact versions of their dependencies, because another version can send something else', () => {
  const { dependencies } = JSON.parse(readFileSync(join(packages, 'integrations', 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  assert.deepEqual(
    Object.entries(dependencies).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version)),
    [],
  )
})

/** What oxlint says about functions that are too long, with their files. */
function longFunctions(): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-functions-'))
  const config = join(folder, 'oxlintrc.json')
  const rule = ['error', { max: MOST_LINES_OF_A_FUNCTION, skipComments: false, skipBlankLines: false, IIFEs: true }]
  writeFileSync(config, JSON.stringify({ categories: { correctness: 'off' }, rules: { 'max-lines-per-function': rule } }))
  try {
    const args = ['--config', config, '--format', 'json', ...globSync('packages/*/src', { cwd: root })]
    const { stdout } = spawnSync(join(root, 'node_modules', '.bin', 'oxlint'), args, { cwd: root, encoding: 'utf8', maxBuffer: 1e8 })
    const { diagnostics, number_of_files: checked } = JSON.parse(stdout) as {
      diagnostics: { filename: string; message: string }[]
      number_of_files: number
    }
    assert.ok(checked >= sources.size, `only ${checked} files were checked`)
    return diagnostics.filter(({ filename }) => !isTest(filename)).map(({ filename, message }) => `${filename}: ${message}`)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
