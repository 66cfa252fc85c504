// Checks that all files contain the same version, and prepares a release on a copy of the files that contain it.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { placesOf, plan } from './release.ts'

const repository = join(import.meta.dirname, '..')
const manifest = (root: string): { version: string } => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const NOW = manifest(repository).version
const NEXT = NOW.replace(/^(\d+)\.(\d+).*$/, (_all, major: string, minor: string) => `${major}.${Number(minor) + 1}.0`)

function copyOf(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'switchyard-release-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  for (const file of new Set([...placesOf(repository).map((place) => place.file), 'CHANGELOG.md']))
    cpSync(join(repository, file), join(root, file))
  return root
}

function release(root: string, ...args: string[]): { code: number | null; stdout: string; stderr: string } {
  const script = join(import.meta.dirname, 'release.ts')
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { cwd: root, encoding: 'utf8' })
  return { code: status, stdout, stderr }
}

test('every file that repeats the version has the version of the root package', () => {
  const places = placesOf(repository)
  assert.deepEqual(
    places.filter(({ version }) => version !== NOW),
    [],
  )
  const files = new Set(places.map(({ file }) => file))
  for (const file of globSync(['packages/*/package.json', 'examples/package.json', 'e2e/package.json'], { cwd: repository }))
    assert.ok(files.has(file), file)
  // They include every file that contains the image's name with a version.
  for (const file of globSync(['deploy/**/*', 'docs/**/*.md', 'README.md'], { cwd: repository, withFileTypes: true })) {
    const path = join(file.parentPath, file.name)
    if (!file.isFile() || path.includes('/dist/')) continue
    if (/\bswitchyard:\d/.test(readFileSync(path, 'utf8'))) assert.ok(files.has(path.slice(repository.length + 1)), path)
  }
})

test('a release sets the version everywhere, dates the unreleased changes, and prints the next steps', (t) => {
  const root = copyOf(t)
  const { code, stdout, stderr } = release(root, NEXT)
  assert.deepEqual([code, stderr], [0, ''])
  assert.ok(placesOf(root).length > 20)
  assert.deepEqual(new Set(placesOf(root).map(({ version }) => version)), new Set([NEXT]))
  const [before, after] = [repository, root].map((folder) => readFileSync(join(folder, 'CHANGELOG.md'), 'utf8'))
  const heading = new RegExp(String.raw`^## \[Unreleased\]\n\n## \[${NEXT}\] - (\d{4}-\d\d-\d\d)\n`, 'm')
  assert.match(after as string, heading)
  assert.equal((after as string).replace(heading, '## [Unreleased]\n'), before)
  for (const step of [
    `git tag --annotate v${NEXT}`,
    'npm publish ./packages/node/dist',
    `npm publish ./packages/integrations/dist/switchyard-integrations-${NEXT}.tgz`,
    `npm publish ./packages/warehouse/dist/switchyard-warehouse-${NEXT}.tgz`,
    `-t switchyard:${NEXT} .`,
    'npm run sbom',
  ])
    assert.ok(stdout.includes(step), step)
  // Everything except the version is unchanged, byte for byte.
  for (const file of ['packages/server/package.json', 'package-lock.json', 'deploy/compose.yml']) {
    const [was, is] = [repository, root].map((folder) => readFileSync(join(folder, file), 'utf8').split('\n')) as [string[], string[]]
    assert.equal(is.length, was.length)
    assert.deepEqual(
      is.filter((line, at) => line !== was[at] && !line.includes(NEXT)),
      [],
    )
  }
  // Releasing the same version again fails.
  const again = release(root, NEXT)
  assert.equal(again.code, 1)
  assert.match(again.stderr, new RegExp(`CHANGELOG.md already has a section for ${NEXT}`))
})

test('a dry run writes nothing; an invalid version, an earlier version, and a release without changes are rejected', (t) => {
  const root = copyOf(t)
  const texts = (): string[] => placesOf(root).map(({ file }) => readFileSync(join(root, file), 'utf8'))
  const before = texts()
  const { code, stdout } = release(root, NEXT, '--dry-run')
  assert.equal(code, 0)
  assert.match(stdout, /^would write CHANGELOG\.md$/m)
  assert.deepEqual(texts(), before)
  const today = '2026-11-15'
  assert.throws(() => plan(root, 'next', today), /next is not a version/)
  assert.throws(() => plan(root, '0.0.1', today), new RegExp(`0.0.1 is before ${NOW}`))
  assert.ok(plan(root, `${NEXT}-rc.1`, today).has('CHANGELOG.md'))
  release(root, `${NEXT}-rc.1`)
  assert.throws(() => plan(root, NEXT, today), /nothing under \[Unreleased\]/)
  assert.throws(() => plan(root, `${NEXT}-rc.0`, today), /is before/)
})
