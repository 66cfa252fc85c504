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

/** Tests that are still too long, with their lines. Remove an entry when its file has been split; add none. */
const LONG_TESTS: Record<string, number> = {
  'packages/server/src/store/conformance/reading.ts': 500,
  'packages/server/src/store/conformance/replays/replaying.ts': 512,
  'packages/server/src/store/postgres/deleting.test.ts': 546,
}

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
  assertOnlyListed(new Map(lines.filter((each) => each.lines > MOST_LINES).map((each) => [each.file, each.lines])), LONG_TESTS)
  assert.deepEqual(
    Object.keys(LONG_TESTS).filter((file) => !isTest(file)),
    [],
  )
  const ofSources = lines.filter(({ file }) => file.startsWith('packages/') && !isTest(file)).map((each) => each.lines)
  const median = ofSources.sort((a, b) => a - b)[Math.floor(ofSources.length / 2)] ?? 0
  assert.ok(median < MEDIAN_LINES, `the median is ${median}`)
})

test(`no function of the packages has more than ${MOST_LINES_OF_A_FUNCTION} lines, closures and components included`, () => {
  assertOnlyListed(longFunctions(), {})
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

/** Fails if something else than what is listed is too long, if it has grown, and if an entry is not needed any more. */
function assertOnlyListed(found: ReadonlyMap<string, number>, listed: Readonly<Record<string, number>>): void {
  const grown = [...found].filter(([name, lines]) => lines > (listed[name] ?? 0)).map(([name, lines]) => `${name} has ${lines} lines`)
  const unneeded = Object.keys(listed).filter((name) => !found.has(name))
  assert.deepEqual({ tooLong: grown, removeFromTheList: unneeded }, { tooLong: [], removeFromTheList: [] })
}

/** By package and name, so that moving a file changes nothing. */
function longFunctions(): Map<string, number> {
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
    const found = new Map<string, number>()
    for (const { filename, message } of diagnostics.filter((each) => !isTest(each.filename))) {
      const [, name = 'a function without a name', lines] = /function(?: `(.+)`)? has too many lines \((\d+)\)/.exec(message) ?? []
      assert.ok(lines !== undefined, `oxlint reports something else: ${message}`)
      const key = `${filename.split(/[\\/]/)[1]} ${name}`
      found.set(key, Math.max(found.get(key) ?? 0, Number(lines)))
    }
    return found
  } finally {
    rmSync(folder, { recursive: true })
  }
}
