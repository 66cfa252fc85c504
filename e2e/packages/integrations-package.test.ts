// @switchyard/integrations, packed, and installed by `catalog install` of the published service. Installing its 100 MB takes long, so that is done only
// with SWITCHYARD_LONG_TESTS=1, from npm's cache.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { cpSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { publint } from 'publint'
import { installIntegrations } from '../../packages/server/src/installation/install-integrations.ts'
import { findIntegrationsPackage } from '../../packages/server/src/installation/integrations-package.ts'
import { buildIntegrations } from '../../scripts/build-integrations.ts'
import { buildServer } from '../../scripts/build-server.ts'
import { IS_LONG } from '../system/long-tests.ts'
import { npm } from '../system/run-program.ts'
import { readJson, repository } from './installed-packages.ts'

const workspace = mkdtempSync(join(tmpdir(), 'switchyard-integrations-package-'))
const built = join(workspace, 'built')
let tarball: string

before(async () => {
  await buildIntegrations(built)
  await npm(['pack', built, '--pack-destination', workspace], { cwd: workspace })
  tarball = join(workspace, readdirSync(workspace).find((file) => file.endsWith('.tgz')) as string)
})

after(() => rmSync(workspace, { recursive: true, force: true }))

test('the package has compiled code with types, the catalogue, the licences, and exact versions of its dependencies', async () => {
  const manifest = await readJson(join(built, 'package.json'))
  assert.equal(manifest['version'], (await readJson(join(repository, 'package.json')))['version'])
  assert.deepEqual(manifest['exports'], {
    './catalog': './dist/catalog.js',
    './runner': './dist/runner.js',
    './package.json': './package.json',
  })
  for (const version of Object.values(manifest['dependencies'] as object)) assert.match(version as string, /^\d+\.\d+\.\d+$/)
  const files = globSync('**/*.*', { cwd: built })
  for (const file of ['dist/catalog.js', 'dist/catalog.d.ts', 'dist/runner.js', 'dist/runner.d.ts', 'dist/catalog/index.json'])
    assert.ok(files.includes(file), file)
  assert.ok(readdirSync(built).includes('LICENSE') && readdirSync(built).includes('NOTICE'))
  assert.deepEqual(
    files.filter((file) => /\.test\.|fixtures|(?<!\.d)\.ts$/.test(file)),
    [],
  )
  for (const file of files.filter((name) => /\.(js|ts)$/.test(name))) {
    const text = readFileSync(join(built, file), 'utf8')
    assert.doesNotMatch(text, /['"]@switchyard\/(?!integrations)/, file)
    assert.ok(!text.includes(repository), `${file} names a path of the machine that built it`)
  }
})

test('publint finds no problem', async () => {
  const bytes = await readFile(tarball)
  const { messages } = await publint({ pack: { tarball: Uint8Array.from(bytes).buffer }, strict: true, level: 'suggestion' })
  assert.deepEqual(messages, [])
})

test('the service says exactly what to install: each package with its version and hash', async () => {
  const server = join(workspace, 'server')
  await buildServer(server, { integrations: tarball })
  const { lockfile, overrides, integrity } = (await readJson(join(server, 'packages', 'server', 'integrations.json'))) as {
    lockfile: { packages: Record<string, { version?: string; integrity?: string; link?: boolean; dev?: boolean }> }
    overrides: object
    integrity: string
  }
  assert.equal(integrity, `sha512-${hash('sha512', readFileSync(tarball), 'base64')}`)
  assert.deepEqual(overrides, (await readJson(join(repository, 'package.json')))['overrides'])
  const { '': top, ...packages } = lockfile.packages
  assert.ok(top !== undefined && packages['node_modules/@segment/action-destinations'] !== undefined)
  for (const [place, { version, integrity, link, dev }] of Object.entries(packages))
    assert.ok(version !== undefined && integrity !== undefined && link === undefined && dev === undefined, place)
})

test('an installed service installs it, finds it, and reads the catalogue', {
  skip: !IS_LONG && 'SWITCHYARD_LONG_TESTS=1 runs it',
}, async () => {
  const site = join(workspace, 'site')
  const server = join(site, 'node_modules', '@switchyard', 'server')
  mkdirSync(join(server, '..'), { recursive: true })
  cpSync(join(workspace, 'server'), server, { recursive: true })
  const serverFolder = join(server, 'packages', 'server', 'src', 'installation')
  const folder = join(site, 'data', 'integrations')
  await installIntegrations({ folder, serverFolder, from: tarball }, () => {})
  const url = findIntegrationsPackage(folder, { from: serverFolder })
  assert.ok(url !== null)
  const { readCatalog } = (await import(new URL('dist/catalog.js', url).href)) as { readCatalog: () => Promise<{ slug: string }[]> }
  const catalog = await readCatalog()
  assert.ok(catalog.length > 200, `${catalog.length} integrations`)
  const { openIntegration } = (await import(new URL('dist/runner.js', url).href)) as {
    openIntegration: (slug: string, settings: object) => Promise<object>
  }
  assert.ok('run' in (await openIntegration('actions-amplitude', { apiKey: 'k', secretKey: 's', endpoint: 'north_america' })))
})
