// Checks the bills of materials: they follow CycloneDX, and contain the packages that are installed and those that the service loads.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { bomOf, SUBJECTS } from './sbom.ts'

const root = join(import.meta.dirname, '..')
/**
 * The lockfile has no licence for these. @segment/fql-ts is part of Segment's repository of MIT packages: see docs/decisions/0040. The others are MIT, too,
 * but their package.json says so in the field `licenses`, which npm no longer reads.
 */
const WITHOUT_LICENCE = new Set([
  'pkg:npm/%40segment/fql-ts@1.10.1',
  'pkg:npm/buildcheck@0.0.7',
  'pkg:npm/cpu-features@0.0.10',
  'pkg:npm/ssh2@1.17.0',
])
const NOW = new Date('2026-11-15T00:00:00Z')

for (const [name, subject] of Object.entries(SUBJECTS)) {
  test(`the bill of materials of ${name} follows CycloneDX, and all its references exist`, () => {
    const bom = bomOf(subject, NOW)
    assert.deepEqual([bom.bomFormat, bom.specVersion, bom.version], ['CycloneDX', '1.6', 1])
    assert.match(bom.serialNumber, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
    assert.deepEqual(bom, bomOf(subject, NOW), 'the result is deterministic')
    const all = [bom.metadata.component, ...bom.components]
    const refs = all.map((component) => component['bom-ref'])
    assert.equal(new Set(refs).size, refs.length)
    for (const { purl, version, licenses, hashes, group } of all) {
      assert.match(purl, /^pkg:npm\/(?:%40[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+/)
      assert.equal(licenses === undefined, WITHOUT_LICENCE.has(purl), `${purl} has a licence`)
      if (group !== '@switchyard') assert.match(hashes?.[0].content ?? '', /^[0-9a-f]{128}$/, `${purl} ${version}`)
    }
    assert.deepEqual(new Set(bom.dependencies.map(({ ref }) => ref)), new Set(refs))
    for (const { dependsOn } of bom.dependencies) for (const ref of dependsOn) assert.ok(refs.includes(ref), ref)
  })
}

test('the bills of the client packages have no third-party packages, and list the Switchyard packages they include', () => {
  assert.deepEqual(
    ['protocol', 'webhook', 'node'].map((name) => bomOf(SUBJECTS[name] as never, NOW).components.map((component) => component.name)),
    [[], [], ['protocol']],
  )
})

test('the bill of the service contains every package that it loads, with its version', () => {
  const hooks = `import { registerHooks } from 'node:module'
    const urls = []
    registerHooks({ load(url, context, next) { urls.push(url); return next(url, context) } })
    for (const file of ['app.ts', 'commands/configuration/export.ts', 'installation/maintenance.ts']) await import(new URL(file, ${JSON.stringify(pathToFileURL(join(root, 'packages/server/src/')).href)}))
    console.log(JSON.stringify(urls))
    process.exit(0)`
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', hooks], { encoding: 'utf8' })
  const folders = new Set(
    (JSON.parse(printed) as string[]).flatMap((url) => /^file:\/\/.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(url)?.[0] ?? []),
  )
  const loaded = [...folders].map((folder) => {
    const { name, version } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8')) as { name: string; version: string }
    return `pkg:npm/${name.replace('@', '%40')}@${version}`
  })
  assert.ok(loaded.length > 20, loaded.join(' '))
  const known = new Set(bomOf(SUBJECTS['server'] as never, NOW).components.map(({ purl }) => purl))
  assert.deepEqual(
    loaded.filter((purl) => !known.has(purl)),
    [],
  )
  // The packages of the dashboard are included, too.
  assert.ok([...known].some((purl) => purl.startsWith('pkg:npm/react-dom@')))
  assert.ok([...known].some((purl) => purl.startsWith('pkg:npm/%40fontsource-variable/inter@')))
  assert.ok(![...known].some((purl) => /npm\/(?:vite|typescript|esbuild|playwright-core)@/.test(purl)), 'no tools')
})
